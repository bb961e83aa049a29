"""A replay: a range of a sink's topics, copied again by a connector of its own name, exactly once.

The replay has its own group and its own journal, so it neither reads nor moves the offsets of the connector. Its first
run turns the range into offsets and stores them; each further run with the same name continues there, and copies
nothing once the range is copied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from airflow_connect.config.keys import sink as keys
from airflow_connect.errors import ConfigError
from airflow_connect.planning.bounds import ReplayRange
from airflow_connect.runtime.driver.sink.of_spec import only_sink

if TYPE_CHECKING:
    from airflow_connect.runtime.spec import RunSpec

GROUP = "consumer.override.group.id"
PLACE = (
    "s3.bucket.name",
    "store.url",
    "hdfs.url",
    "topics.dir",
    "file",
    "connection.url",
    "table.name.format",
    "iceberg.tables",
    "topic.to.external.resource.mapping",
    "data.stream.dataset",
)
"""Keys that say where a sink writes."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What to replay, and where to.

    Attributes:
        name: of the replay, as a connector.
        start, until: see `ReplayRange`.
        into: changes of the connector's configuration.
        allow_same_place: whether it may write where the connector writes.
    """

    name: str
    start: Any
    until: Any = None
    into: Mapping[str, Any] = field(default_factory=dict)
    allow_same_place: bool = False


def replay_spec(spec: RunSpec, wanted: Replay) -> RunSpec:
    """The input of a run of the replay.

    Raises:
        ConfigError: the connector is a source, the configuration is wrong, or the replay would write where the
            connector does.
    """
    connector = {**spec.connector, **wanted.into, keys.NAME: wanted.name}
    if GROUP not in wanted.into:
        connector.pop(GROUP, None)
    replayed = replace(spec, connector={key: value for key, value in connector.items() if value is not None})
    original, group = _group(spec), _group(replayed)
    if group == original or wanted.name == spec.connector.get(keys.NAME):
        raise ConfigError(
            f"Replay {wanted.name} would use group {group} of connector {spec.connector.get(keys.NAME)}.",
            code="replay.same_group",
            suggestion="Give the replay another name, and no group of its own.",
            config_path=GROUP,
        )
    is_same_place = all(connector.get(key) == spec.connector.get(key) for key in PLACE)
    if is_same_place and not wanted.allow_same_place:
        raise ConfigError(
            f"Replay {wanted.name} would write where connector {spec.connector.get(keys.NAME)} writes.",
            code="replay.same_place",
            suggestion=f"Change one of {', '.join(PLACE)} with `into` or --set. If the objects of the range are gone,"
            " or the sink replaces records that it writes again, set allow_same_place=True or --same-place.",
            config_path="into",
        )
    bounds = ReplayRange(wanted.start, wanted.until, original, keeps_within_copied=is_same_place)
    return replace(replayed, bounds=bounds.to_json())


def _group(spec: RunSpec) -> str:
    configuration = only_sink(
        spec,
        f"Connector {spec.connector.get('name')} is a source. Only the records of a sink's topics can be replayed.",
        "To read a source again, reset or set its offsets.",
    )
    return configuration.resolved.consumer_group


__all__ = ["Replay", "replay_spec"]

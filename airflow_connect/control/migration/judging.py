"""What changes for a connector that moves here: findings from its configuration, its offsets and our worker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_connect.api.json_document import JsonDocument
from airflow_connect.control.client.connectors import no_connector
from airflow_connect.control.migration import aiven_s3
from airflow_connect.counting import counted
from airflow_connect.errors import ConnectError
from airflow_connect.runtime.driver.entry import validate_connector
from airflow_connect.runtime.spec import RunSpec

if TYPE_CHECKING:
    from airflow_connect.control.client.over_kafka import KafkaConnectors
    from airflow_connect.control.client.rest import ConnectRest

ERROR, CHANGE, NOTE = "error", "change", "note"
_CONVERTERS = ("key.converter", "value.converter", "header.converter")
_FILE_SOURCE = "FileStreamSource"
_LEVELS = {"error": ERROR}
_OTHER_KAFKA = (
    "The cluster's workers use the Kafka cluster {}, and this worker configuration the Kafka cluster {}: offsets of one"
    " mean nothing in the other. Set bootstrap.servers to the same Kafka cluster; for another one, register the"
    " connectors again and set their offsets."
)


@dataclass(frozen=True, slots=True)
class Finding(JsonDocument):
    """One thing to know before a connector moves.

    Attributes:
        level: `error`: it cannot move; `change`: it will behave differently; `note`.
        about: the configuration key, or the subject.
        text: a sentence.
    """

    level: str
    about: str
    text: str


@dataclass(frozen=True, slots=True)
class Judged:
    """A connector of the cluster.

    Attributes:
        name: its name.
        kind: `sink` or `source`.
        state: its state in the cluster.
        config: as it will be registered here.
        offsets: committed offsets, now.
        findings: what changes.
    """

    name: str
    kind: str
    state: str
    config: Mapping[str, Any] = field(repr=False)
    offsets: list[dict[str, Any]]
    findings: tuple[Finding, ...]

    @property
    def can_move(self) -> bool:
        """Whether nothing speaks against it."""
        return all(finding.level != ERROR for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON form, without the configuration, which may hold secrets."""
        return {
            "name": self.name,
            "type": self.kind,
            "state": self.state,
            "offsets": len(self.offsets),
            "can_move": self.can_move,
            "findings": [finding.to_json() for finding in self.findings],
        }


def judge(cluster: ConnectRest, ours: KafkaConnectors, names: list[str], changes: Mapping[str, str]) -> list[Judged]:
    """What changes for connectors of a cluster; changes nothing.

    Args:
        cluster: where they run.
        ours: where they shall be registered.
        names: of the connectors; []: all.
        changes: keys that all of them get here.

    Raises:
        ConfigError: a name is unknown.
        UnavailableError, AccessError: the cluster or Kafka cannot be asked.
    """
    known = cluster.names()
    for name in names:
        if name not in known:
            raise no_connector(name, known, "The cluster")
    here = set(ours.names())
    theirs, own = cluster.kafka_cluster_id(), ours.herder.server_info()["kafka_cluster_id"]
    # Offsets of one cluster mean nothing in another one: they would leave out records, or copy them again.
    of_all = () if theirs in (None, own) else (Finding(ERROR, "bootstrap.servers", _OTHER_KAFKA.format(theirs, own)),)
    return [
        _judged(cluster, ours, name, {**_config(cluster, name), **changes}, of_all, is_here=name in here)
        for name in names or known
    ]


def _config(cluster: ConnectRest, name: str) -> dict[str, str]:
    return cluster.config(name) or {}


def _judged(
    cluster: ConnectRest,
    ours: KafkaConnectors,
    name: str,
    config: dict[str, str],
    of_all: tuple[Finding, ...],
    *,
    is_here: bool,
) -> Judged:
    kind, state = cluster.kind(name), cluster.states(name)["connector"]["state"]
    offsets = cluster.offsets(name)
    findings = (*of_all, *_findings(ours, config, kind, offsets, is_here=is_here))
    return Judged(name, kind, state, config, offsets, findings)


def _findings(
    ours: KafkaConnectors, config: Mapping[str, str], kind: str, offsets: list[dict[str, Any]], *, is_here: bool
) -> Iterator[Finding]:
    if is_here:
        yield Finding(ERROR, "name", "A connector with this name is registered here already.")
    worker = ours.settings.raw
    try:
        for found in validate_connector(RunSpec(dict(config), worker)):
            text = f"{found['message']} {found.get('suggestion', '')}".strip()
            if found["key"] in config or found["level"] == "error":
                yield Finding(_LEVELS.get(found["level"], CHANGE), found["key"], text)
    except ConnectError as error:
        yield Finding(ERROR, error.config_path or "connector.class", str(error))
        yield from (Finding(CHANGE, key, text) for key, text in aiven_s3.equivalents(config))
        return
    for key in _CONVERTERS:
        if key not in config:
            mine = worker.get(key)
            told = f"this installation's, {mine}" if mine else "Kafka Connect's default"
            yield Finding(CHANGE, key, f"Not set: the cluster uses its workers' converter, and runs here use {told}.")
    if kind == "source":
        yield Finding(NOTE, "offsets", f"{counted(len(offsets), 'source offset is', 'source offsets are')} copied.")
        if _FILE_SOURCE in config.get("connector.class", ""):
            yield Finding(
                NOTE, "offset.takeover", "If the text is not ASCII, positions of a worker need this key: see its page."
            )
    else:
        yield Finding(
            NOTE,
            "offsets",
            f"{counted(len(offsets), 'offset of its group is', 'offsets of its group are')} compared,"
            " and set if different.",
        )
    yield Finding(
        CHANGE, "run.interval.seconds", f"It runs in bounded runs, every {ours.settings.interval_s:g} s unless set."
    )

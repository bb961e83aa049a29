"""Where a watch looks: a connector or topics, and the client settings that reach their cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_connect.api.config.values import coerce_config
from airflow_connect.config.keys import sink as keys
from airflow_connect.config.resolved.client_layers import consumer_group
from airflow_connect.config.resolved.worker import WorkerConfig
from airflow_connect.config_providers.resolving import resolve_references
from airflow_connect.errors import ConfigError
from airflow_connect.kafka.clients import settings as client_config
from airflow_connect.planning.planner import Policy

if TYPE_CHECKING:
    from airflow_connect.runtime.spec import RunSpec


@dataclass(frozen=True, slots=True)
class Cluster:
    """How to reach a cluster. Equal ones share a poller.

    Attributes:
        admin, consumer: librdkafka settings, including secrets, as sorted pairs.
        isolation_level: what counts as the end of a log.
        runs_topic: name of the topic with the runs of connectors.
    """

    admin: tuple[tuple[str, Any], ...] = field(repr=False)
    consumer: tuple[tuple[str, Any], ...] = field(repr=False)
    isolation_level: str
    runs_topic: str


@dataclass(frozen=True, slots=True)
class Target:
    """A sink connector, or only topics.

    Attributes:
        cluster: where.
        name: of the connector.
        group: that holds its offsets.
        topics: names, or () if `topics_regex` is set.
        topics_regex: Java regular expression.
        policy: where a run would start, without the limits of a run.
    """

    cluster: Cluster
    name: str
    group: str = ""
    topics: tuple[str, ...] = ()
    topics_regex: str = ""
    policy: Policy = field(default_factory=Policy)


def target_of(spec: RunSpec, *, reads_topics: bool = True) -> Target:
    """The target of a connector's configuration; only the keys that say where it reads are looked at.

    Args:
        spec: both configurations.
        reads_topics: whether its topics are looked at, so that it has to name them.

    Raises:
        ConfigError: a key is missing or wrong.
        UnavailableError: a config provider's server did not answer.
    """
    references = resolve_references(spec.connector, spec.worker, spec.references)
    with references.hiding_errors():
        connector = coerce_config(references.resolve(spec.connector))
        worker = references.resolve(spec.worker)
        consumer = client_config.consumer_config(worker, connector)
        admin = client_config.admin_config(worker, connector)
        name = str(connector.get(keys.NAME) or "")
        shared = {key: value for key, value in consumer.settings.items() if key != "group.id"}
        target = Target(
            Cluster(
                tuple(sorted(admin.settings.items())),
                tuple(sorted(shared.items())),
                consumer.isolation_level,
                WorkerConfig.from_properties(worker).runs_topic,
            ),
            name,
            consumer_group(worker, connector, name),
            tuple(topic.strip() for topic in (connector.get(keys.TOPICS) or "").split(",") if topic.strip()),
            connector.get(keys.TOPICS_REGEX) or "",
            Policy(consumer.auto_offset_reset, connector.get(keys.OFFSETS_OUT_OF_RANGE) or ""),
        )
    return _check_topics(target) if reads_topics else target


def _check_topics(target: Target) -> Target:
    if bool(target.topics) == bool(target.topics_regex):
        which = "Neither topics nor topics.regex is" if not target.topics else "Both topics and topics.regex are"
        raise ConfigError(
            f"{which} set for {target.name}.",
            config_path=keys.TOPICS,
            suggestion="Set one of them. A source connector has none: use SourceChangedSensor.",
        )
    return target

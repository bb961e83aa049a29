"""Topics after a restore: the settings that were kept away meanwhile, for the command and the operator."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from airflow_connect.runtime.driver.offsets.restored_groups import restore_connector
from airflow_connect.runtime.driver.source.configuration import SourceConfiguration

if TYPE_CHECKING:
    from airflow_connect.connectors.restore.put_back import TopicSettings
    from airflow_connect.runtime.spec import RunSpec


def restore_settings(spec: RunSpec, *, only_shows: bool = False) -> list[TopicSettings]:
    """Set the settings of the topics that `spec` has restored: those of their originals, or what they were.

    Args:
        spec: of the restore.
        only_shows: set none.

    Returns:
        By topic; a topic that could not get them has its `failure`.

    Raises:
        ConfigError: the connector is no restore.
        ConnectError: Kafka refused, or does not answer.
    """
    from airflow_connect.connectors.restore.progress import Progress, topic_partition_of
    from airflow_connect.connectors.restore.put_back import PutBack
    from airflow_connect.connectors.restore.remembered import remembered
    from airflow_connect.connectors.restore.values.progress import ValueProgress
    from airflow_connect.runtime.driver.source.kafka_session import SourceSession

    configuration = SourceConfiguration.from_spec(spec)
    connector = restore_connector(configuration)
    with configuration.references.hiding_errors(), SourceSession(configuration) as kafka:
        typed = connector.read_config(configuration.resolved.connector.raw)
        offsets = kafka.read_offsets().items()
        kind = ValueProgress if typed.holds_values else Progress
        wanted = remembered(kind.of(at) for of, at in offsets if topic_partition_of(typed.root, of) is not None)
        put_back = PutBack(kafka.admin, typed.accepted, int(time.time() * 1000), only_shows)
        return put_back.of(wanted)


__all__ = ["restore_settings"]

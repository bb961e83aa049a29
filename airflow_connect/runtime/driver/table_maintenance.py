"""Expires snapshots of the tables that an Iceberg sink fills. Writes nothing to Kafka, and fences no run."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from airflow_connect.connectors.iceberg.connector import IcebergSinkConnector
from airflow_connect.errors import ConfigError
from airflow_connect.runtime.driver.reporting import now_ms
from airflow_connect.runtime.driver.sink.kafka_session import SinkSession
from airflow_connect.runtime.driver.sink.of_spec import only_sink

if TYPE_CHECKING:
    from airflow_connect.connectors.iceberg.maintenance import TableExpiry
    from airflow_connect.connectors.iceberg.publisher import IcebergPublisher
    from airflow_connect.runtime.spec import RunSpec

_WHICH = "Name a connector with the class org.apache.iceberg.connect.IcebergSinkConnector."


def expire_snapshots(
    spec: RunSpec, *, age_ms: int | None = None, least: int | None = None, dry_run: bool = False
) -> list[TableExpiry]:
    """Expire old snapshots that nothing needs, see `connectors.iceberg.maintenance`; runs may go on meanwhile.

    Args:
        spec: the connector and its worker.
        age_ms: younger snapshots stay; None: as the property of each table says.
        least: of each branch, this many stay; None: as the property of each table says.
        dry_run: only look.

    Returns:
        One entry for each table, by name.

    Raises:
        ConfigError: it is no Iceberg sink, or its configuration is wrong.
        UnavailableError, AccessError: Kafka, the catalog or its file system.
    """
    configuration = only_sink(spec, "A source has no tables of a lake.", _WHICH)
    if not issubclass(configuration.connector_class, IcebergSinkConnector):
        name = configuration.connector_class.__name__
        raise ConfigError(f"{name} has no tables of a lake.", suggestion=_WHICH, config_path="connector.class")
    from airflow_connect.connectors.iceberg.maintenance import Keeping

    with configuration.references.hiding_errors():
        with SinkSession(configuration) as kafka:
            manifest = kafka.peek().manifest
        try:
            publisher = cast("IcebergPublisher", configuration.sink.publisher.opened())  # type: ignore[union-attr]
            opened = publisher.snapshots_of(() if manifest is None else manifest.files)
            keeping = Keeping(now_ms(), age_ms, least, frozenset(opened))
            return publisher.expire(keeping, dry_run=dry_run)
        finally:
            configuration.sink.stop()

"""Names of Apache's Iceberg sink: its class, its keys, and their defaults (IcebergSinkConfig 1.11.0)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from airflow_connect.api.own_offsets import SESSION_TIMEOUT, SESSION_TIMEOUT_MS
from airflow_connect.errors import ConfigError

if TYPE_CHECKING:
    from airflow_connect.api.sink_roles import SinkGroup

ICEBERG_SINK = "org.apache.iceberg.connect.IcebergSinkConnector"
CONTROL_TOPIC = "iceberg.control.topic"
COMMIT_INTERVAL_MS, COMMIT_TIMEOUT_MS = "iceberg.control.commit.interval-ms", "iceberg.control.commit.timeout-ms"
CONNECT_GROUP = "iceberg.connect.group-id"
TABLES, ROUTE_FIELD, DYNAMIC = "iceberg.tables", "iceberg.tables.route-field", "iceberg.tables.dynamic-enabled"
EVOLVES = "iceberg.tables.evolve-schema-enabled"
KAFKA = "iceberg.kafka."
BOOTSTRAP = f"{KAFKA}bootstrap.servers"
DEFAULT_CONTROL_TOPIC = "control-iceberg"
DEFAULT_TIMEOUT_MS = 30_000
INTERVAL_MS = 30_000
"""Ours, if the configuration has none. The plugin's is five minutes, which every run would have to wait for."""
CONTROL = "control"
"""In the document for tasks: where the control topic ended."""
_CONNECTION = ("bootstrap.", "security.", "sasl.", "ssl.", "client.dns.")


def control_topic(config: Mapping[str, str]) -> str:
    """Where tasks and coordinator of the plugin talk to each other."""
    return config.get(CONTROL_TOPIC) or DEFAULT_CONTROL_TOPIC


def interval_s(config: Mapping[str, str]) -> float:
    """How often the plugin commits.

    Raises:
        ConfigError: the key has no number.
    """
    return _seconds(config, COMMIT_INTERVAL_MS, INTERVAL_MS)


def timeout_s(config: Mapping[str, str]) -> float:
    """How long the plugin waits for the answers of all tasks before it commits those that it has.

    Raises:
        ConfigError: the key has no number.
    """
    return _seconds(config, COMMIT_TIMEOUT_MS, DEFAULT_TIMEOUT_MS)


def _seconds(config: Mapping[str, str], key: str, default_ms: int) -> float:
    given = config.get(key, "").strip()
    if given and not given.isdecimal():
        raise ConfigError(
            f"{key}={given} is not a number of milliseconds.",
            suggestion="Set it to a whole number, such as 30000.",
            config_path=key,
        )
    return int(given or default_ms) / 1000


def with_defaults(config: Mapping[str, str], group: SinkGroup) -> dict[str, str]:
    """A configuration with what the plugin takes from the file of its worker otherwise, and with our interval."""
    added = {COMMIT_INTERVAL_MS: str(INTERVAL_MS)}
    if BOOTSTRAP not in config:
        added |= {f"{KAFKA}{name}": value for name, value in group.java.items() if name.startswith(_CONNECTION)}
        # After a run was killed, its coordinator stays a member of its own group for this time.
        added[f"{KAFKA}{SESSION_TIMEOUT}"] = group.java.get(SESSION_TIMEOUT, SESSION_TIMEOUT_MS)
    if group.name != f"connect-{config['name']}":
        added[CONNECT_GROUP] = group.name
    return {**added, **config}


def tables_of_each_record(config: Mapping[str, str]) -> int | None:
    """How many tables a record goes to that the plugin does not leave out; None: that depends on the record.

    Source: `SinkWriter` of IcebergSinkConnector 1.11.0. It routes by a field to the one table that is named there, or
    to each table whose pattern fits. Without a field, a record goes to all tables.
    """
    if config.get(DYNAMIC, "").strip().lower() == "true":
        return 1
    tables = sum(bool(name.strip()) for name in config.get(TABLES, "").split(","))
    return tables if ROUTE_FIELD not in config or tables == 1 else None


def check_group(config: Mapping[str, str], group: str) -> None:
    """Refuse a group that is not the connector's: the plugin would commit offsets where no run reads them.

    Raises:
        ConfigError: they differ.
    """
    given = config.get(CONNECT_GROUP)
    if given and given != group:
        raise ConfigError(
            f"{CONNECT_GROUP}={given}, but the offsets of this connector are in the consumer group {group}.",
            code="java.group_id",
            suggestion=f"Remove {CONNECT_GROUP}, or set it to {group}. Another group for the connector is set by"
            " consumer.override.group.id.",
            config_path=CONNECT_GROUP,
        )

"""Airflow's connection type `connect_worker`: a worker configuration that many DAGs share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_connect.airflow.connections.official import BOOTSTRAP_SERVERS, GetConnection, extra_of, get_connection
from airflow_connect.config.resolved.client_layers import is_connection_key
from airflow_connect.errors import ConfigError

if TYPE_CHECKING:
    from airflow.sdk import Connection

CONN_TYPE = "connect_worker"
_ACCEPTED_TYPES = (CONN_TYPE, "generic")
_CONVERTERS = ("key.converter", "value.converter", "header.converter")
_FIELDS = {"login": "sasl.username", "password": "sasl.password"}


def worker_with_connection(
    worker: Mapping[str, Any],
    conn_id: str | None,
    get: GetConnection = get_connection,
    *,
    has_other_brokers: bool = False,
) -> dict[str, Any]:
    """The worker configuration with the keys of a `connect_worker` connection that it does not set itself.

    Brokers and the settings that log in to them belong together: if the worker names its brokers, or
    `has_other_brokers`, no such setting of the connection is used, so its password never reaches another cluster. The
    same holds for a converter and its nested keys.

    Args:
        worker: as the DAG gives it.
        conn_id: the connection; None: not used.
        get: reads a connection.
        has_other_brokers: whether a `kafka` connection that the DAG names will set brokers and security.

    Raises:
        ConfigError: the connection is missing, of another type, or its extra is not an object.
        UnavailableError: Airflow did not answer.
    """
    if conn_id is None:
        return dict(worker)
    shared = settings_of(get(conn_id))
    own_converters = tuple(f"{key}." for key in _CONVERTERS if worker.get(key))
    shared = {key: value for key, value in shared.items() if not key.startswith(own_converters)}
    if has_other_brokers or worker.get(BOOTSTRAP_SERVERS):
        shared = {key: value for key, value in shared.items() if not is_connection_key(key)}
    return {**shared, **worker}


def settings_of(connection: Connection) -> dict[str, Any]:
    """The worker keys of a connection: its extra, and host, login and password under the names of Kafka's clients.

    Raises:
        ConfigError: it has another type, or its extra is not an object.
    """
    if connection.conn_type not in _ACCEPTED_TYPES:
        raise ConfigError(
            f"Connection {connection.conn_id!r} is of type {connection.conn_type}, not {CONN_TYPE}.",
            code="airflow.connection_type",
            suggestion=f"worker_conn_id takes a connection of type {CONN_TYPE}; name one of type kafka as "
            "kafka_conn_id.",
        )
    found = {key: getattr(connection, field) for field, key in _FIELDS.items()}
    if connection.host:
        found[BOOTSTRAP_SERVERS] = f"{connection.host}:{connection.port}" if connection.port else connection.host
    # The form stores a field that was left empty as "" or null.
    found.update({key: value for key, value in extra_of(connection).items() if value not in (None, "")})
    return {key: value for key, value in found.items() if value not in (None, "")}

"""`KafkaConnectHook`: the REST API of an existing Kafka Connect cluster, from any task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook

from airflow_connect.airflow.connections.masking import mask_in_airflow
from airflow_connect.airflow.connections.official import extra_of, get_connection
from airflow_connect.airflow.connections.tls import client_tls
from airflow_connect.control.client.rest import RETRY_S, ConnectorStatus, ConnectRest
from airflow_connect.errors import ConfigError, ConnectError
from airflow_connect.runtime.reporting.redaction import Redactor, secret_values

if TYPE_CHECKING:
    from airflow.sdk import Connection

DEFAULT_PORT = 8083
DEFAULT_TIMEOUT_S = 90.0
"""A worker itself waits up to 90 s for its leader (`Herder` requests)."""
TEST_S = 5.0


class KafkaConnectHook(BaseHook):
    """A Kafka Connect cluster, for people who move its connectors step by step.

    The connection has the type `kafka_connect`: host (one or more workers, comma separated, with a scheme if it is not
    http), port, login and password for basic authentication. Its extra: `verify` (false, or a file with certificates
    of authorities), `cert` and `key` (files, for a client certificate), `headers`, `timeout` (seconds).

    Args:
        kafka_connect_conn_id: the connection.
    """

    conn_name_attr = "kafka_connect_conn_id"
    default_conn_name = "kafka_connect_default"
    conn_type = "kafka_connect"
    hook_name = "Kafka Connect cluster"

    def __init__(self, kafka_connect_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.kafka_connect_conn_id = kafka_connect_conn_id

    @cached_property
    def rest(self) -> ConnectRest:
        """The client; the connection is read on first use, and its login is masked.

        Raises:
            ConfigError: the connection is missing or wrong.
        """
        return rest_of(get_connection(self.kafka_connect_conn_id))

    def names(self) -> list[str]:
        """Names of the registered connectors."""
        return self.rest.names()

    def status(self, name: str) -> ConnectorStatus:
        """State of a connector and its tasks.

        Raises:
            ConfigError: there is no such connector.
        """
        found = self.rest.status(name)
        if found is None:
            raise ConfigError(
                f"The cluster has no status of a connector called {name!r}.",
                code="kafka_connect.missing",
                suggestion=f"It has {', '.join(self.names()[:20]) or 'no connectors'}.",
            )
        return found

    def apply(self, name: str, config: Mapping[str, Any]) -> str:
        """Create or update a connector; returns `created`, `updated` or `unchanged`.

        Raises:
            ConfigError: the cluster refuses the configuration, with its messages.
        """
        mask_in_airflow(secret_values(config))
        return self.rest.apply(name, config)

    def validate(self, config: Mapping[str, Any]) -> list[dict[str, str]]:
        """What the cluster's plugin refuses about a configuration: `key` and `message` of every error."""
        mask_in_airflow(secret_values(config))
        return self.rest.findings(config)

    def pause(self, name: str) -> None:
        """Pause a connector; its tasks stay where they are."""
        self.rest.pause(name)

    def resume(self, name: str) -> None:
        """Resume a paused or stopped connector."""
        self.rest.resume(name)

    def stop(self, name: str) -> None:
        """Stop a connector: its tasks end, its configuration and offsets stay."""
        self.rest.stop(name)

    def restart(self, name: str, *, only_failed: bool = True) -> None:
        """Restart a connector and its tasks, or those of them that have failed."""
        self.rest.restart(name, only_failed=only_failed)

    def delete(self, name: str) -> bool:
        """Delete a connector; its offsets stay. Returns False if there was none."""
        return self.rest.delete(name)

    def offsets(self, name: str) -> list[dict[str, Any]]:
        """Committed offsets: `[{"partition": {...}, "offset": {...}}]`."""
        return self.rest.offsets(name)

    def alter_offsets(self, name: str, offsets: Sequence[Mapping[str, Any]]) -> str:
        """Set offsets of a stopped connector, in the form of `offsets`; an offset of None resets it."""
        return self.rest.alter_offsets(name, offsets)

    def reset_offsets(self, name: str) -> str:
        """Delete all offsets of a stopped connector."""
        return self.rest.reset_offsets(name)

    def test_connection(self) -> tuple[bool, str]:
        """Ask a worker for its version and its connectors: the button of the connection form."""
        try:
            rest = rest_of(get_connection(self.kafka_connect_conn_id), retry_s=TEST_S, timeout_s=TEST_S)
            version, count = rest.version(), len(rest.names())
        except ConnectError as error:
            return False, f"{error.message} {error.suggestion}".strip()
        return True, f"Kafka Connect {version} answers; it has {count} connector{'' if count == 1 else 's'}."


def rest_of(connection: Connection, retry_s: float = RETRY_S, timeout_s: float | None = None) -> ConnectRest:
    """A client for a `kafka_connect` connection.

    Raises:
        ConfigError: it has no host, its extra is not an object, or a file of it cannot be used.
    """
    import httpx

    extra = extra_of(connection)
    secrets = [connection.password or "", *secret_values(extra), *secret_values(extra.get("headers") or {})]
    mask_in_airflow(secrets)
    login = (connection.login, connection.password or "") if connection.login else None
    try:
        client = httpx.Client(
            auth=login,
            headers=extra.get("headers") or None,
            verify=client_tls(extra),
            timeout=timeout_s or float(extra.get("timeout") or DEFAULT_TIMEOUT_S),
            follow_redirects=False,  # Headers and configurations with secrets would go wherever it leads.
            # A hook has no end at which it could close connections, and looks are seconds apart.
            limits=httpx.Limits(max_keepalive_connections=0),
        )
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"Connection {connection.conn_id!r} cannot be used: {Redactor(secrets)(str(error))}.",
            code="airflow.connection_extra",
            suggestion="verify, cert and key are paths of PEM files on the machine that runs the task; timeout is a "
            "number of seconds.",
        ) from error
    return ConnectRest(_urls(connection), client, Redactor(secrets), retry_s)


def _urls(connection: Connection) -> list[str]:
    """The address of each worker: as written if it has a scheme, else with `schema` and `port` of the connection."""
    workers = [part.strip().rstrip("/") for part in (connection.host or "").split(",") if part.strip()]
    if not workers:
        raise ConfigError(
            f"Connection {connection.conn_id!r} has no host.",
            code="airflow.connection_field",
            suggestion="Set it to the address of a Kafka Connect worker, such as http://connect:8083.",
        )
    scheme, port = connection.schema or "http", connection.port
    written = [
        (worker, port) if "://" in worker else (f"{scheme}://{worker}", port or DEFAULT_PORT) for worker in workers
    ]
    return [_url(worker, default) for worker, default in written]


def _url(worker: str, port: int | None) -> str:
    scheme, _, rest = worker.partition("://")
    address, slash, path = rest.partition("/")
    has_port = address.rpartition(":")[2].isdigit()
    return worker if has_port or port is None else f"{scheme}://{address}:{port}{slash}{path}"

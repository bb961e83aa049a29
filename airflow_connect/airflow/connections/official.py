"""Airflow connections as worker configuration and as credentials. Read at execution time only."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow_connect.airflow.connections.aws import credentials_of
from airflow_connect.errors import ConfigError, UnavailableError

if TYPE_CHECKING:
    from airflow.sdk import Connection

DEFAULT_KAFKA_CONN_ID = "kafka_default"
BOOTSTRAP_SERVERS = "bootstrap.servers"
SPARK_MASTER, SPARK_REMOTE = "spark.master", "spark.remote"
SPARK_CONNECT_PORT = 15002

LOGIN_CALLBACK = "oauth_cb"
# Settings of a `kafka` connection that are for the consumers of other operators. Here `group.id` is the worker's own
# name, and the run commits offsets. Callbacks that only watch a client are dotted names, which the Kafka provider
# resolves in the process of its own operators.
NOT_FOR_WORKERS = frozenset(
    {
        "group.id",
        "group.instance.id",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "auto.commit.interval.ms",
        "auto.offset.reset",
        "isolation.level",
        "error_cb",
        "stats_cb",
        "throttle_cb",
        "on_commit",
        "on_delivery",
        "logger",
    }
)
_SPARK_EXTRAS = {
    "queue": "spark.yarn.queue",
    "namespace": "spark.kubernetes.namespace",
    "principal": "spark.kerberos.principal",
}
GetConnection = Callable[[str], "Connection"]


def get_connection(conn_id: str) -> Connection:
    """Read a connection.

    Raises:
        ConfigError: there is no such connection.
        UnavailableError: Airflow's API server did not answer.
    """
    from airflow.sdk import BaseHook
    from airflow.sdk.exceptions import AirflowNotFoundException

    try:
        return BaseHook.get_connection(conn_id)
    except AirflowNotFoundException as error:
        variable = f"AIRFLOW_CONN_{conn_id.upper()}"
        if os.environ.get(variable):  # Airflow hides the reason, which would quote the connection.
            raise ConfigError(
                f"Airflow cannot read connection {conn_id!r} from the environment variable {variable}.",
                code="airflow.connection_missing",
                suggestion="Its value is neither a JSON object that is complete and has known members only"
                ' ({"conn_type": "kafka", "extra": {...}}), nor a URI with percent-encoded parts.',
            ) from error
        raise ConfigError(
            f"Airflow has no connection called {conn_id!r}.",
            code="airflow.connection_missing",
            suggestion=f"Create it under Admin > Connections or set AIRFLOW_CONN_{conn_id.upper()}. In a new"
            " Airflow, run `airflow db migrate` first.",
        ) from error
    except ConnectionError as error:
        raise UnavailableError(f"Airflow did not answer when connection {conn_id!r} was read.") from error


def worker_with_kafka(
    worker: Mapping[str, Any], conn_id: str | None, get: GetConnection = get_connection
) -> dict[str, Any]:
    """The worker configuration with the settings of a `kafka` connection.

    A connection that the DAG names takes precedence over the worker file. The default connection is used only if the
    worker does not name its brokers, because Airflow creates a `kafka_default` that points nowhere.

    Raises:
        ConfigError: the connection is missing, its extra is not an object, or it logs in with a callback.
    """
    if conn_id is None or (conn_id == DEFAULT_KAFKA_CONN_ID and worker.get(BOOTSTRAP_SERVERS)):
        return dict(worker)
    extra = extra_of(get(conn_id))
    if extra.get(LOGIN_CALLBACK):
        raise ConfigError(
            f"Connection {conn_id!r} gets its token from the function {extra[LOGIN_CALLBACK]!r} (oauth_cb), which the "
            "driver and the executors cannot call.",
            code="airflow.oauth_callback",
            config_path=LOGIN_CALLBACK,
            suggestion="Let the clients fetch the token: replace oauth_cb by sasl.oauthbearer.method=oidc with "
            "sasl.oauthbearer.token.endpoint.url, sasl.oauthbearer.client.id and sasl.oauthbearer.client.secret.",
        )
    return {**worker, **{key: value for key, value in extra.items() if key not in NOT_FOR_WORKERS}}


def aws_credentials(conn_id: str | None, get: GetConnection = get_connection) -> dict[str, str]:
    """The credentials of an `aws` connection, as `RunSpec.aws` needs them; see `aws_connection.credentials_of`.

    Returns:
        {} without a connection; boto3's default chain is then used.

    Raises:
        ConnectError: there is no such connection, or it gives no credentials.
    """
    if conn_id is None:
        return {}
    connection = get(conn_id)
    return credentials_of(connection, extra_of(connection))


def worker_with_spark(
    worker: Mapping[str, Any], conn_id: str | None, get: GetConnection = get_connection
) -> dict[str, Any]:
    """The worker configuration with the `spark.master` or `spark.remote` of a Spark connection.

    Extra keys that start with `spark.` are passed on; `queue` and `namespace` keep their meaning of the Spark
    provider.

    Raises:
        ConfigError: the connection is missing, or requests deploy mode `cluster`.
    """
    if conn_id is None:
        return dict(worker)
    connection = get(conn_id)
    extra = extra_of(connection)
    if extra.get("deploy-mode", "client") != "client":
        raise ConfigError(
            f"Connection {conn_id!r} requests deploy mode {extra['deploy-mode']!r}, which is not supported.",
            config_path="deploy-mode",
            suggestion="Set it to `client` or remove it: the driver runs on the machine of the Airflow task.",
        )
    settings = {name: extra[key] for key, name in _SPARK_EXTRAS.items() if extra.get(key)}
    settings.update({key: value for key, value in extra.items() if key.startswith("spark.")})
    kept = {key: value for key, value in worker.items() if key not in (SPARK_MASTER, SPARK_REMOTE)}
    if connection.conn_type == "spark_connect":
        return {**kept, **settings, SPARK_REMOTE: _remote(connection, extra)}
    return {**kept, **settings, SPARK_MASTER: _master(connection)}


def _master(connection: Connection) -> str:
    """Master URL. A connection from a URI has its scheme in `conn_type`, one from the form in the host."""
    host = connection.host or ""
    if "://" not in host and (connection.conn_type != "spark" or connection.port):
        host = f"{connection.conn_type}://{host}"
    return f"{host}:{connection.port}" if connection.port else host


def _remote(connection: Connection, extra: Mapping[str, Any]) -> str:
    """Spark Connect's `sc://host:port/;key=value`, with user and token of the connection."""
    host = (connection.host or "").removeprefix("sc://")
    options = {"user_id": connection.login, "token": connection.password, "use_ssl": extra.get("use_ssl")}
    given = "".join(f";{key}={quote(str(value), safe='')}" for key, value in options.items() if value not in (None, ""))
    return f"sc://{host}:{connection.port or SPARK_CONNECT_PORT}/{given}"


def extra_of(connection: Connection) -> dict[str, Any]:
    """The extra as an object. The Kafka provider keeps all settings there.

    Raises:
        ConfigError: the extra is not a JSON object.
    """
    if not connection.extra:
        return {}
    try:
        extra = json.loads(connection.extra)
    except ValueError:
        extra = None
    if not isinstance(extra, dict):
        raise ConfigError(
            f"The extra of connection {connection.conn_id!r} is not a JSON object.",
            code="airflow.connection_extra",
            suggestion='Write it as {"key": "value"}.',
        )
    return extra

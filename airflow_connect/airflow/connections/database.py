"""An Airflow connection to a database as the keys of a connector: `connection.url`, `connection.user`, ...

Address and user are put into the configuration as they are, so that plans and lineage can name the database. The
password, and every other value that may hold a secret, becomes a reference to the connection, such as
`${airflow:shop_db:password}`. Its value travels as that of a reference which a person wrote: see `RunSpec.references`.

Types: `postgres`, `mysql`, `sqlite` and `jdbc` as the forms of Airflow's providers fill them, `mariadb`, `mssql` and
`oracle`, and any type with a URL in its host. For other types, the URL comes from the provider's hook.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from airflow_connect.airflow.connections.official import GetConnection, extra_of, get_connection
from airflow_connect.api.config.values import is_secret_name
from airflow_connect.databases.keys import PASSWORD, URL, USER
from airflow_connect.errors import ConfigError

if TYPE_CHECKING:
    from airflow.sdk import Connection

_JDBC_NAMES = {
    "postgres": "postgresql",
    "postgresql": "postgresql",
    "mysql": "mysql",
    "mariadb": "mariadb",
}
_SQLALCHEMY_NAMES = {"mssql": "mssql", "sqlserver": "mssql", "oracle": "oracle"}
_SQLITE, _JDBC = "sqlite", "jdbc"
# Extras that only say how Airflow's own hooks are to work.
_OF_HOOKS = frozenset(
    {
        "client", "cluster-identifier", "workgroup-name", "aws_conn_id", "cursor", "dialect", "driver_class",
        "driver_path", "local_infile", "sqlalchemy_query", "sqlalchemy_scheme",
    }
)  # fmt: skip
# Extras with which the hook logs in with a token that it fetches itself. It would expire during a run.
_TOKENS = ("iam", "redshift", "redshift-serverless", "azure_conn_id")
_MYSQL_EXTRAS = {"ssl_mode": "sslMode", "unix_socket": "localSocket"}
_MYSQL_SSL = {"ca": "ssl_ca", "cert": "ssl_cert", "key": "ssl_key"}
_PREFIX = "connection."


@dataclass(frozen=True, slots=True)
class ConnectorWithDatabase:
    """The configuration of a connector that knows its database.

    Attributes:
        config: the configuration; what may be secret is a reference.
        references: the values of these references. Secret: never shown, logged or stored.
    """

    config: dict[str, Any]
    references: Mapping[str, str] = field(default_factory=dict, repr=False)


def with_database(
    connector: Mapping[str, Any], conn_id: str | None, get: GetConnection = get_connection
) -> ConnectorWithDatabase:
    """A connector's configuration with the address and credentials of a database connection.

    Args:
        connector: as the DAG gives it.
        conn_id: the connection; None: not used.
        get: reads a connection.

    Raises:
        ConfigError: the connection is missing, is none to a database, has a setting that cannot be honoured, or sets a
            key that the configuration also sets.
        UnavailableError: Airflow did not answer.
    """
    if conn_id is None:
        return ConnectorWithDatabase(dict(connector))
    found = _Keys(get(conn_id))
    own = {name for name, value in connector.items() if value not in (None, "")}
    both = sorted(own & {URL, USER, PASSWORD, *found.config})
    if both:
        raise ConfigError(
            f"The configuration of connector {connector.get('name')} sets {', '.join(both)}, and so does the connection"
            f" {conn_id!r} that db_conn_id names.",
            code="airflow.connection_conflict",
            config_path=both[0],
            suggestion=f"Remove {', '.join(both)} from the configuration, or do not give db_conn_id.",
        )
    return ConnectorWithDatabase({**connector, **found.config}, found.references)


class _Keys:
    """The keys that a connection sets."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.config: dict[str, str] = {}
        self.references: dict[str, str] = {}
        url, parameters = _address(connection)
        self._set_url(url)
        if connection.login:
            self.config[USER] = connection.login
        if connection.password:
            self._refer(PASSWORD, "password", connection.password)
        for name, value in parameters.items():
            if is_secret_name(name):
                self._refer(f"{_PREFIX}{name}", f"extra.{name}", value)
            else:
                self.config[f"{_PREFIX}{name}"] = value

    def _refer(self, key: str, what: str, value: str) -> None:
        reference = f"${{airflow:{self._connection.conn_id}:{what}}}"
        self.config[key] = reference
        self.references[reference] = value

    def _set_url(self, url: str) -> None:
        from airflow_connect.databases.urls import mask

        if mask(url) == url:
            self.config[URL] = url
        else:  # It has credentials inside.
            self._refer(URL, "host" if url == self._connection.host else "uri", url)


def _address(connection: Connection) -> tuple[str, dict[str, str]]:
    """The URL without the connection's own login and password, and the parameters of the driver."""
    kind = str(connection.conn_type or "").lower().partition("+")[0]
    if connection.host and (connection.host.startswith("jdbc:") or "://" in connection.host):
        return connection.host, {}
    if kind in _JDBC_NAMES:
        url = f"jdbc:{_JDBC_NAMES[kind]}://{_authority(connection)}/{quote(connection.schema or '', safe='')}"
        return url, _parameters(connection, _mysql if kind in ("mysql", "mariadb") else _plain)
    if kind in _SQLALCHEMY_NAMES:
        url = f"{_SQLALCHEMY_NAMES[kind]}://{_authority(connection)}/{quote(connection.schema or '', safe='')}"
        return url, _parameters(connection, _plain)
    if kind == _SQLITE:
        return _sqlite_url(connection), {}
    return _url_of_hook(connection), {}


def _authority(connection: Connection) -> str:
    host = connection.host or "localhost"
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"  # an address of IPv6
    return f"{host}:{connection.port}" if connection.port else host


def _sqlite_url(connection: Connection) -> str:
    """As `SqliteHook` reads it: the path is in the host, or in what follows the host of a URI."""
    path = connection.host or ""
    if connection.schema:
        path = f"{path}/{connection.schema.lstrip('/')}"
    if not path:
        raise _refused(connection, "names no file", "Write the path of the database file into its host.")
    options = {name: _text(connection, name, value) for name, value in extra_of(connection).items()}
    if not options:
        return f"jdbc:sqlite:{path}"
    return f"jdbc:sqlite:file:{quote(path, safe='/:')}?{urlencode(options)}"


def _parameters(connection: Connection, translate: Callable[[Connection, str, Any], dict[str, str]]) -> dict[str, str]:
    """The extra as parameters of the driver.

    Raises:
        ConfigError: the extra asks for a login that is not supported.
    """
    extra = extra_of(connection)
    for name in _TOKENS:
        if extra.get(name):
            raise _refused(
                connection,
                f"has the extra {name!r}: it logs in with a token that Airflow's hook would fetch",
                "Such a token expires during a run. Use a connection with a user and a password, or with a client "
                "certificate.",
            )
    found: dict[str, str] = {}
    for name, value in extra.items():
        if name not in _OF_HOOKS and value not in (None, ""):
            found.update(translate(connection, name, value))
    return found


def _plain(connection: Connection, name: str, value: Any) -> dict[str, str]:
    return {name: _text(connection, name, value)}


def _mysql(connection: Connection, name: str, value: Any) -> dict[str, str]:
    """Airflow's hook takes names of the C library; `ssl` is an object, or its text."""
    if name != "ssl":
        return {_MYSQL_EXTRAS.get(name, name): _text(connection, name, value)}
    try:
        settings = json.loads(value) if isinstance(value, str) else value
        return {_MYSQL_SSL[key]: _text(connection, f"ssl.{key}", path) for key, path in settings.items()}
    except (ValueError, AttributeError, KeyError) as error:
        raise _refused(
            connection,
            "has an extra 'ssl' that cannot be honoured",
            'Write it as {"ca": "/path", "cert": "/path", "key": "/path"}, and the mode as "ssl_mode".',
        ) from error


def _text(connection: Connection, name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    raise _refused(connection, f"has an extra {name!r} that is neither text nor a number", "Correct or remove it.")


def _url_of_hook(connection: Connection) -> str:
    """The URL that the hook of the connection's provider would use, without login and password.

    Raises:
        ConfigError: the type has no hook here, or its hook gives no URL.
    """
    from airflow.sdk.exceptions import AirflowException
    from sqlalchemy import engine

    kind = f"is of type {connection.conn_type!r}"
    advice = "Use a connection of type postgres, mysql, sqlite or jdbc, or install the provider of its type."
    try:
        hook = connection.get_hook()  # type: ignore[no-untyped-call]
    except (AirflowException, ImportError) as error:
        raise _refused(connection, f"{kind}, which has no hook here", advice) from error
    if not hasattr(hook, "get_sqlalchemy_engine"):
        raise _refused(connection, f"{kind}, which is not a database", advice)
    try:
        url = engine.make_url(_given_by(hook))
    except Exception as error:  # noqa: BLE001 (code of a provider: its message may contain a secret)
        raise _refused(connection, f"{kind}, whose hook gives no URL ({type(error).__name__})", advice) from None
    # The driver is ours; the credentials are those of the connection.
    bare = engine.URL.create(
        url.get_backend_name(), host=url.host, port=url.port, database=url.database, query=url.query
    )
    return bare.render_as_string(hide_password=False)


def _given_by(hook: Any) -> Any:
    """`sqlalchemy_url`, which not every hook has; `DbApiHook` itself chooses in this order."""
    try:
        return hook.sqlalchemy_url
    except NotImplementedError:
        return hook.get_uri()


def _refused(connection: Connection, what: str, advice: str) -> ConfigError:
    return ConfigError(
        f"Connection {connection.conn_id!r} {what}.",
        code="airflow.connection_type",
        config_path="db_conn_id",
        suggestion=advice,
    )

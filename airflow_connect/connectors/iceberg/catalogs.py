"""Opens the catalog of a configuration, with Java's names of properties, and translates its errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow_connect.connectors.iceberg.keys import CATALOG
from airflow_connect.errors import (
    AccessError,
    ConfigError,
    ConnectError,
    IcebergError,
    MissingPackageError,
    UnavailableError,
    missing_package,
)
from airflow_connect.retrying import Backoff, Jitter, Retry

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

    from airflow_connect.connectors.iceberg.tables import IcebergConfig

CONNECT_TIMEOUT_S, READ_TIMEOUT_S = 10.0, 60.0
_CLASSES = {"RESTCatalog": "rest", "JdbcCatalog": "sql", "GlueCatalog": "glue", "HiveCatalog": "hive"}
_TYPES = {"rest": "rest", "sql": "sql", "jdbc": "sql", "glue": "glue", "hive": "hive"}
_OWN_CLASS = "py-catalog-impl"
"""A class of pyiceberg's `Catalog`, by its dotted path; what it can do is its own affair."""
_DATABASES = ("postgresql", "mysql", "sqlite")
_DEFAULT_NAMESPACE = "default"
"""That each Hive metastore has."""
_JAVA_ONLY = ("io-impl", "s3.path-style-access", "jdbc.user", "jdbc.password", "catalog-impl", "type")
_DEFAULTS = {"s3.connect-timeout": str(CONNECT_TIMEOUT_S), "s3.request-timeout": str(READ_TIMEOUT_S)}
_AWS = {"access_key_id": "s3.access-key-id", "secret_access_key": "s3.secret-access-key",
        "session_token": "s3.session-token", "role_arn": "s3.role-arn"}  # fmt: skip


def lacks_pyiceberg() -> MissingPackageError:
    """The error if pyiceberg is not installed."""
    where = "where the driver and executors run"
    return missing_package("pyiceberg", "iceberg", purpose="The Iceberg sink", where=where)


def catalog_settings(config: IcebergConfig, aws: Mapping[str, str]) -> dict[str, str]:
    """The properties of the catalog by the library's names; may hold secrets.

    Args:
        config: of the sink.
        aws: credentials of an Airflow connection, or {}; keys of the configuration take precedence.

    Raises:
        ConfigError: the kind of catalog is not supported, or its address is missing.
    """
    given = config.catalog_properties
    if _OWN_CLASS in given:
        return {**_DEFAULTS, **given}
    kind = _kind(given)
    if kind != "glue" and not given.get("uri"):
        raise ConfigError(
            f"{CATALOG}uri is missing.",
            code="config.missing",
            suggestion="Set it to the address of the REST catalog or the metastore, or to the URL of the database.",
            config_path=f"{CATALOG}uri",
        )
    found = {**_DEFAULTS, **{key: value for key, value in given.items() if key not in _JAVA_ONLY}, "type": kind}
    if "client.region" in given:
        found.setdefault("s3.region", given["client.region"])
    if not any(name in given for name in _AWS.values()):
        found |= {_AWS[name]: value for name, value in aws.items() if name in _AWS and value}
    if kind == "sql":
        found["uri"] = _database_url(given)
    return found


def open_catalog(config: IcebergConfig, aws: Mapping[str, str]) -> Catalog:
    """Open the catalog.

    Raises:
        ConfigError: the kind of catalog is not supported.
        MissingPackageError: pyiceberg is not installed.
        ConnectError: the catalog refuses, or does not answer.
    """
    settings, retry = catalog_settings(config, aws), Retry(Backoff(0.2, longest_s=1.0, jitter=Jitter.HALF), retries=4)
    doing = f"opening the catalog {config.catalog}"
    while True:
        try:
            catalog = _opened(config.catalog, settings)
        except Exception as error:
            # Several tasks that open an empty database make its tables at the same time, and one is faster.
            found = translate(error, doing)
            if not found.retriable or not retry.pause():
                raise found from error
            continue
        _limit_waiting(catalog)
        return catalog


def _opened(name: str, settings: Mapping[str, str]) -> Catalog:
    try:
        from pyiceberg.catalog import load_catalog
    except ImportError:
        raise lacks_pyiceberg() from None
    if settings.get("type") != "hive":
        return load_catalog(name, **settings)
    from airflow_connect.connectors.iceberg.hive_catalog import CompareAndSetCatalog

    return CompareAndSetCatalog(name, **settings)


def check_properties(catalog: Catalog, name: str, properties: Mapping[str, str]) -> None:
    """Refuse a table that this kind of catalog cannot commit to exactly once.

    Raises:
        IcebergError: says what to do.
    """
    check = getattr(catalog, "check_properties", None)
    if check is not None:
        check(name, properties)


def check_commits(catalog: Catalog, tables: Sequence[str]) -> None:
    """Check that the catalog refuses a commit if another one was faster, where this depends on the server's version.

    Raises:
        ConnectError: it does not, or does not answer.
    """
    check = getattr(catalog, "check_compare_and_set", None)
    if check is not None:
        with translated("asking the Hive metastore to refuse a change"):
            there = {".".join(one) for one in catalog.list_namespaces()}
            own = sorted({name.rpartition(".")[0] for name in tables} & there)
            check(own[0] if own else _DEFAULT_NAMESPACE)


def created_with(catalog: Catalog) -> Mapping[str, str]:
    """Properties of tables that are created in this kind of catalog."""
    found: Mapping[str, str] = getattr(catalog, "created_with", {})
    return found


def close_catalog(catalog: Catalog) -> None:
    """Release the connections of a catalog; some kinds have none."""
    close = getattr(catalog, "close", None)
    if close is not None:
        close()


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Turn errors of the library into ours.

    Raises:
        ConnectError: instead of what the catalog, its database, or the file system has raised.
    """
    try:
        yield
    except ConnectError:
        raise
    except Exception as error:
        raise translate(error, doing) from error


def translate(error: Exception, doing: str) -> ConnectError:
    """Our error for one of the library; `doing`: the current activity, for the message."""
    from pyiceberg import exceptions as theirs
    from requests.exceptions import RequestException
    from sqlalchemy.exc import SQLAlchemyError

    text = _one_line(error)
    if isinstance(error, theirs.UnauthorizedError | theirs.ForbiddenError | theirs.OAuthError | PermissionError):
        return AccessError(
            f"Access was denied while {doing}: {text}.",
            code="iceberg.denied",
            suggestion="Check the credentials of the catalog and of the file system, and what they allow.",
        )
    if isinstance(error, theirs.NoSuchTableError | theirs.NoSuchNamespaceError):
        return IcebergError(
            f"The catalog does not have the table ({doing}): {text}.",
            code="iceberg.no_table",
            suggestion="Create it, or set iceberg.tables.auto-create-enabled=true.",
        )
    temporary: tuple[type[BaseException], ...] = (
        theirs.ServerError, theirs.ServiceUnavailableError, theirs.CommitFailedException,
        theirs.CommitStateUnknownException, RequestException, SQLAlchemyError, OSError, TimeoutError, *_of_thrift(),
    )  # fmt: skip
    if isinstance(error, temporary):
        return UnavailableError(
            f"The catalog or its file system did not do what was asked while {doing}: {text}.",
            code="iceberg.unavailable",
            suggestion="A later run tries again. Check the address, and the health of the server.",
        )
    return IcebergError(
        f"The catalog refused while {doing}: {text}.",
        code="iceberg.refused",
        suggestion="The message of the catalog gives the reason.",
    )


def _of_thrift() -> tuple[type[Exception], ...]:
    """Errors of a Hive metastore."""
    try:
        from thrift.Thrift import TException
    except ImportError:
        return ()  # There is none without it.
    found: type[Exception] = TException
    return (found,)


def _kind(given: Mapping[str, str]) -> str:
    class_name, kind = given.get("catalog-impl", ""), given.get("type", "")
    if class_name and kind:
        raise ConfigError(
            f"Both {CATALOG}type and {CATALOG}catalog-impl are set.",
            code="config.value",
            suggestion="Remove one of them.",
            config_path=f"{CATALOG}catalog-impl",
        )
    found = _CLASSES.get(class_name.rpartition(".")[2]) if class_name else _TYPES.get(kind.lower())
    if found is not None:
        return found
    refused, key = class_name or kind, f"{CATALOG}{'catalog-impl' if class_name else 'type'}"
    what = f"{key} is {refused!r}, which is not supported." if refused else f"{key} is missing."
    raise ConfigError(
        what,
        code="config.value",
        suggestion="Use rest, sql (Java's jdbc), hive or glue. Nessie and most others also speak the REST protocol.",
        config_path=key,
    )


def _database_url(given: Mapping[str, str]) -> str:
    """A URL of SQLAlchemy for Java's URL of a database; one of SQLAlchemy's stays.

    Raises:
        ConfigError: the database is not supported, or a parameter cannot be passed on.
    """
    from airflow_connect.databases.urls import parse_url

    key = f"{CATALOG}uri"
    try:
        address = parse_url(given["uri"], given.get("jdbc.user"), given.get("jdbc.password"))
    except ConfigError as error:
        message, suggestion = (text.replace("connection.url", key) for text in (error.message, error.suggestion))
        raise type(error)(message, code=error.code, suggestion=suggestion, config_path=key) from error
    refused = sorted(name for name, value in address.arguments.items() if not isinstance(value, str | int))
    if refused or address.database not in _DATABASES:
        raise ConfigError(
            f"The database of the catalog cannot be reached with {', '.join(refused)}."
            if refused
            else f"A database of the kind {address.database} cannot hold a catalog.",
            code="config.value",
            suggestion="Use PostgreSQL, MySQL, MariaDB or SQLite, with parameters that are texts and numbers.",
            config_path=key,
        )
    url = address.url.update_query_dict({name: str(value) for name, value in address.arguments.items()})
    return url.render_as_string(hide_password=False)


def _limit_waiting(catalog: Catalog) -> None:
    """Give the REST client time limits: the library has none (version 0.12)."""
    session: Any = getattr(catalog, "_session", None)
    if session is None:
        return
    from requests.adapters import HTTPAdapter

    class Limited(HTTPAdapter):
        """Requests that end."""

        def send(self, request: Any, **options: Any) -> Any:  # type: ignore[override]
            options["timeout"] = options.get("timeout") or (CONNECT_TIMEOUT_S, READ_TIMEOUT_S)
            return super().send(request, **options)

    for scheme in ("http://", "https://"):
        session.mount(scheme, Limited(max_retries=0))


def _one_line(error: Exception) -> str:
    cause = getattr(error, "orig", None) or error  # SQLAlchemy adds the statement with its values.
    text = " ".join(str(cause).split())[:500].rstrip(".")
    return text or type(error).__name__

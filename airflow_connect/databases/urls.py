"""A `connection.url` as JDBC writes it -> a URL of SQLAlchemy.

Sources for the syntax: pgjdbc "Connecting to the Database"; MySQL Connector/J "Connection URL Syntax"; MariaDB
Connector/J "Connection strings"; sqlite-jdbc "How to Specify Database Files"; Microsoft JDBC driver "Building the
connection URL"; Oracle JDBC "Thin-style service names".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, quote, quote_plus, unquote

from airflow_connect.api.config.values import HIDDEN
from airflow_connect.databases.jdbc_parameters import ZERO_DATES, Translated, translate
from airflow_connect.errors import ConfigError, MissingPackageError, missing_package

if TYPE_CHECKING:
    from sqlalchemy import URL

URL_KEY = "connection.url"

_EXAMPLE = "Write it as jdbc:postgresql://host:5432/database."
_DRIVERS = {
    "postgresql": ("postgresql+psycopg", "psycopg", "postgresql"),
    "mysql": ("mysql+pymysql", "pymysql", "mysql"),
    "mariadb": ("mariadb+pymysql", "pymysql", "mysql"),
    "sqlite": ("sqlite+pysqlite", "sqlite3", ""),
    "mssql": ("mssql+pymssql", "pymssql", ""),
    "oracle": ("oracle+oracledb", "oracledb", ""),
}
"""Subprotocol -> SQLAlchemy's driver name, the package that must be installed, and the extra that installs it."""

_ALIASES = {"sqlserver": "mssql", "postgres": "postgresql"}
_DATABASES = {"mariadb": "mysql"}
_SECRET_PARAMETER = re.compile(
    r"((?:password|passwd|pwd|sslpassword)\s*=)\s*(?:\{(?:[^}]|\}\})*\}?|[^&;,)]*)", re.IGNORECASE
)
_CREDENTIALS = (
    # A password may have any character, also an @ or a / that is not written as %40 or %2F.
    re.compile(r"(//)[^?]*(@)"),
    re.compile(r"(//)[^/@?]*:[^/@=&]*\?[^=&@]*(@)"),
    re.compile(r"(oracle:\w+:)[^@]*/.*(@)", re.IGNORECASE),
    re.compile(r"(^jdbc:\w+:/?)[^/@]*:.*(@)", re.IGNORECASE),
)


@dataclass(frozen=True, slots=True)
class DatabaseAddress:
    """Where a database is and how to connect to it.

    Attributes:
        url: for `sqlalchemy.create_engine`; holds the password, which its `str` hides.
        arguments: keyword arguments of the driver's `connect`. May hold secrets.
        database: `postgresql`, `mysql` (also MariaDB), `sqlite`, `mssql` or `oracle`.
        ignored: parameters that have no effect here.
        secrets: texts that must not appear in a message.
        zero_dates: what a source makes of MySQL's date 0000-00-00: `exception`, `null` or `round`.
        hides_statements: whether a statement has a secret, so that words of the database about it are not shown.
    """

    url: URL
    database: str
    arguments: Mapping[str, Any] = field(default_factory=dict, repr=False)
    ignored: tuple[str, ...] = ()
    secrets: tuple[str, ...] = field(default=(), repr=False)
    zero_dates: str = "exception"
    hides_statements: bool = False

    @property
    def display(self) -> str:
        """Where it is, for messages and lineage: no credentials, no parameters."""
        where = self.url.host or ""
        if self.url.port:
            where += f":{self.url.port}"
        if self.database == "sqlite":
            return f"sqlite:{self.url.database or ':memory:'}"
        return mask(f"{self.database}://{where}/{self.url.database or ''}")

    def scrub(self, text: str) -> str:
        """`text` without this address's secrets."""
        for secret in self.secrets:
            text = text.replace(secret, HIDDEN)
        return text


def mask(url: str) -> str:
    """A `connection.url` that can be shown: without user, password and secret parameters."""
    for pattern in _CREDENTIALS:
        url = pattern.sub(rf"\1{HIDDEN}\2", url)
    return _SECRET_PARAMETER.sub(rf"\1{HIDDEN}", url)


def parse_url(
    text: str, user: str | None = None, password: str | None = None, properties: Mapping[str, str] | None = None
) -> DatabaseAddress:
    """The address in a `connection.url`.

    Args:
        text: `jdbc:postgresql:`, `jdbc:mysql:`, `jdbc:mariadb:`, `jdbc:sqlite:`, `jdbc:sqlserver:` or
            `jdbc:oracle:thin:`, or a URL of SQLAlchemy.
        user, password: `connection.user` and `connection.password`; they take precedence over those in the URL.
        properties: other `connection.*` keys, without the prefix; the URL takes precedence over them.

    Raises:
        ConfigError: the URL or a parameter is not valid, or not supported. No message has a secret.
        MissingPackageError: the driver is not installed.
    """
    family, scheme, is_jdbc = _family_of(text)
    needs_driver(family, scheme.partition("+")[2])
    parts = _PARSERS[family](text[len(f"jdbc:{scheme}:") :], text) if is_jdbc else _sqlalchemy_parts(text)
    return _address(family, scheme if "+" in scheme else "", parts, (user, password, properties or {}))


class Place(NamedTuple):
    """Where a URL leads, without credentials and parameters.

    Attributes:
        database: as in `DatabaseAddress`.
        host: in brackets if it is an address of IPv6; "" for SQLite.
        port: None: the database's own.
        name: of the database; for SQLite the path of its file.
        schema: the first one of PostgreSQL's `currentSchema`, or "".
    """

    database: str
    host: str
    port: int | None
    name: str
    schema: str


def place_of(text: str) -> Place:
    """Where a `connection.url` leads. The driver need not be installed.

    Raises:
        ConfigError: the URL is not valid, or its database is not supported.
    """
    family, scheme, is_jdbc = _family_of(text)
    parts = _PARSERS[family](text[len(f"jdbc:{scheme}:") :], text) if is_jdbc else _sqlalchemy_parts(text)
    schema = parts.parameters.get("currentSchema", "").partition(",")[0].strip()
    if family == "sqlite":
        path = parts.database.removeprefix("file:")
        return Place(family, "", None, unquote(path) if path != parts.database else path, "")
    host = f"[{parts.host}]" if ":" in parts.host else parts.host
    return Place(_DATABASES.get(family, family), host or "localhost", parts.port, parts.database, schema)


def _family_of(text: str) -> tuple[str, str, bool]:
    """The key of `_DRIVERS`, the scheme as written, and whether it is a URL of JDBC.

    Raises:
        ConfigError: the database is not supported.
    """
    is_jdbc = text.lower().startswith("jdbc:")
    if not is_jdbc and "://" not in text:
        raise ConfigError(
            f"{URL_KEY} is not a URL. It is not shown, because it may have a password.",
            code="database.url",
            suggestion=_EXAMPLE,
            config_path=URL_KEY,
        )
    scheme = (text[5:] if is_jdbc else text).partition(":")[0].lower()
    family = _ALIASES.get(scheme.partition("+")[0], scheme.partition("+")[0])
    if family not in _DRIVERS or (is_jdbc and "+" in scheme):
        raise _invalid(text, f"its database {scheme[:40]!r} is not supported", sorted((*_DRIVERS, "sqlserver")))
    return family, scheme, is_jdbc


def needs_driver(family: str, driver: str = "") -> None:
    """Check that the Python driver of a database can be imported.

    Args:
        family: `postgresql`, `mysql`, `mariadb`, `sqlite`, `mssql` or `oracle`.
        driver: a driver that the URL names explicitly, or "".

    Raises:
        MissingPackageError: it cannot; the suggestion says what to install.
    """
    from importlib.util import find_spec

    _, package, extra = _DRIVERS[family]
    if driver:
        package, extra = (driver, extra if driver == package else "")
    if package in ("pysqlite", "sqlite3") or find_spec(package) is not None:
        return
    purpose = f"The {family} database in {URL_KEY}"
    if extra:
        raise missing_package(package, extra, purpose=purpose, where="on every machine", config_path=URL_KEY)
    raise MissingPackageError(
        f"{purpose} needs the Python package {package}, which is not installed.",
        suggestion=f"Run this on every machine: pip install {package}",
        config_path=URL_KEY,
    )


@dataclass(slots=True)
class _Parts:
    """A URL in parts."""

    host: str = ""
    port: int | None = None
    database: str = ""
    user: str | None = None
    password: str | None = None
    parameters: dict[str, str] = field(default_factory=dict)
    arguments: dict[str, Any] = field(default_factory=dict)
    query: dict[str, Any] = field(default_factory=dict)


def _address(
    family: str, driver: str, parts: _Parts, given: tuple[str | None, str | None, Mapping[str, str]]
) -> DatabaseAddress:
    from sqlalchemy import URL

    user, password, properties = given
    database = _DATABASES.get(family, family)
    from_properties = translate(database, properties, "connection.*")
    from_url = translate(database, parts.parameters, URL_KEY)
    user = _first(user, parts.user, from_url.user, from_properties.user)
    password = _first(password, parts.password, from_url.password, from_properties.password)
    arguments = {**from_properties.arguments, **from_url.arguments, **parts.arguments}
    zero_dates = arguments.pop(ZERO_DATES, "exception")
    if database == "mysql":
        arguments = _mysql_arguments(arguments)
    name = parts.database or from_url.database or from_properties.database
    url = URL.create(
        driver or _DRIVERS[family][0],
        username=user,
        password=password,
        host=parts.host or None,
        port=parts.port,
        database=name or None,
        query=parts.query,
    )
    return DatabaseAddress(
        url,
        database,
        arguments,
        _ignored(from_url, from_properties),
        _secrets(password, arguments, parts.query),
        zero_dates,
    )


def _first(*values: str | None) -> str | None:
    return next((value for value in values if value is not None), None)


def _ignored(*translated: Translated) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for part in translated for name in part.ignored))


def _secrets(password: str | None, arguments: Mapping[str, Any], query: Mapping[str, Any]) -> tuple[str, ...]:
    """Every form in which a driver may repeat a secret, the longest first."""
    plain = {password, *(str(v) for k, v in [*arguments.items(), *query.items()] if "password" in k.lower())}
    forms = {
        form for text in plain if text for form in (text, quote(text, safe=""), quote_plus(text), repr(text)[1:-1])
    }
    return tuple(sorted(forms, key=len, reverse=True))


def _mysql_arguments(arguments: dict[str, Any]) -> dict[str, Any]:
    """PyMySQL's arguments: its charset, and an SSL context's settings for the mode that was chosen."""
    mode = arguments.pop("tls", "")
    if mode == "off":
        arguments["ssl_disabled"] = True
    elif mode in ("on", "ca", "full"):
        arguments["ssl_verify_cert"] = mode != "on"
        arguments["ssl_verify_identity"] = mode == "full"
        if mode == "on":
            arguments["ssl"] = {"check_hostname": False, "verify_mode": "none"}
    if "read_timeout" in arguments:
        arguments["write_timeout"] = arguments["read_timeout"]
    return {"charset": "utf8mb4", **arguments}


# --- the syntax of each database ------------------------------------------------------------------------------------


def _invalid(url: str, reason: str, accepted: list[str] | None = None) -> ConfigError:
    what = f"Supported: {', '.join(accepted)}." if accepted else _EXAMPLE
    return ConfigError(
        f"{URL_KEY} {mask(url)[:200]} is not valid: {reason}.",
        code="database.url",
        suggestion=what,
        config_path=URL_KEY,
    )


def _parameters(query: str, url: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(query, keep_blank_values=True, separator="&", errors="strict"))
    except ValueError:
        raise _invalid(url, "its parameters are not readable; they follow ? as name=value, separated by &") from None


_HOST = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%]+\]|[^\[\]:/?#@\s,=()]*)(?::(?P<port>\d{1,5}))?")


def _host_and_port(text: str, url: str) -> tuple[str, int | None]:
    found = _HOST.fullmatch(text)
    if found is None or int(found["port"] or 0) > 65535:
        raise _invalid(url, "its host and port are not readable")
    return found["host"].strip("[]"), int(found["port"]) if found["port"] else None


def _network(rest: str, url: str) -> tuple[list[tuple[str, int | None]], _Parts]:
    """`//[user[:password]@]host[:port][,host[:port]...]/[database][?parameters]`."""
    body, _, query = rest.partition("?")
    parts = _Parts(parameters=_parameters(query, url))
    if not body.startswith("//"):
        raise _invalid(url, "// must follow the name of the database")
    authority, _, database = body[2:].partition("/")
    credentials, at, hosts = authority.rpartition("@")
    if at:
        user, colon, password = credentials.partition(":")
        parts.user, parts.password = unquote(user), unquote(password) if colon else None
    if "/" in database:
        raise _invalid(url, "there is a / in the name of the database; in a password it is written %2F")
    if _SECRET_PARAMETER.search(database):
        raise _invalid(url, "its parameters must follow ?, separated by &")
    parts.database = unquote(database)
    return [_host_and_port(host, url) for host in hosts.split(",")], parts


def _postgresql(rest: str, url: str) -> _Parts:
    if not rest.startswith("//"):  # jdbc:postgresql:database, jdbc:postgresql:/, jdbc:postgresql:
        body, _, query = rest.partition("?")
        if "@" in body or ":" in body:
            raise _invalid(url, "// must follow jdbc:postgresql: if there is a host or a user")
        return _Parts(host="localhost", database=unquote(body.strip("/")), parameters=_parameters(query, url))
    hosts, parts = _network(rest, url)
    if len(hosts) > 1:
        parts.arguments["host"] = ",".join(host or "localhost" for host, _ in hosts)
        parts.arguments["port"] = ",".join(str(port or 5432) for _, port in hosts)
    parts.host, parts.port = hosts[0][0] or "localhost", hosts[0][1]
    return parts


def _mysql(rest: str, url: str) -> _Parts:
    if rest.split("//", maxsplit=1)[0] not in ("",):
        raise _invalid(url, "replication, load balancing and srv URLs are not supported; name one host")
    hosts, parts = _network(rest, url)
    if len(hosts) > 1:
        raise _invalid(url, "several hosts are not supported for MySQL and MariaDB; name one")
    parts.host, parts.port = hosts[0][0] or "localhost", hosts[0][1]
    return parts


def _sqlite(rest: str, url: str) -> _Parts:
    body, _, query = rest.partition("?")
    if body.startswith(":resource:"):
        raise _invalid(url, "a resource of a Java program cannot be opened; name a file")
    if body == "" or body == ":memory:":
        raise _invalid(url, "a database in memory exists only inside one connection; name a file")
    if body.startswith("file:"):
        # SQLite's own URI: its parameters are SQLite's, such as mode=ro.
        return _Parts(database=f"file:{body[5:]}", query={"uri": "true", **_parameters(query, url)})
    return _Parts(database=body, parameters=_parameters(query, url))


def _sqlserver(rest: str, url: str) -> _Parts:
    if not rest.startswith("//"):
        raise _invalid(url, "// must follow jdbc:sqlserver:")
    server, *properties = _split_properties(rest[2:])
    parameters = {}
    for item in properties:
        name, equals, value = item.partition("=")
        if not item.strip():
            continue
        if not equals:
            raise _invalid(url, "its properties are not readable; they follow ; as name=value")
        value = value.strip()
        parameters[name.strip()] = value[1:-1].replace("}}", "}") if value[:1] == "{" else value
    host, instance = server, ""
    if "\\" in server:
        host, _, rest_of = server.partition("\\")
        instance, colon, port = rest_of.partition(":")
        host += colon + port
    folded = {name.lower(): name for name in parameters}
    name = parameters.pop(folded["servername"], "") if "servername" in folded else ""
    port_name = folded.get("portnumber") or folded.get("port")
    where, number = _host_and_port(host, url)
    if port_name:
        number = _host_and_port(f"x:{parameters.pop(port_name)}", url)[1]
    where = where or name or "localhost"
    if "instancename" in folded:
        instance = parameters.pop(folded["instancename"])
    return _Parts(host=f"{where}\\{instance}" if instance and not number else where, port=number, parameters=parameters)


def _split_properties(text: str) -> list[str]:
    """Split at `;`, but not inside braces, which quote a value."""
    parts = [""]
    for piece in re.findall(r"\{(?:[^}]|\}\})*\}|[^;{]+|;|\{", text):
        if piece == ";":
            parts.append("")
        else:
            parts[-1] += piece
    return parts


_ORACLE_SID = re.compile(r"(?P<host>[^/:@]+):(?P<port>\d{1,5}):(?P<sid>[^/:?]+)")


def _oracle(rest: str, url: str) -> _Parts:
    kind, _, rest = rest.partition(":")
    if kind.lower() != "thin":
        raise _invalid(url, "only jdbc:oracle:thin: is supported")
    credentials, _, target = rest.rpartition("@")
    parts = _Parts()
    if credentials:
        user, slash, password = credentials.partition("/")
        parts.user, parts.password = user, password.strip('"') if slash else None
    if target.lstrip().startswith("("):
        parts.arguments["dsn"] = target
        return parts
    target, _, query = target.partition("?")
    parts.parameters = _parameters(query, url)
    sid = _ORACLE_SID.fullmatch(target)
    if sid is not None:
        parts.host, parts.port, parts.database = sid["host"], int(sid["port"]), sid["sid"]
        return parts
    protocol, mark, rest_of = target.rpartition("//")
    if mark and protocol not in ("", "tcp:", "tcps:"):
        raise _invalid(url, "the protocol must be tcp or tcps")
    where, slash, service = rest_of.partition("/")
    if not slash:
        parts.arguments["dsn"] = where  # a name in tnsnames.ora
        return parts
    parts.host, parts.port = _host_and_port(where, url)
    if protocol == "tcps:":
        parts.arguments["protocol"] = "tcps"
    parts.query = {"service_name": unquote(service)}
    return parts


def _sqlalchemy_parts(text: str) -> _Parts:
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise _invalid(text, "it is neither a JDBC URL nor a URL of SQLAlchemy") from None
    if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
        raise _invalid(text, "a database in memory exists only inside one connection; name a file")
    password = None if url.password is None else str(url.password)
    return _Parts(
        host=url.host or "",
        port=url.port,
        database=url.database or "",
        user=url.username,
        password=password,
        query=dict(url.query),
    )


_PARSERS: Mapping[str, Callable[[str, str], _Parts]] = {
    "postgresql": _postgresql,
    "mysql": _mysql,
    "mariadb": _mysql,
    "sqlite": _sqlite,
    "mssql": _sqlserver,
    "oracle": _oracle,
}

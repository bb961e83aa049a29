"""Tables of databases as assets, as a configuration names them, and the topics that a JDBC source writes.

URIs are those of Airflow's providers: `postgres://host:port/database/schema/table` and
`mysql://host:port/database/table`, also for MariaDB. SQLite has no provider with a rule for URIs: a table is
`sqlite:/path/of/the/file/table` (Airflow drops the empty host of `sqlite:///`). Names are percent-encoded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from airflow.sdk import Asset

from airflow_connect.databases.identifiers import split_name
from airflow_connect.databases.urls import place_of
from airflow_connect.errors import ConfigError

if TYPE_CHECKING:
    from airflow_connect.databases.urls import Place

SCHEMES = ("postgres", "mysql", "sqlite")
_UNKNOWN = re.compile(r"\$\{|\{\{|\{%")
_TOPIC = "${topic}"
_PORTS = {"postgresql": 5432, "mysql": 3306}
_QUOTES = {"mysql": "`"}
_REGEX_CHARACTERS = re.compile(r"[\[\](){}*+?^$|]|\\[^.]")
_PARAMETER = re.compile(r"[;?&][\w.-]+=")
_DEFAULT_SCHEMA = "public"


class Names(NamedTuple):
    """Names of tables, as a configuration has them."""

    url: str
    tables: Sequence[str]
    schema: str = ""


def written_tables(connector: Mapping[str, Any], topics: Iterable[str], *, may_rename: bool) -> list[Asset]:
    """The tables of a JDBC sink.

    Args:
        connector: its configuration.
        topics: that it reads, as far as they are known.
        may_rename: whether a transformation may change the topic of a record.
    """
    written = str(connector.get("table.name.format") or _TOPIC).strip()
    if _TOPIC not in written:
        tables = [written]
    elif may_rename:
        return []
    else:
        tables = [written.replace(_TOPIC, topic) for topic in topics if topic]
    return table_assets(Names(_known(connector, "connection.url"), tables))


def read_tables(connector: Mapping[str, Any]) -> list[Asset]:
    """The tables of a JDBC source that its lists name. None for a query, and for patterns."""
    schema = _known(connector, "schema.pattern")
    if "%" in schema:
        schema = ""
    return table_assets(Names(_known(connector, "connection.url"), _listed(connector), schema))


def written_topics(connector: Mapping[str, Any]) -> list[str]:
    """The topics of a JDBC source, as far as the configuration names its tables."""
    prefix = str(connector.get("topic.prefix") or "").strip()
    if _UNKNOWN.search(prefix):
        return []
    if str(connector.get("query") or "").strip():
        return [prefix] if prefix else []
    place = _place(_known(connector, "connection.url"))
    mark = _QUOTES.get(place.database if place else "", '"')
    names = (_parts(table, mark) for table in _listed(connector))
    return [prefix + parts[-1] for parts in names if parts]


def table_assets(names: Names) -> list[Asset]:
    """The assets of tables; [] if it is not known where the database is."""
    place = _place(names.url)
    if place is None:
        return []
    found = (_uri(place, _parts(table, _QUOTES.get(place.database, '"')), names.schema) for table in names.tables)
    return [Asset(uri) for uri in dict.fromkeys(found) if uri]


def dataset_name(uri: str) -> tuple[str, str]:
    """Namespace and name of a table by OpenLineage's naming (its specification, "Naming").

    It has no rule for SQLite. As for files, the namespace is the scheme and the name a path.
    """
    parts = urlsplit(uri)
    if parts.scheme == "sqlite":
        return "sqlite", unquote(parts.path)
    return f"{parts.scheme}://{parts.netloc}", ".".join(unquote(part) for part in parts.path.split("/")[1:])


def _known(config: Mapping[str, Any], key: str) -> str:
    value = str(config.get(key) or "").strip()
    return "" if _UNKNOWN.search(value) else value


def _listed(connector: Mapping[str, Any]) -> list[str]:
    """Names in `table.whitelist`, and those in `table.include.list` that are names rather than patterns."""
    if str(connector.get("query") or "").strip():
        return []
    names = [name.strip() for name in _known(connector, "table.whitelist").split(",") if name.strip()]
    if names:
        return names
    patterns = [pattern.strip() for pattern in _known(connector, "table.include.list").split(",") if pattern.strip()]
    if any(_REGEX_CHARACTERS.search(pattern) or re.search(r"(?<!\\)\.", pattern) for pattern in patterns):
        return []
    return [pattern.replace(r"\.", ".") for pattern in patterns]


def _place(url: str) -> Place | None:
    """Where a database is; None if it is not known, or the URL is wrong, which the run reports."""
    if not url or _UNKNOWN.search(url):
        return None
    try:
        place = place_of(url)
    except ConfigError:
        return None
    # `;password=...` is how other databases write parameters; here it is part of the name, and assets are not secret.
    return place if place.name and not _PARAMETER.search(place.name) else None


def _parts(name: str, mark: str) -> list[str]:
    """The parts of a table's name; [] if it is not known or not valid, which the run reports."""
    if _UNKNOWN.search(name):
        return []
    try:
        parts = split_name(name, mark, mark)
    except ConfigError:
        return []
    return parts if len(parts) <= 3 else []


def _uri(place: Place, parts: list[str], schema: str) -> str:
    if not parts:
        return ""
    if place.database == "sqlite":
        return f"sqlite:{quote(place.name)}/{quote(parts[-1], safe='')}" if place.name.startswith("/") else ""
    if place.database == "postgresql":
        *_, catalog, named, table = ["", "", *parts]
        path = [catalog or place.name, named or schema or place.schema or _DEFAULT_SCHEMA, table]
    elif place.database == "mysql":
        path = [parts[0] if len(parts) > 1 else place.name, parts[-1]]
    else:
        return ""
    scheme = "postgres" if place.database == "postgresql" else place.database
    where = f"{place.host}:{place.port or _PORTS[place.database]}"
    return f"{scheme}://{where}/" + "/".join(quote(part, safe="") for part in path)

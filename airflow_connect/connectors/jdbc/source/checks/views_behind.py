"""The views that a query names: with another definition, the query may have other rows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from airflow_connect.databases.identifiers import TableId

if TYPE_CHECKING:
    from airflow_connect.connectors.jdbc.source.read.reading import Reading

_VIEWS = {
    "postgresql": """
SELECT current_database(), n.nspname, c.relname
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('v', 'm') AND n.nspname NOT LIKE 'pg\\_%%' AND n.nspname <> 'information_schema'
""",
    "mysql": """
SELECT table_schema, '', table_name FROM information_schema.views
WHERE table_schema NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys')
""",
}
"""SQLite tells of no single view what it is: any change of its schema counts for a query."""


def views_named(reading: Reading) -> list[TableId]:
    """The views of any schema whose name is in the text of the query, whatever it means there.

    Other views behind these are part of their identity.
    """
    statement = _VIEWS.get(reading.name)
    query = reading.config.query
    if statement is None or not query:
        return []
    views = [TableId(*row) for row in reading.connection.exec_driver_sql(statement)]
    return [view for view in views if re.search(rf"(?<!\w){re.escape(view.table)}(?!\w)", query, re.IGNORECASE)]

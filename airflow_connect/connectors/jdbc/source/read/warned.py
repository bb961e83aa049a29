"""What MySQL and MariaDB warn of while they compute a result: values that are cut, or null in place of an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_connect.counting import format_count, plural
from airflow_connect.databases.reasons import reason_of

if TYPE_CHECKING:
    from airflow_connect.connectors.jdbc.source.read.criteria import Source
    from airflow_connect.connectors.jdbc.source.read.reading import Reading

_HARMLESS = "Note"
_OF_STATEMENTS = frozenset({1287, 1681, 3719, 3778})
"""Deprecated syntax, functions and character sets."""
_SHOWN = 5


def note_warnings(reading: Reading, source: Source, cursor: Any) -> None:
    """Name the warnings about a result that was read to its end.

    A SELECT gets no error for a value that cannot be computed: GROUP_CONCAT cuts after `group_concat_max_len`, CAST
    takes what it understands of a text, and a text longer than `max_allowed_packet` or a division by 0 becomes null.

    Args:
        reading: connected; gets the note.
        source: that was read.
        cursor: of the driver, at the end of the result. No statement was executed since.
    """
    total = getattr(cursor, "warning_count", 0) if reading.name == "mysql" else 0
    if not total:
        return
    listed = reading.connection.exec_driver_sql("SHOW WARNINGS").all()
    found = [(code, text) for level, code, text in listed if level != _HARMLESS and code not in _OF_STATEMENTS]
    if not found:
        return
    # The server keeps the first `max_error_count` of them.
    count = plural(len(found), "warning") if total <= len(listed) else f"at least {plural(len(found), 'warning')}"
    first: dict[int, str] = {}
    for code, text in found:
        first.setdefault(code, str(code) if _hides_words(reading) else reason_of(Exception(code, text)))
    what = "the query" if source.table is None else source.name
    more = f" and {format_count(len(first) - _SHOWN)} more" if len(first) > _SHOWN else ""
    reading.note(
        f"The database gave {count} when {what} was read: values may be cut, changed or null that it could not"
        f" compute, and were copied so: {'; '.join(list(first.values())[:_SHOWN])}{more}. Look at the statement, and at"
        " group_concat_max_len and max_allowed_packet of the server."
    )


def _hides_words(reading: Reading) -> bool:
    return reading.config.connection.address.hides_statements

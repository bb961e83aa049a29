"""Bytes in a column of texts of MySQL and MariaDB: which ones are no text of its character set.

In strict mode the servers refuse most of them. But they put zero bytes before those that are no whole number of units
of UCS-2, UTF-16 and UTF-32, and take bytes for which a set of one byte has no character: readers get a question mark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_connect.api.schema import DECIMAL, Type
from airflow_connect.databases.connecting import is_of_a_driver
from airflow_connect.databases.failures import Failure, kind_of
from airflow_connect.errors import DataError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from airflow_connect.connectors.jdbc.sink.fields import SinkField
    from airflow_connect.databases.identifiers import TableId

_CHARSETS = """
SELECT column_name, character_set_name FROM information_schema.columns
WHERE table_schema = COALESCE(:schema, DATABASE()) AND table_name = :name AND character_set_name IS NOT NULL
"""
_LONGEST = "SELECT maxlen FROM information_schema.character_sets WHERE character_set_name = :name"
_CODECS = {
    "utf8": "utf-8", "utf8mb3": "utf-8", "utf8mb4": "utf-8", "ucs2": "utf-16-be", "utf16": "utf-16-be",
    "utf16le": "utf-16-le", "utf32": "utf-32-be", "ascii": "ascii",
}  # fmt: skip
_BYTES = bytes(range(256))
_NO_CHARACTER = "?"


@dataclass(frozen=True, slots=True)
class Charset:
    """A character set.

    Attributes:
        name: as the server writes it.
        lost: bytes that have no character, of a set of one byte.
    """

    name: str
    lost: frozenset[int] = frozenset()

    def has(self, value: Any) -> bool:
        """Whether bytes are a text of the set, as far as the server itself does not look.

        A transformation may have made something else of them: that is for the server.
        """
        if not isinstance(value, bytes | bytearray):
            return True
        codec = _CODECS.get(self.name)
        if codec is None:
            return self.lost.isdisjoint(value)
        try:
            value.decode(codec)
        except UnicodeDecodeError:
            return False
        return True

    def error(self, field: str, where: str) -> DataError:
        """Why bytes are refused. `field`, `where`: of the record."""
        return DataError(
            f"The field {field} of {where} has bytes that are no text of the character set {self.name}, which its"
            " column has: the database would change them, or show something else.",
            code="database.value",
            suggestion="Give the column a type of bytes, such as VARBINARY or BLOB, or correct the record.",
        )


def charsets_in_mysql(connection: Connection, table: TableId) -> dict[str, str]:
    """The names of the character sets of columns that have one."""
    from sqlalchemy import text

    found = connection.execute(text(_CHARSETS), {"schema": table.catalog or None, "name": table.table})
    return {str(name): str(charset).lower() for name, charset in found}


class Charsets:
    """Knows the character sets of one server, each from when it is first asked for."""

    def __init__(self) -> None:
        """None yet."""
        self._known: dict[str, Charset] = {}

    def of_bytes(
        self, connection: Connection, fields: Sequence[SinkField], columns: Mapping[str, str], names: Mapping[str, str]
    ) -> dict[str, Charset]:
        """The character sets of columns of texts into which bytes are written.

        Args:
            connection: outside a transaction.
            fields: of the records.
            columns: field -> column.
            names: column -> name of its character set, if it has one.
        """
        raw = [columns.get(f.name, "") for f in fields if f.schema.type is Type.BYTES and f.schema.name != DECIMAL]
        found = {column: self._named(connection, names[column]) for column in raw if column in names}
        if found:
            connection.rollback()
        return found

    def _named(self, connection: Connection, name: str) -> Charset:
        if name not in self._known:
            self._known[name] = Charset(name, frozenset() if name in _CODECS else _lost_in(connection, name))
        return self._known[name]


def _lost_in(connection: Connection, name: str) -> frozenset[int]:
    from sqlalchemy import text

    if connection.execute(text(_LONGEST), {"name": name}).scalar() != 1:
        return frozenset()  # The server looks whether bytes are characters of several of them.
    # A name of the server's own, which has letters, digits and underscores only.
    asked = f"SELECT CONVERT(CONVERT(X'{_BYTES.hex()}' USING {name}) USING utf8mb4)"
    try:
        read = str(connection.exec_driver_sql(asked).scalar_one() or "")
    except Exception as error:
        if not is_of_a_driver(error) or kind_of(error) not in (Failure.OTHER, Failure.VALUE):
            raise
        connection.rollback()
        return frozenset()  # Whether such bytes are stored is left to the server.
    return frozenset(n for n, letter in enumerate(read) if letter == _NO_CHARACTER and n != ord(_NO_CHARACTER))

"""Messages with their schema in an envelope, `{"schema":S,"payload":P}`, to columns: a piece for each run of equal S.

Producers write the same text before the payload into each message, so that text is looked for, not parsed. The payloads
are read as messages with a fixed schema (`columns.py`), and everything else is left to JsonConverter, record by record.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_connect.api.columns import ValueColumns
from airflow_connect.api.schema import Schema, Type, struct
from airflow_connect.converters.json.columns import JsonColumns, json_columns

if TYPE_CHECKING:
    from airflow_connect.converters.unread import Unread

_MOST_PIECES = 16
"""Maximum number of pieces; more of them are not worth columns each."""
_END = b"}"

PrefixOf = Callable[[bytes], tuple[bytes, Schema] | None]
"""The text before the payload of a message, and its schema; None if it has no envelope with a schema."""


@dataclass(frozen=True, slots=True)
class MemberColumns:
    """Reads payloads that are no objects, each as the only member of one."""

    columns: JsonColumns

    def read(self, payloads: Any) -> Any | None:
        """The values, or None."""
        objects = pc.binary_join_element_wise(b'{"v":', payloads, _END, b"")
        found = self.columns.read(objects)
        # A payload that is null is no value.
        return None if found is None or found.field(0).null_count else found.field(0)


def payload_columns(schema: Schema, unread: Unread, *, fills_defaults: bool) -> JsonColumns | MemberColumns | None:
    """A reader for JSON texts of `schema`, or None if a part of it has no columnar form.

    Args:
        schema: of all texts.
        unread: gets the members that the schema does not have, for each text.
        fills_defaults: whether a null in an object, or a missing member, is the default of its schema.
    """
    if schema.type is Type.STRUCT:
        return json_columns(schema, unread, fills_defaults=fills_defaults)
    # A member that the schema does not have is not the payload's: there is text after the payload.
    columns = json_columns(struct(("v", schema)), unread, is_whole=True)
    return None if columns is None else MemberColumns(columns)


class EnvelopeColumns:
    """Reads messages of any schemas."""

    def __init__(self, prefix_of: PrefixOf, unread: Unread, *, fills_defaults: bool) -> None:
        """Both as in `payload_columns`."""
        self._fills_defaults = fills_defaults
        self._prefix_of = prefix_of
        self._unread = unread
        self._readers: dict[Schema, JsonColumns | MemberColumns | None] = {}

    def read(self, messages: Any) -> list[ValueColumns] | None:
        """Pieces of the messages (binary[n] without nulls) in order, or None if one of them is not vectorizable."""
        pieces: list[ValueColumns] = []
        start = 0
        while start < len(messages):
            if len(pieces) == _MOST_PIECES:
                return None
            found = self._prefix_of(messages[start].as_py())
            if found is None:
                return None
            prefix, schema = found
            stop = start + _run(messages.slice(start), prefix)
            payloads = pc.binary_slice(messages.slice(start, stop - start), len(prefix), -len(_END))
            values = self._values(schema, payloads)
            if values is None:
                return None
            if pieces and pieces[-1].schema is schema:  # The same schema, spelled in another way.
                values = pa.concat_arrays([pieces.pop().values, values])
            pieces.append(ValueColumns(schema, values))
            start = stop
        return pieces

    def _values(self, schema: Schema, payloads: Any) -> Any | None:
        if schema not in self._readers:
            if len(self._readers) >= _MOST_PIECES:
                self._readers.clear()
            self._readers[schema] = payload_columns(schema, self._unread, fills_defaults=self._fills_defaults)
        reader = self._readers[schema]
        return None if reader is None else reader.read(payloads)


def _run(messages: Any, prefix: bytes) -> int:
    """How many messages from the first on have the prefix and end as an envelope does; the first one has."""
    before: Any = prefix  # Bytes are a pattern, too.
    after: Any = _END
    fits: Any = pc.and_(pc.starts_with(messages, before), pc.ends_with(messages, after))
    first_other = pc.index(fits, pa.scalar(False)).as_py()
    return len(messages) if first_other < 0 else first_other

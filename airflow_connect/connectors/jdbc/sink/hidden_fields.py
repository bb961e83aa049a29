"""Fields of values that are not written, because a column of the primary key has their name.

Confluent's sink drops them without a word. Where both have the same value, as in records of Debezium, nothing is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_connect.api.schema import Schema, Type
from airflow_connect.connectors.jdbc.sink import keys
from airflow_connect.connectors.jdbc.sink.keys import JdbcSinkKeys as Keys
from airflow_connect.counting import counted

if TYPE_CHECKING:
    from airflow_connect.api.columns import RecordColumns
    from airflow_connect.api.record import SinkRecord
    from airflow_connect.connectors.jdbc.sink.columns.chunk import ColumnChunk
    from airflow_connect.connectors.jdbc.sink.config import MappingConfig
    from airflow_connect.connectors.jdbc.sink.fields import SinkField
    from airflow_connect.databases.identifiers import TableId

_COMPARED_AS_COLUMNS = frozenset({Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.STRING, Type.BOOLEAN})


@dataclass(slots=True)
class _Found:
    count: int
    first: str


class HiddenFields:
    """Counts the records whose value has another value than the primary key in a field of the same name."""

    def __init__(self) -> None:
        """None was seen yet."""
        self._found: dict[tuple[TableId, str], _Found] = {}

    def see(self, table: TableId, hidden: Sequence[SinkField], record: SinkRecord) -> None:
        """Look at a record that is written.

        Args:
            table: where it goes.
            hidden: see `hidden_by`.
            record: with a value.
        """
        for field in hidden:
            if _differs(field.get(record), record.value.get(field.name)):
                self._add(table, field.name, 1, record.where)

    def see_columns(self, chunk: ColumnChunk, hidden: Sequence[SinkField], records: RecordColumns) -> None:
        """The same for records in columns: the last of `records` are those of the chunk."""
        start = len(records) - len(chunk)
        structs: Any = records.value.values
        for field in hidden:
            values = structs.field(field.name).slice(start)
            if values.null_count == len(values):
                continue
            schema = _field_of(records.value.schema, field.name)
            differing = _differing(field.column(records).slice(start), field.schema, values, schema)  # type: ignore[misc]
            if differing:
                offset = int(chunk.offsets[differing[0]])
                where = f"{records.original_topic}-{records.original_partition}@{offset}"
                self._add(chunk.plan.table, field.name, len(differing), where)

    def take_notes(self) -> Iterator[str]:
        """A sentence for each column, once."""
        found, self._found = self._found, {}
        for (table, name), seen in found.items():
            yield (
                f"{counted(seen.count, 'record')} for the table {table} had another value in the field {name} than the"
                f" primary key has under that name, first {seen.first}. The column has that of the key, as with"
                " Confluent's sink: the field of the value was not written. To keep it, rename it with the"
                f" transformation ReplaceField, or give the column of the key another name ({Keys.pk_fields})."
            )

    def _add(self, table: TableId, name: str, count: int, where: str) -> None:
        found = self._found.setdefault((table, name), _Found(0, where))
        found.count += count


def hidden_by(
    mapping: MappingConfig, fields: Sequence[SinkField], value_schema: Schema | None
) -> tuple[SinkField, ...]:
    """The columns of the primary key whose name a field of the value has that would be written otherwise."""
    if mapping.pk_mode not in (keys.RECORD_KEY, keys.KAFKA) or value_schema is None:
        return ()
    if value_schema.type is not Type.STRUCT:
        return ()
    wanted = mapping.whitelist or value_schema.fields_by_name
    return tuple(f for f in fields if f.is_key and f.name in value_schema.fields_by_name and f.name in wanted)


def _differs(of_key: Any, of_value: Any) -> bool:
    """Whether a field that is not written says something else; 5 and `5` are the same in a column."""
    return of_value is not None and of_key != of_value and str(of_key) != str(of_value)


def _differing(of_keys: Any, key_schema: Schema, of_values: Any, schema: Schema) -> list[int]:
    """Where `_differs` is true."""
    if key_schema.type is schema.type and schema.type in _COMPARED_AS_COLUMNS and of_keys.type == of_values.type:
        import pyarrow.compute as pc

        found: Any = pc.fill_null(pc.not_equal(of_keys, of_values), False)
        return pc.indices_nonzero(found).to_pylist() if found.true_count else []
    pairs = zip(of_keys.to_pylist(), of_values.to_pylist(), strict=True)
    return [n for n, (key, value) in enumerate(pairs) if _differs(key, value)]


def _field_of(schema: Schema | None, name: str) -> Schema:
    assert schema is not None
    return schema.fields_by_name[name].schema

"""Partitioning: the text of the configuration as a partition spec, and the partition of each row.

Source: org.apache.iceberg.connect.data.SchemaUtils.createPartitionSpec. An error in the text makes the original create
a table without partitions; here it is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_connect.errors import ConfigError, IcebergError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema

_CALL = re.compile(r"(\w+)\((.*)\)")
_PLAIN = {"year": "year", "years": "year", "month": "month", "months": "month", "day": "day", "days": "day",
          "date": "day", "hour": "hour", "hours": "hour", "date_hour": "hour"}  # fmt: skip
_TIMES = frozenset(_PLAIN.values())
_WITH_NUMBER = {"bucket": "bucket", "truncate": "trunc"}


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """One part of a partitioning.

    Attributes:
        column: path of the column, with dots.
        transform: as Iceberg writes it: `identity`, `day`, `bucket[16]`.
        suffix: what the name of the partition field has after the column's, or "".
    """

    column: str
    transform: str
    suffix: str

    @property
    def name(self) -> str:
        """Of the partition field, as Java's builder makes it."""
        return f"{self.column}_{self.suffix}" if self.suffix else self.column


def parse_partitioning(text: str, key: str) -> tuple[PartitionColumn, ...]:
    """Read the value of `partition-by`.

    Raises:
        ConfigError: names the part that cannot be read, that has the name of another one, or that has another one's
            column in another unit of time.
    """
    parts = _divided(text) if text.strip() else []
    found: dict[str, PartitionColumn] = {}
    by_time: dict[str, PartitionColumn] = {}
    for part in parts:
        column = _parsed(part, key)
        if found.setdefault(column.name, column) is not column:
            raise ConfigError(
                f"Two parts of {key} would be called {column.name}: {part!r} is the second.",
                code="config.value",
                suggestion="Remove one of them. To have both, create the table with names of your own.",
                config_path=key,
            )
        if column.transform in _TIMES and (other := by_time.setdefault(column.column, column)) is not column:
            # As Java's builder, whose error makes the original create a table without partitions.
            raise ConfigError(
                f"{key} has both {other.transform} and {column.transform} of {column.column}.",
                code="config.value",
                suggestion="Keep one of them: filters on a column find the partitions of any.",
                config_path=key,
            )
    return tuple(found.values())


def _divided(text: str) -> list[str]:
    """The parts between commas that are not in parentheses."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _parsed(part: str, key: str) -> PartitionColumn:
    called = _CALL.fullmatch(part)
    if called is None:
        if part and not set(part) & set("() "):
            return PartitionColumn(part, "identity", "")
        raise _unreadable(part, key)
    function, arguments = called[1].lower(), [word.strip() for word in called[2].split(",")]
    if function in _PLAIN and len(arguments) == 1 and arguments[0]:
        return PartitionColumn(arguments[0], _PLAIN[function], _PLAIN[function])
    if function in _WITH_NUMBER and len(arguments) == 2 and arguments[0] and arguments[1].isdecimal():
        number = int(arguments[1])
        if 0 < number < 1 << 31:
            return PartitionColumn(arguments[0], f"{function}[{number}]", _WITH_NUMBER[function])
    raise _unreadable(part, key)


def _unreadable(part: str, key: str) -> ConfigError:
    return ConfigError(
        f"{part!r} in {key} does not say how to partition a table.",
        code="config.value",
        suggestion="Use a column, year, month, day or hour of one, bucket(column, n) or truncate(column, n).",
        config_path=key,
    )


def partition_spec(columns: Sequence[PartitionColumn], schema: Schema) -> PartitionSpec:
    """The spec of a new table.

    Raises:
        IcebergError: the table has no such column, or it has a type that cannot be partitioned in this way.
    """
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.transforms import parse_transform

    fields = []
    for number, column in enumerate(columns):
        try:
            source = schema.find_field(column.column)
        except ValueError:
            raise _unpartitioned(f"{column.column}: the values do not have this field") from None
        transform: Any = parse_transform(column.transform)
        if not source.field_type.is_primitive or not transform.can_transform(source.field_type):
            raise _unpartitioned(f"{column.transform} of {column.column}: its type is {source.field_type}")
        if path_to(schema, source.field_id) is None:
            raise _unpartitioned(f"{column.column}: it is in a list or a map")
        if column.suffix and column.name in schema.column_names:
            raise _unpartitioned(f"{column.transform} of {column.column}: a column has the name {column.name}")
        fields.append(PartitionField(source.field_id, 1000 + number, transform, column.name))
    return PartitionSpec(*fields)


def _unpartitioned(why: str) -> IcebergError:
    return IcebergError(
        f"The table cannot be partitioned by {why}.",
        code="iceberg.partition",
        suggestion="Correct partition-by.",
        config_path="iceberg.tables.default-partition-by",
    )


class Partitioner:
    """Divides rows by the partitions of a table."""

    def __init__(self, spec: PartitionSpec, schema: Schema) -> None:
        """Find the columns.

        Raises:
            IcebergError: the spec has a transform that is unknown here.
        """
        self._parts: list[tuple[tuple[str, ...], Any]] = []
        self._types = [field.field_type for field in spec.partition_type(schema).fields]
        for field in spec.fields:
            path = path_to(schema, field.source_id)
            if "void" in str(field.transform):
                self._parts.append(((), None))
                continue
            try:
                if path is None:
                    raise NotImplementedError(f"no column has the id {field.source_id}")
                self._parts.append((path, field.transform.pyarrow_transform(schema.find_type(field.source_id))))
            except (NotImplementedError, ImportError) as error:
                raise IcebergError(
                    f"Tables that are partitioned by {field.transform} cannot be written: {error}.",
                    code="iceberg.partition",
                    suggestion="Change the partitioning of the table.",
                ) from error

    def divide(self, batch: pa.RecordBatch) -> Iterator[tuple[tuple[str | None, ...], Any]]:
        """Partitions with the positions of their rows, in order; None for all rows.

        A partition is written as base64 of Iceberg's single-value serialisation of each value.
        """
        import numpy as np

        if not self._parts:
            yield (), None
            return
        columns = [transformed(batch, path, transform) for path, transform in self._parts]
        encoded = [column.dictionary_encode(null_encoding="encode") for column in columns]
        codes = np.zeros(batch.num_rows, dtype=np.int64)
        for one in encoded:
            # Numbered anew each time: products of many dictionaries have more than 64 bits.
            _, codes = np.unique(codes, return_inverse=True)
            codes = codes * max(1, len(one.dictionary)) + one.indices.to_numpy()
        found, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        for group, row in enumerate(first):
            values = tuple(_as_text(column[int(row)], kind) for column, kind in zip(columns, self._types, strict=True))
            yield values, None if len(found) == 1 else np.flatnonzero(inverse == group)


def transformed(batch: pa.RecordBatch, path: tuple[str, ...], transform: Any) -> Any:
    """The values of a transform, an array; nulls without one.

    Args:
        batch: columns of the table.
        path: as `path_to` gives it.
        transform: what pyiceberg makes of it for Arrow, or None.
    """
    import pyarrow as pa

    if transform is None:
        return pa.nulls(batch.num_rows, pa.int32())
    column: Any = batch.column(path[0])
    for name in path[1:]:
        members = column.flatten()
        column = members[column.type.get_field_index(name)]
    storage = column.storage if isinstance(column, pa.ExtensionArray) else column
    made = transform(storage)
    return made.combine_chunks() if isinstance(made, pa.ChunkedArray) else made


def path_to(schema: Schema, field_id: int) -> tuple[str, ...] | None:
    """The names of the structs around a field, and its own: a name may have dots. None: it is in no struct."""
    from pyiceberg.types import StructType

    def search(fields: Any) -> tuple[str, ...] | None:
        for field in fields:
            if field.field_id == field_id:
                return (field.name,)
            if isinstance(field.field_type, StructType) and (inner := search(field.field_type.fields)) is not None:
                return (field.name, *inner)
        return None

    return search(schema.fields)


def _as_text(value: Any, kind: Any) -> str | None:
    import base64

    import pyarrow as pa
    from pyiceberg.conversions import to_bytes

    if not value.is_valid:
        return None
    plain: Any = value
    if pa.types.is_date32(value.type):
        plain = value.cast(pa.int32())
    elif pa.types.is_timestamp(value.type) or pa.types.is_time64(value.type):
        plain = value.cast(pa.int64())
    return base64.b64encode(to_bytes(kind, plain.as_py())).decode()


def partition_type(spec: PartitionSpec, schemas: Sequence[Schema]) -> Any:
    """The type of partitions, with optional fields, as the specification has it.

    pyiceberg's own has required ones for required columns, although they are null in null structs and under `void`.

    Args:
        spec: of the files.
        schemas: of the table, in the order in which a column is looked for: the newest may not have it any more.
    """
    from pyiceberg.types import NestedField, StructType, UnknownType

    fields = []
    for field in spec.fields:
        sources = (schema._lazy_id_to_field.get(field.source_id) for schema in schemas)
        source = next((found for found in sources if found is not None), None)
        kind = UnknownType() if source is None else field.transform.result_type(source.field_type)
        fields.append(NestedField(field.field_id, field.name, kind, required=False))
    return StructType(*fields)


def partition_values(texts: Sequence[str | None], spec: PartitionSpec, schema: Schema) -> Any:
    """The partition as pyiceberg's record; the inverse of what `Partitioner.divide` gives."""
    import base64

    from pyiceberg.conversions import from_bytes
    from pyiceberg.typedef import Record

    fields: Any = spec.partition_type(schema).fields
    return Record(
        *(
            None if text is None else from_bytes(field.field_type, base64.b64decode(text))
            for text, field in zip(texts, fields, strict=True)
        )
    )

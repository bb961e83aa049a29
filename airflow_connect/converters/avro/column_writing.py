"""Columns of one schema to Avro values: the same bytes as fastavro, without a Python object per value.

Source: Avro specification 1.12, "Binary Encoding".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from airflow_connect.api.schema import DECIMAL, TIME, Schema, Type
from airflow_connect.converters.avro.mapping import decimal_digits
from airflow_connect.converters.avro.named_types import AvroNode, NamedTypes
from airflow_connect.converters.avro.names import FIXED_SIZE_PARAMETER, is_union
from airflow_connect.converters.avro.parsing import AvroType, is_null, optional_member
from airflow_connect.converters.column_pieces import Pieces, Present, writer_of_values
from airflow_connect.converters.decimal_columns import LONGEST_DECIMAL_BYTES, has_longer, is_shortest
from airflow_connect.converters.scan import NotPlainError
from airflow_connect.converters.time_of_day import LAST_MS, is_beyond

ColumnWriter = Callable[[Any], Any]
"""Arrow array of a schema to binary array of Avro values after the prefix; None if a value is not vectorizable."""
_Writer = Callable[[Any, Pieces, Present], None]
_KINDS: dict[tuple[str, Type], Any] = {
    ("int", Type.INT8): pa.int8(),
    ("int", Type.INT16): pa.int16(),
    ("int", Type.INT32): pa.int32(),
    ("long", Type.INT64): pa.int64(),
    ("float", Type.FLOAT32): pa.float32(),
    ("double", Type.FLOAT64): pa.float64(),
    ("boolean", Type.BOOLEAN): pa.bool_(),
    ("string", Type.STRING): pa.string(),
    ("bytes", Type.BYTES): pa.binary(),
}


def column_writer(
    avro_type: AvroType, named: Iterable[AvroType], schema: Schema, prefix: bytes, *, null_is_default: bool
) -> ColumnWriter | None:
    """A writer for values of a Connect schema, or None if parts of it can only be written value by value.

    Those are arrays, maps, unions of several types, enums, fixed, and structs without fields.

    Args:
        avro_type: the Avro form of the schema, as JSON.
        named: schemas that it refers to.
        schema: of the values.
        prefix: before each value.
        null_is_default: a null is written as the default of its schema; such columns are not vectorizable.
    """
    try:
        write = _Writers(NamedTypes([*named, avro_type]), null_is_default).of(avro_type, "", schema)
    except NotPlainError:
        return None

    return writer_of_values(write, prefix)


def _longs(pieces: Pieces, numbers: NDArray[np.int64], present: Present) -> None:
    """Variable-length, zigzag-coded numbers."""
    pieces.varints(((numbers << 1) ^ (numbers >> 63)).view(np.uint64), present)


class _Writers:
    """Builds the writer of one schema."""

    def __init__(self, types: NamedTypes, null_is_default: bool) -> None:
        self._types = types
        self._null_is_default = null_is_default

    def of(self, avro_type: AvroType, namespace: str, schema: Schema) -> _Writer:
        if isinstance(avro_type, list):
            member = optional_member(avro_type)
            if member is None or not schema.optional:
                raise NotPlainError
            keeps_null = schema.default is None or not self._null_is_default
            write = self._of_node(self._types.node(member, namespace), schema)
            return _optional(write, 0 if is_null(avro_type[0]) else 1, keeps_null=keeps_null)
        return _required(self._of_node(self._types.node(avro_type, namespace), schema))

    def _of_node(self, node: AvroNode, schema: Schema) -> _Writer:
        if node.kind == "record" and schema.type is Type.STRUCT and not is_union(schema):
            return self._record(node, schema)
        kind = _KINDS.get((node.kind, schema.type))
        is_decimal = schema.name == DECIMAL and FIXED_SIZE_PARAMETER not in schema.parameters
        # Decimals of a fixed size, and possibly bytes with other names, need `AvroMapping.transform`.
        if kind is None or (schema.type is Type.BYTES and schema.name is not None and not is_decimal):
            raise NotPlainError
        write = _decimals(decimal_digits(schema)) if is_decimal else _SCALARS[node.kind]

        def write_scalar(values: Any, pieces: Pieces, present: Present) -> None:
            if values.type != kind or (schema.name == TIME and is_beyond(values, LAST_MS)):
                raise NotPlainError
            write(values, pieces, present)

        return write_scalar

    def _record(self, node: AvroNode, schema: Schema) -> _Writer:
        fields = node.attributes["fields"]
        if not fields or len(fields) != len(schema.fields):
            raise NotPlainError
        writers = [
            self.of(field["type"], node.namespace, member.schema)
            for field, member in zip(fields, schema.fields, strict=True)
        ]
        names = [member.name for member in schema.fields]

        def write(values: Any, pieces: Pieces, present: Present) -> None:
            kind: Any = values.type
            if not pa.types.is_struct(kind) or [kind.field(n).name for n in range(kind.num_fields)] != names:
                raise NotPlainError
            for index, write_field in enumerate(writers):
                write_field(values.field(index), pieces, present)

        return write


def _required(write: _Writer) -> _Writer:
    def write_required(values: Any, pieces: Pieces, present: Present) -> None:
        if values.null_count and (present is None or not _valid(values)[present].all()):
            raise NotPlainError
        write(values, pieces, present)

    return write_required


def _optional(write: _Writer, null_branch: int, *, keeps_null: bool) -> _Writer:
    of_null, of_value = np.uint8(null_branch * 2), np.uint8((1 - null_branch) * 2)

    def write_optional(values: Any, pieces: Pieces, present: Present) -> None:
        if not values.null_count:
            branch = np.broadcast_to(of_value, (pieces.count, 1))
            pieces.add(branch, None if present is None else present[:, np.newaxis])
            return write(values, pieces, present)
        if not keeps_null:
            raise NotPlainError
        valid = _valid(values)
        here = None if present is None else present[:, np.newaxis]
        pieces.add(np.where(valid, of_value, of_null)[:, np.newaxis], here)
        return write(values, pieces, valid if present is None else valid & present)

    return write_optional


def _valid(values: Any) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = values.is_valid().to_numpy(zero_copy_only=False)
    return found


def _numbers(values: Any) -> NDArray[Any]:
    """The numbers of a column, 0 for null."""
    filled = values.fill_null(False if pa.types.is_boolean(values.type) else 0) if values.null_count else values
    found: NDArray[Any] = filled.to_numpy(zero_copy_only=False)
    return found


def _integers(values: Any, pieces: Pieces, present: Present) -> None:
    _longs(pieces, _numbers(values).astype(np.int64), present)


def _floats(values: Any, pieces: Pieces, present: Present) -> None:
    numbers = np.ascontiguousarray(_numbers(values))
    little = numbers.astype(numbers.dtype.newbyteorder("<"), copy=False)
    data = little.view(np.uint8).reshape(pieces.count, numbers.dtype.itemsize)
    pieces.add(data, None if present is None else present[:, np.newaxis])


def _booleans(values: Any, pieces: Pieces, present: Present) -> None:
    data = _numbers(values).astype(np.uint8)[:, np.newaxis]
    pieces.add(data, None if present is None else present[:, np.newaxis])


def _texts(values: Any, pieces: Pieces, present: Present) -> None:
    data = values.cast(pa.binary())
    if present is not None:
        data = pc.if_else(pa.array(present), data, pa.scalar(None, pa.binary()))
    lengths: Any = pc.fill_null(pc.binary_length(data), 0)
    _longs(pieces, lengths.to_numpy().astype(np.int64), present)
    pieces.column(data)


def _decimals(digits: int | None) -> _Writer:
    """The bytes of an Avro decimal are those of Connect's. `digits`: their maximum, if there is one."""

    def write(values: Any, pieces: Pieces, present: Present) -> None:
        longest: Any = pc.max(pc.binary_length(values))
        if (longest.as_py() or 0) > LONGEST_DECIMAL_BYTES or not is_shortest(values):
            raise NotPlainError
        if digits is not None and has_longer(values, digits):
            raise NotPlainError
        _texts(values, pieces, present)

    return write


_SCALARS: dict[str, _Writer] = {
    "int": _integers,
    "long": _integers,
    "float": _floats,
    "double": _floats,
    "boolean": _booleans,
    "string": _texts,
    "bytes": _texts,
}

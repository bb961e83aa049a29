"""Decodes many Avro values of one schema to Arrow columns, field by field, without a Python object per value.

Every value has its own position in the data. A field is read for all values at once with numpy, which advances all
positions. Only regular values are read here: for anything truncated, out of range or otherwise unusual, the whole
batch is None, and the reference path (`reading`) finds and reports it. Strings and bytes are never copied one by one:
the starts and ends of a field in all values are the offsets of an Arrow array over the same bytes; every second
element of it is a value.
Source: Avro specification 1.12, "Binary Encoding".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from airflow_connect.api.schema import DECIMAL, TIME, Schema, Type
from airflow_connect.converters.avro.named_types import AvroNode, NamedTypes
from airflow_connect.converters.avro.parsing import AvroType, is_null, optional_member
from airflow_connect.converters.java_text import MS_PER_DAY
from airflow_connect.converters.map_columns import has_key_twice, map_column
from airflow_connect.converters.scan import NotPlainError, Scan, slices, texts
from airflow_connect.converters.time_of_day import is_beyond

Reader = Callable[[Scan], Any]
"""Reads one value at each position of a scan and moves the positions past it: Arrow array of that length.

It raises NotPlainError if one of the values is not vectorizable.
"""

_MOST_ITEMS = 1000
"""Of one array: items are read one after the other, for all values at once."""
_KEYS = (Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.BOOLEAN, Type.STRING, Type.BYTES)
_INTEGERS = {Type.INT8: np.int8, Type.INT16: np.int16, Type.INT32: np.int32}


def column_reader(avro_type: AvroType, named: Iterable[AvroType], schema: Schema) -> Reader | None:
    """A reader for values of an Avro schema, or None if parts of it can only be read value by value.

    Those are maps whose keys are nullable, decimals or fractions, unions of several types, and records without fields.

    Args:
        avro_type: as JSON.
        named: schemas that it refers to.
        schema: its Connect schema.
    """
    try:
        return _Readers(NamedTypes([*named, avro_type])).of(avro_type, "", schema)
    except NotPlainError:
        return None


def read_column(reader: Reader, scan: Scan) -> Any | None:
    """All values of a scan, which must end where its rows end; None if one of them is not vectorizable."""
    try:
        values = reader(scan)
    except NotPlainError:
        return None
    return values if scan.is_at_end() else None


class _Readers:
    """Builds the reader of one schema."""

    def __init__(self, types: NamedTypes) -> None:
        self._types = types

    def of(self, avro_type: AvroType, namespace: str, schema: Schema) -> Reader:
        if isinstance(avro_type, list):
            member = optional_member(avro_type)
            if member is None:
                raise NotPlainError
            return _optional(self.of(member, namespace, schema), 0 if is_null(avro_type[0]) else 1)
        return self._of_node(self._types.node(avro_type, namespace), schema)

    def _of_node(self, node: AvroNode, schema: Schema) -> Reader:
        kind = node.kind
        if kind == "record":
            return self._record(node, schema)
        if kind == "array":
            return self._array(node, schema)
        if kind == "map" and schema.value_schema is not None:
            value = self.of(node.attributes["values"], node.namespace, schema.value_schema)
            return _map([("key", lambda scan: texts(scan, *scan.lengths())), ("value", value)], schema)
        if schema.name == TIME:
            return _times
        if kind == "int":
            return _integers(_INTEGERS[schema.type])
        if kind == "enum":
            return _enum(node.attributes["symbols"])
        if kind == "fixed":
            return _bytes_of(lambda scan: scan.fixed(node.attributes["size"]), schema)
        if kind == "bytes":
            return _bytes_of(Scan.lengths, schema)
        simple: dict[str, Reader] = {
            "long": lambda scan: pa.array(scan.longs()),
            "float": lambda scan: pa.array(scan.words(4).astype(np.uint32).view(np.float32)),
            "double": lambda scan: pa.array(scan.words(8).view(np.float64)),
            "boolean": _booleans,
            "string": lambda scan: texts(scan, *scan.lengths()),
        }
        if kind not in simple:
            raise NotPlainError
        return simple[kind]

    def _array(self, node: AvroNode, schema: Schema) -> Reader:
        if schema.type is Type.MAP:
            return self._entries(self._types.node(node.attributes["items"], node.namespace), schema)
        if schema.type is not Type.ARRAY or schema.value_schema is None:
            raise NotPlainError
        item = self.of(node.attributes["items"], node.namespace, schema.value_schema)
        return _array(item, is_optional=schema.value_schema.optional)

    def _entries(self, entry: AvroNode, schema: Schema) -> Reader:
        """A map whose keys are not texts is an array of its entries."""
        parts = {"key": schema.key_schema, "value": schema.value_schema}
        readers = []
        for field in entry.attributes["fields"]:
            part = parts[field["name"]]
            if part is None or (part is schema.key_schema and not _is_plain_key(part)):
                raise NotPlainError
            readers.append((field["name"], self.of(field["type"], entry.namespace, part)))
        return _map(readers, schema)

    def _record(self, node: AvroNode, schema: Schema) -> Reader:
        fields = node.attributes["fields"]
        if not fields:
            raise NotPlainError
        readers = [
            self.of(field["type"], node.namespace, member.schema)
            for field, member in zip(fields, schema.fields, strict=True)
        ]
        names = [(member.name, member.schema.optional) for member in schema.fields]

        def read(scan: Scan) -> Any:
            arrays = [of_field(scan) for of_field in readers]
            made = [
                pa.field(name, array.type, nullable=optional)
                for (name, optional), array in zip(names, arrays, strict=True)
            ]
            return pa.StructArray.from_arrays(arrays, fields=made)

        return read


def _optional(of_present: Reader, null_branch: int) -> Reader:
    null_byte, present_byte = null_branch * 2, (1 - null_branch) * 2

    def read(scan: Scan) -> Any:
        branch = scan.bytes()
        present = branch == present_byte
        if present.all():
            return of_present(scan)
        if not (present | (branch == null_byte)).all():
            raise NotPlainError
        (rows,) = np.nonzero(present)
        part = scan.part(rows)
        values = of_present(part)
        scan.take_back(rows, part)
        places = np.zeros(len(present), np.int32)
        places[rows] = np.arange(len(rows), dtype=np.int32)
        return values.take(pa.array(places, mask=~present))

    return read


def _array(of_item: Reader, *, is_optional: bool) -> Reader:
    def read(scan: Scan) -> Any:
        items, ends = _items(scan, of_item)
        kind: Any = pa.list_(pa.field("element", items.type, nullable=is_optional))
        return pa.ListArray.from_arrays(_offsets(ends), items, type=kind)

    return read


def _map(parts: Sequence[tuple[str, Reader]], schema: Schema) -> Reader:
    """Maps are written as arrays of their entries are. A key that comes twice is left to the reference.

    Args:
        parts: `key` and `value`, in the order in which an entry has them.
        schema: of the maps.
    """
    names = [name for name, _ in parts]

    def read_entry(scan: Scan) -> Any:
        return pa.StructArray.from_arrays([read_part(scan) for _, read_part in parts], names)

    def read(scan: Scan) -> Any:
        entries, ends = _items(scan, read_entry)
        columns = dict(zip(names, entries.flatten(), strict=True))
        if has_key_twice(np.diff(ends, prepend=0), columns["key"]):
            raise NotPlainError
        return map_column(_offsets(ends), columns["key"], columns["value"], schema)

    return read


def _is_plain_key(schema: Schema) -> bool:
    """Whether two values are equal if and only if Arrow's are."""
    return schema.type in _KEYS and schema.name != DECIMAL and not schema.optional


def _offsets(ends: NDArray[np.int64]) -> Any:
    return pa.array(np.concatenate(([0], ends)).astype(np.int32))


def _items(scan: Scan, of_item: Reader) -> tuple[Any, NDArray[np.int64]]:
    """Items of arrays, or entries of maps, one value after the other, and where those of each value end.

    They must be in one block, as every usual writer writes them: the first items of all values are read, then the
    second ones.
    """
    counts = scan.longs()
    most = int(np.max(counts, initial=0))
    if np.min(counts, initial=0) < 0 or most > _MOST_ITEMS:
        raise NotPlainError
    ends = np.cumsum(counts)
    parts, places = [of_item(scan.part(np.zeros(0, np.intp)))], [np.zeros(0, np.int64)]
    for number in range(most):
        (rows,) = np.nonzero(counts > number)
        part = scan.part(rows)
        parts.append(of_item(part))
        scan.take_back(rows, part)
        places.append(ends[rows] - counts[rows] + number)
    (rows,) = np.nonzero(counts)
    part = scan.part(rows)
    if part.longs().any():  # Another block.
        raise NotPlainError
    scan.take_back(rows, part)
    order: Any = np.argsort(np.concatenate(places))
    items: Any = pa.concat_arrays(parts).take(pa.array(order))
    return items, ends


def _integers(kind: Any) -> Reader:
    limits = np.iinfo(kind)

    def read(scan: Scan) -> Any:
        values = scan.ints()
        if len(values) and (np.min(values) < limits.min or np.max(values) > limits.max):
            raise NotPlainError
        return pa.array(values.astype(kind))

    return read


def _times(scan: Scan) -> Any:
    times = pa.array(scan.ints().astype(np.int32))
    if is_beyond(times, MS_PER_DAY):
        raise NotPlainError
    return times


def _booleans(scan: Scan) -> Any:
    values = scan.bytes()
    if len(values) and np.max(values) > 1:
        raise NotPlainError
    return pa.array(values.astype(np.bool_))


def _enum(symbols: Sequence[str]) -> Reader:
    names: Any = pa.array(symbols, pa.string())

    def read(scan: Scan) -> Any:
        values = scan.ints()
        if len(values) and (np.min(values) < 0 or np.max(values) >= len(symbols)):
            raise NotPlainError
        return names.take(pa.array(values))

    return read


def _bytes_of(bounds: Callable[[Scan], tuple[NDArray[np.int64], NDArray[np.int64]]], schema: Schema) -> Reader:
    is_decimal = schema.name == DECIMAL

    def read(scan: Scan) -> Any:
        starts, ends = bounds(scan)
        if is_decimal and (starts == ends).any():
            raise NotPlainError
        return slices(scan, starts, ends)

    return read

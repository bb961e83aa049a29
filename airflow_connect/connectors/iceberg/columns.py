"""Values in Arrow to the columns of a table: by name, and only exactly.

The original cuts numbers (`intValue`), takes every text but "true" for false, and drops the zone of a text. Here such a
value does not fit: `UnfitError` if no value of a column can, pyarrow's ArrowInvalid if one value of a batch does not.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_connect.connectors.iceberg.field_names import FieldNames, twin_fields
from airflow_connect.connectors.iceberg.texts import text_writer, texts
from airflow_connect.connectors.iceberg.types import field_id_of
from airflow_connect.converters.map_columns import entries_of
from airflow_connect.converters.time_of_day import LAST_MS, is_beyond
from airflow_connect.errors import DataError

Convert = Callable[[Any], Any]
"""An array to an array of another type and of the same length; raises ArrowInvalid for a value that does not fit."""
_MapArray: Any = pa.MapArray  # pyarrow-stubs do not know these arguments.
_ListArray: Any = pa.ListArray
_TIME = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9])(?:\.([0-9]{1,6}))?)?")


class UnfitError(DataError):
    """Values of a type do not fit a column."""

    code = "iceberg.type"


class Projection:
    """From the columns of values to those of a table.

    Attributes:
        dropped: paths of fields that the table does not have.
    """

    def __init__(
        self, source: pa.Schema, target: pa.Schema, names: FieldNames | None = None, *, is_inferred: bool = False
    ) -> None:
        """Find the columns.

        Args:
            source: of the values.
            target: of the table, with the ids of its columns.
            names: by which fields find columns.
            is_inferred: whether the schema of the values is a guess. Then numbers and structs do not become texts: a
                whole number beside others is a double here, and a struct has the members of all.

        Raises:
            UnfitError: the type of a field does not fit that of its column, or a required column has no field.
        """
        self.dropped: list[str] = []
        self.target = target
        self._names = names or FieldNames()
        self._writes_texts = not is_inferred
        self._convert = self._struct(list(source), list(target), "")

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns of the table.

        Raises:
            pa.ArrowInvalid: a value does not fit; the message names the column.
        """
        return pa.RecordBatch.from_arrays(self._convert(batch.columns, batch.num_rows), schema=self.target)

    def _struct(self, source: list[Any], target: list[Any], path: str) -> Callable[[list[Any], int], list[Any]]:
        """A function from the members of structs to those of the target, without nulls where one is required."""
        places = self._places([field.name for field in source], target, path)
        used = set(places.values())
        self.dropped += [
            _join(path, field.name)
            for place, field in enumerate(source)
            if place not in used and not pa.types.is_null(field.type)
        ]
        parts: list[tuple[int, Any, Convert]] = []
        for field in target:
            where = _join(path, field.name)
            place = places.get(field.name, -1)
            if place < 0 and not field.nullable:
                raise UnfitError(
                    f"The column {where} of the table is required, but the values do not have this field.",
                    suggestion="Make the column optional, or set iceberg.tables.evolve-schema-enabled=true.",
                )
            convert = self._of(source[place].type, field.type, where) if place >= 0 else _same
            parts.append((place, field, _named(convert, where)))

        def convert_members(arrays: list[Any], length: int) -> list[Any]:
            return [
                _nulls(length, field.type) if place < 0 else convert(arrays[place]) for place, field, convert in parts
            ]

        return convert_members

    def _places(self, source: list[str], target: list[Any], path: str) -> dict[str, int]:
        """Which field each column gets."""
        column_of = self._names.finder((field_id_of(field), field.name) for field in target)
        found: dict[str, int] = {}
        for place, name in enumerate(source):
            column = column_of(name)
            if column is not None and found.setdefault(column, place) != place:
                raise twin_fields(_join(path, name), _join(path, source[found[column]]))
        return found

    def _of(self, source: Any, target: Any, path: str) -> Convert:
        if pa.types.is_struct(source) and pa.types.is_struct(target):
            return self._of_struct(source, target, path)
        if pa.types.is_map(source) and pa.types.is_map(target):
            key = self._of(source.key_type, target.key_type, f"{path}.key")
            item = self._of(source.item_type, target.item_type, f"{path}.value")
            return lambda array: _map(array, target, key, _present(item, target.item_field, f"{path}.value"))
        if pa.types.is_list(source) and pa.types.is_list(target):
            element = self._of(source.value_type, target.value_type, f"{path}.element")
            return lambda array: _list(array, target, _present(element, target.value_field, f"{path}.element"))
        if self._writes_texts and pa.types.is_string(target) and (write := text_writer(source)) is not None:
            return lambda array: texts(array, write)
        return _scalar(source, target, path)

    def _of_struct(self, source: Any, target: Any, path: str) -> Convert:
        members = self._struct(list(source), list(target), path)

        def convert(array: Any) -> Any:
            # `flatten` puts the nulls of the structs into their members.
            arrays, mask = array.flatten(), array.is_null() if array.null_count else None
            made = members(arrays, len(array))
            for part, field in zip(made, target, strict=True):
                if not field.nullable and part.null_count > array.null_count:
                    raise _null(_join(path, field.name))
            filled = [_without_nulls(part, field) for part, field in zip(made, target, strict=True)]
            return pa.StructArray.from_arrays(filled, fields=list(target), mask=mask)

        return convert


def check_required(batch: pa.RecordBatch) -> None:
    """Refuse nulls in required columns.

    Raises:
        pa.ArrowInvalid: names the column.
    """
    for column, field in zip(batch.columns, batch.schema, strict=True):
        if column.null_count and not field.nullable:
            raise _null(field.name)


def _without_nulls(part: Any, field: Any) -> Any:
    """A required member where only whole structs are null: Parquet needs a value there, and does not write it."""
    if field.nullable or not part.null_count:
        return part
    places = np.where(part.is_valid().to_numpy(zero_copy_only=False), np.arange(len(part)), len(part))
    return pa.concat_arrays([part, _any_value(field.type)]).take(pa.array(places))


def _any_value(kind: Any) -> Any:
    """An array with one value; pyarrow makes none of types with a UUID inside from Python's values."""
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, _any_value(kind.storage_type))
    if pa.types.is_struct(kind):
        return pa.StructArray.from_arrays([_any_value(field.type) for field in kind], fields=list(kind))
    none: Any = pa.array([0, 0], pa.int32())
    if pa.types.is_map(kind):
        return _MapArray.from_arrays(none, _no_value(kind.key_type), _no_value(kind.item_type), kind)
    if pa.types.is_list(kind):
        return _ListArray.from_arrays(none, _no_value(kind.value_type), kind)
    if pa.types.is_fixed_size_binary(kind):
        return pa.array([bytes(kind.byte_width)], kind)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return pa.array([""]).cast(kind)
    return pa.array([False if pa.types.is_boolean(kind) else 0], kind)


def _no_value(kind: Any) -> Any:
    return _any_value(kind)[:0]


def _nulls(length: int, kind: Any) -> Any:
    """Nulls; the required members of structs have a value, as Parquet wants it."""
    if not pa.types.is_struct(kind):
        return pa.nulls(length, kind)
    parts = [
        _nulls(length, field.type)
        if field.nullable
        else _any_value(field.type).take(pa.nulls(length, pa.int32()).fill_null(0))
        for field in kind
    ]
    return pa.StructArray.from_arrays(parts, fields=list(kind), mask=pa.nulls(length, pa.bool_()).fill_null(True))


def _map(array: Any, target: Any, key: Convert, item: Convert) -> Any:
    offsets, keys, items = entries_of(array)
    mask = array.is_null() if array.null_count else None
    return _MapArray.from_arrays(offsets, key(keys), item(items), target, mask=mask)


def _present(convert: Convert, field: Any, path: str) -> Convert:
    """The same function; it refuses nulls if the field is required."""

    def convert_present(array: Any) -> Any:
        made = convert(array)
        if made.null_count and not field.nullable:
            raise _null(path)
        return made

    return convert if field.nullable else convert_present


def _null(path: str) -> pa.ArrowInvalid:
    return pa.ArrowInvalid(f"the column {path} is required, but a value is null")


def _list(array: Any, target: Any, element: Convert) -> Any:
    from airflow_connect.formats.columnar.arrow_columns import list_offsets

    mask = array.is_null() if array.null_count else None
    return _ListArray.from_arrays(list_offsets(array), element(array.flatten()), target, mask=mask)


def _scalar(source: Any, target: Any, path: str) -> Convert:
    if source == target:
        return _same
    if pa.types.is_null(source):
        return lambda array: _nulls(len(array), target)
    if pa.types.is_string(source):
        return _from_text(source, target, path)
    found = _from_number(source, target) or _from_time_or_bytes(source, target)
    if found is None:
        raise _unfit(source, target, path)
    return found


def _from_number(source: Any, target: Any) -> Convert | None:
    kinds = pa.types
    if kinds.is_integer(source):
        return _from_integer(target)
    if kinds.is_boolean(source):
        return _cast(target) if kinds.is_string(target) else None
    if kinds.is_floating(source) and kinds.is_floating(target):
        return _cast(target) if target.bit_width >= source.bit_width else _narrowed_float
    if kinds.is_floating(source):
        return _cast(target) if kinds.is_integer(target) else None
    return _cast(target) if kinds.is_decimal(source) and kinds.is_decimal(target) else None


def _from_integer(target: Any) -> Convert | None:
    """Numbers, and numbers that are days or milliseconds."""
    kinds = pa.types
    if kinds.is_integer(target) or kinds.is_floating(target) or kinds.is_string(target):
        return _cast(target)
    if kinds.is_decimal(target):
        # pyarrow casts only to types that hold every integer, but from one decimal to another by the values.
        return lambda array: array.cast(pa.decimal256(19 + target.scale, target.scale)).cast(target)
    if kinds.is_timestamp(target):
        return lambda array: array.cast(pa.int64()).cast(pa.timestamp("ms", "UTC")).cast(target)
    if kinds.is_date(target):
        return lambda array: array.cast(pa.int32()).cast(target)
    return _milliseconds_of_a_day(target) if kinds.is_time(target) else None


def _milliseconds_of_a_day(target: Any) -> Convert:
    def convert(array: Any) -> Any:
        if is_beyond(array, LAST_MS):
            raise pa.ArrowInvalid("a number of milliseconds outside of the day")
        return array.cast(pa.int32()).cast(pa.time32("ms")).cast(target)

    return convert


def _from_time_or_bytes(source: Any, target: Any) -> Convert | None:
    kinds = pa.types
    if kinds.is_timestamp(source) and kinds.is_timestamp(target):
        return _cast(target)  # An instant, in a column without a zone, is the time in UTC.
    if kinds.is_temporal(source) and kinds.is_integer(target):
        # Days or milliseconds: what Connect's value is.
        return lambda array: array.cast(pa.int64() if source.bit_width == 64 else pa.int32()).cast(target)
    is_plain = kinds.is_time(source) and kinds.is_time(target)
    return _cast(target) if is_plain or (kinds.is_binary(source) and kinds.is_fixed_size_binary(target)) else None


def _from_text(source: Any, target: Any, path: str) -> Convert:
    kinds = pa.types
    if target == pa.uuid():
        return _each(
            lambda text: UUID(text).bytes, pa.binary(16), lambda array: pa.ExtensionArray.from_storage(target, array)
        )
    if kinds.is_boolean(target):
        return _each(lambda text: {"true": True, "false": False}[text.lower()], target)
    if kinds.is_binary(target) or kinds.is_fixed_size_binary(target):
        return _each(lambda text: base64.b64decode(text, validate=True), target)
    if kinds.is_timestamp(target):
        return _instants if target.tz else _cast(target)
    if kinds.is_integer(target):
        return _whole_numbers(target)
    if kinds.is_floating(target):
        return _floats(target)
    if kinds.is_time(target):
        return _each(_microseconds, target)
    if kinds.is_decimal(target) or kinds.is_date(target):
        return _cast(target)
    raise _unfit(source, target, path)


def _whole_numbers(target: Any) -> Convert:
    def convert(array: Any) -> Any:
        # pyarrow reads 0x1F as well.
        if not pc.all(pc.match_substring_regex(array, r"^-?[0-9]+$")).as_py():
            raise pa.ArrowInvalid("a text is no whole number")
        return array.cast(target)

    return lambda array: convert(array) if array.null_count < len(array) else pa.nulls(len(array), target)


def _floats(target: Any) -> Convert:
    """The nearest number, as everywhere where a text is read; but not infinity or 0 for what is neither."""

    def convert(array: Any) -> Any:
        made = array.cast(target)
        too_large = pc.and_(pc.is_inf(made), pc.match_substring_regex(array, "[0-9]"))
        too_small = pc.and_(pc.equal(made, pa.scalar(0, target)), pc.match_substring_regex(array, "^[^eE]*[1-9]"))
        if pc.any(pc.or_(too_large, too_small)).as_py():
            raise pa.ArrowInvalid("a number is too large or too small")
        return made

    return convert


def _microseconds(text: str) -> int:
    """A time of day: `12:34`, `12:34:56` or with up to six digits after the point."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError(text)
    hours, minutes, seconds, fraction = found.groups(default="0")
    return (int(hours) * 3600 + int(minutes) * 60 + int(seconds)) * 1_000_000 + int(fraction.ljust(6, "0"))


def _instants(array: Any) -> Any:
    """ISO 8601; without a zone it is UTC, as in the original."""
    target = pa.timestamp("us", "UTC")
    has_zone = pc.match_substring_regex(array, r":[^:]*(Z|[+-][0-9]{2}(:?[0-9]{2})?)$")
    no_text = pa.scalar(None, pa.string())
    with_zone = pc.if_else(has_zone, array, no_text).cast(target)
    without = pc.if_else(has_zone, no_text, array).cast(pa.timestamp("us"))
    return pc.coalesce(with_zone, pc.assume_timezone(without, "UTC"))


def _narrowed_float(array: Any) -> Any:
    made = array.cast(pa.float32())
    is_same = pc.or_kleene(pc.equal(made.cast(pa.float64()), array), pc.is_nan(array))
    if not pc.all(is_same.fill_null(True)).as_py():
        raise pa.ArrowInvalid("a double has more digits than a float")
    return made


def _each(convert: Callable[[str], Any], storage: Any, wrap: Convert | None = None) -> Convert:
    def convert_all(array: Any) -> Any:
        try:
            made = pa.array([None if text is None else convert(text) for text in array.to_pylist()], storage)
        except (ValueError, KeyError, binascii.Error) as error:
            raise pa.ArrowInvalid("a text cannot be read as a value of the column") from error
        return made if wrap is None else wrap(made)

    return convert_all


def _cast(target: Any) -> Convert:
    return lambda array: array.cast(target)


def _same(array: Any) -> Any:
    return array


def _named(convert: Convert, path: str) -> Convert:
    if convert is _same:
        return convert

    def named(array: Any) -> Any:
        try:
            return convert(array)
        except pa.ArrowException as error:
            if str(error).startswith("the column "):
                raise
            raise pa.ArrowInvalid(f"the column {path} cannot hold a value of this field") from error

    return named


def _unfit(source: Any, target: Any, path: str) -> UnfitError:
    return UnfitError(
        f"The column {path} has the type {target}, and the values have {source}, which does not become it.",
        suggestion="Convert the field with a transformation (Cast, TimestampConverter), or change the table.",
    )


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name

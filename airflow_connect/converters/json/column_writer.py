"""Columns to JSON text: the same bytes as writer.py for each value, without a Python object per record.

Supports structs of scalars, and scalars, which sources of log lines and tables produce. Anything else, and values that
the schema does not allow, is left to the record path, which supports all types and reports errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from airflow_connect.api.schema import DATE, DECIMAL, DECIMAL_SCALE, TIME, TIMESTAMP, Schema, Type
from airflow_connect.converters.java_text import MS_PER_DAY
from airflow_connect.converters.json.text import string_text
from airflow_connect.converters.json.writer import WriterOptions, scalar_writer
from airflow_connect.converters.time_of_day import is_beyond

if TYPE_CHECKING:
    import pyarrow as pa

_QUOTED_AS_IT_IS = r"^[ !#-\[\]-~]*$"
"""Text that only needs quotes in JSON: printable ASCII without quotation marks and backslashes."""

_FIRST_PRINTABLE, _LAST_PRINTABLE = ord(" "), ord("~")
_LEAST_PLAIN, _FIRST_WITH_EXPONENT = 1e-3, 1e7
"""java.lang.Double.toString: numbers from the one to below the other have no exponent."""
_STORED_AS = {DATE: Type.INT32, TIME: Type.INT32, TIMESTAMP: Type.INT64, DECIMAL: Type.BYTES}

ColumnWriter = Callable[["pa.Array[Any]"], "pa.Array[Any] | None"]
_ScalarWriter = Callable[["pa.Array[Any]"], "tuple[pa.Array[Any], str] | None"]
"""From a column to its text and what surrounds each value: quotation marks, or nothing."""
_Part = str | tuple[int | None, _ScalarWriter]
"""Text that every record has, or a field of the struct (None: the value itself) and what writes it."""


def column_writer(schema: Schema, options: WriterOptions, before: str = "", after: str = "") -> ColumnWriter | None:
    """A function from arrays of `schema` to arrays of JSON text between `before` and `after`; None: there is none.

    The function returns None if a value must take the record path.
    """
    if schema.type is not Type.STRUCT:
        scalar = _scalar(schema, options)
        return None if scalar is None else lambda values: _joined(values, [before, (None, scalar), after])
    parts: list[_Part] = []
    label = before + "{"
    for index, field in enumerate(schema.fields):
        write = _scalar(field.schema, options)
        if write is None:
            return None
        parts += [label + string_text(field.name) + ":", (index, write)]
        label = ","
    if not parts:
        return None
    names = tuple(field.name for field in schema.fields)

    def write_structs(values: pa.Array[Any]) -> pa.Array[Any] | None:
        import pyarrow as pa

        kind: Any = values.type
        if not pa.types.is_struct(kind) or values.null_count:
            return None
        if tuple(kind.field(index).name for index in range(kind.num_fields)) != names:
            return None
        return _joined(values, [*parts, "}" + after])

    return write_structs


def _joined(values: Any, parts: list[_Part]) -> pa.Array[Any] | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    columns: list[Any] = []
    between = ""
    for part in parts:
        if isinstance(part, str):
            between += part
            continue
        index, write = part
        written = write(values if index is None else values.field(index))
        if written is None:
            return None
        text, around = written
        columns += [pa.scalar(between + around), text]
        between = around
    columns.append(pa.scalar(between))
    try:
        joined: Any = pc.binary_join_element_wise(*columns, "")
    except pa.ArrowCapacityError:
        return None  # more than 2 GiB of text
    return joined if isinstance(joined, pa.Array) else joined.combine_chunks()


def _scalar(schema: Schema, options: WriterOptions) -> _ScalarWriter | None:
    """Text of a column; None for unsupported types."""
    import pyarrow as pa

    if _STORED_AS.get(schema.name or "", schema.type) is not schema.type:
        return None
    if schema.name == DECIMAL and not _has_text(schema, options):
        return None
    kinds = {
        Type.INT8: pa.int8(), Type.INT16: pa.int16(), Type.INT32: pa.int32(), Type.INT64: pa.int64(),
        Type.BOOLEAN: pa.bool_(), Type.FLOAT32: pa.float32(), Type.FLOAT64: pa.float64(), Type.STRING: pa.string(),
        Type.BYTES: pa.binary(),
    }  # fmt: skip
    kind = kinds.get(schema.type)
    if kind is None:
        return None
    one = scalar_writer(schema, options)
    null = None
    if options.replace_null and schema.default is not None:
        null = one(schema.default)
    elif schema.optional:
        null = "null"

    def write(values: Any) -> tuple[pa.Array[Any], str] | None:
        import pyarrow.compute as pc

        if values.type != kind or (values.null_count and null is None) or not _is_allowed(schema, options, values):
            return None
        text, around = _text(schema, options, values)
        if not values.null_count:
            return text, around
        if around:
            text = pc.binary_join_element_wise(around, text, around, "")
        return pc.fill_null(text, null), ""

    return write


def _text(schema: Schema, options: WriterOptions, values: Any) -> tuple[Any, str]:
    """The text of each value, null for null, and what surrounds it."""
    import pyarrow as pa

    if schema.name == DECIMAL and options.numeric_decimals:
        from airflow_connect.converters.decimal_columns import text_column

        return text_column(values, int(schema.parameters[DECIMAL_SCALE])), ""
    if schema.type is Type.BYTES:
        from airflow_connect.converters.json.base64_columns import base64_column

        return base64_column(values), '"'
    if schema.type is Type.STRING:
        return (values, '"') if not values.null_count and _needs_no_escapes(values) else (_strings(values), "")
    if schema.type in (Type.FLOAT32, Type.FLOAT64):
        return _floats(values, scalar_writer(schema, options)), ""
    return values.cast(pa.string()), ""


def _floats(values: Any, one: Callable[[Any], str]) -> Any:
    """Numbers with fractions as Java writes them.

    Java and Arrow both write the shortest digits. They differ in whole numbers, where Java adds `.0`, and outside of
    the range in which Java writes no exponent: those are written one by one, like infinity and NaN.

    Args:
        values: a column of floats.
        one: writes one value.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = values.fill_null(0).to_numpy() if values.null_count else values.to_numpy()
    size = np.abs(numbers)
    is_plain = (size >= _LEAST_PLAIN) & (size < _FIRST_WITH_EXPONENT) | (size == 0)
    is_whole = is_plain & (numbers == np.trunc(numbers))
    text: Any = values.cast(pa.string())
    if is_whole.any():
        text = pc.if_else(pa.array(is_whole), pc.binary_join_element_wise(text, ".0", ""), text)
    if is_plain.all():
        return text
    others = pa.array([one(value) for value in numbers[~is_plain].tolist()], pa.string())
    return pc.replace_with_mask(text, pa.array(~is_plain), others)


def _has_text(schema: Schema, options: WriterOptions) -> bool:
    """Whether the record path writes decimals of a schema as `_text` does, whatever their value."""
    from airflow_connect.converters.decimal_columns import MOST_PLAIN_DIGITS

    scale = schema.parameters.get(DECIMAL_SCALE, "")
    is_plain = scale.isascii() and scale.isdigit() and str(int(scale)) == scale
    return is_plain and (not options.numeric_decimals or int(scale) <= MOST_PLAIN_DIGITS)


def _is_allowed(schema: Schema, options: WriterOptions, values: Any) -> bool:
    """Whether a value of a logical type is one that the record path writes unchanged."""
    import pyarrow.compute as pc

    if schema.name == TIME:
        return not is_beyond(values, MS_PER_DAY)
    if schema.name == DECIMAL:
        from airflow_connect.converters.decimal_columns import LONGEST_DECIMAL_BYTES, fits_text, is_shortest

        if options.numeric_decimals:
            return fits_text(values)
        longest: Any = pc.max(pc.binary_length(values))
        return (longest.as_py() or 0) <= LONGEST_DECIMAL_BYTES and is_shortest(values)
    return True


def _needs_no_escapes(values: Any) -> bool:
    """Whether every value can be quoted without escapes; checks the bytes of all values at once."""
    import numpy as np

    if not len(values):
        return True
    _, offsets, data = values.buffers()
    bounds = np.frombuffer(offsets, np.int32)
    first, last = int(bounds[values.offset]), int(bounds[values.offset + len(values)])
    if first == last:
        return True
    text = np.frombuffer(data, np.uint8, last - first, first)
    # Numbers below the first printable character wrap around, so that one comparison finds both ends.
    odd = (text - np.uint8(_FIRST_PRINTABLE)) > _LAST_PRINTABLE - _FIRST_PRINTABLE
    odd |= text == ord('"')
    odd |= text == ord("\\")
    return not odd.any()


def _strings(values: Any) -> Any:
    """Quoted text; the few values that need escapes are written one by one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    quoted: Any = pc.binary_join_element_wise('"', values, '"', "")
    plain = pc.match_substring_regex(values, _QUOTED_AS_IT_IS)
    special = pc.invert(plain)
    if not pc.any(special).as_py():
        return quoted
    texts = pa.array([string_text(text) for text in values.filter(special).to_pylist()], pa.string())
    return pc.replace_with_mask(quoted, pc.fill_null(special, False), texts)

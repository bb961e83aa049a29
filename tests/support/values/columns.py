"""Records as columns and back, as airflow_connect/api/columns.py lays them out, and columns made up by hypothesis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from airflow_connect.api.columns import RecordColumns, ValueColumns
from airflow_connect.api.record import TIMESTAMP_CREATE_TIME, TIMESTAMP_NOT_AVAILABLE, KafkaRecord, SinkRecord
from airflow_connect.api.schema import (
    DATE,
    DECIMAL,
    DECIMAL_SCALE,
    TIME,
    Schema,
    Type,
    array,
    date,
    decimal,
    map_of,
    struct,
    time,
    timestamp,
)
from airflow_connect.api.transform import Transformation
from airflow_connect.errors import DataError
from tests.support.values.connect_values import same

ARROW_TYPES: dict[Type, pa.DataType] = {
    Type.INT8: pa.int8(),
    Type.INT16: pa.int16(),
    Type.INT32: pa.int32(),
    Type.INT64: pa.int64(),
    Type.FLOAT32: pa.float32(),
    Type.FLOAT64: pa.float64(),
    Type.BOOLEAN: pa.bool_(),
    Type.STRING: pa.string(),
    Type.BYTES: pa.binary(),
}


def records_of(schema: Schema, values: Sequence[Any]) -> list[SinkRecord]:
    """Consecutive records of `orders-3` with these values of `schema`."""
    return [
        SinkRecord(
            topic="orders",
            partition=3,
            offset=100 + index,
            value_schema=schema,
            value=value,
            timestamp=1_700_000_000_123 + index,
        )
        for index, value in enumerate(values)
    ]


def arrow_type(schema: Schema) -> pa.DataType:
    """Arrow type of values of `schema`."""
    if schema.type is Type.ARRAY:
        assert schema.value_schema is not None
        return pa.list_(arrow_type(schema.value_schema))
    if schema.type is Type.MAP:
        assert schema.key_schema is not None and schema.value_schema is not None
        return pa.map_(arrow_type(schema.key_schema), arrow_type(schema.value_schema))
    if schema.type is Type.STRUCT:
        return pa.struct([pa.field(field.name, arrow_type(field.schema)) for field in schema.fields])
    return ARROW_TYPES[schema.type]


def to_columns(records: Sequence[SinkRecord], *, with_key: bool = False) -> RecordColumns:
    """Records of one partition, one schema and one timestamp type, at least one, as a batch."""
    first = records[0]
    has_time = first.timestamp is not None
    return RecordColumns(
        topic=first.topic,
        original_topic=first.original_topic,
        original_partition=first.original_partition,
        offsets=np.array([record.offset for record in records], np.int64),
        timestamps=np.array([record.timestamp if has_time else -1 for record in records], np.int64),
        timestamp_type=TIMESTAMP_CREATE_TIME if has_time else TIMESTAMP_NOT_AVAILABLE,
        key=_value_columns(first.key_schema, [record.key for record in records]) if with_key else None,
        value=_value_columns(first.value_schema, [record.value for record in records]),
        read_records=lambda indexes: [_unconverted(records[index]) for index in indexes],
        indexes=np.arange(len(records)),
    )


def _unconverted(record: SinkRecord) -> KafkaRecord:
    return KafkaRecord(record.original_topic, record.original_partition, record.offset, None, None, record.timestamp)


def _value_columns(schema: Schema | None, values: list[Any]) -> ValueColumns:
    if schema is None:
        return ValueColumns(None, _sliced([repr(value).encode() for value in values], pa.binary()))
    return ValueColumns(schema, _sliced([_to_arrow(schema, value) for value in values], arrow_type(schema)))


def _sliced(values: list[Any], kind: Any) -> Any:
    """The middle of a longer array, as a part of a batch is: what begins at 0 hides that an offset is ignored."""
    return pa.array([*values, *values, *values], kind).slice(len(values), len(values))


def _to_arrow(schema: Schema, value: Any) -> Any:
    if value is None:
        return None
    if schema.name == DECIMAL and isinstance(value, Decimal):
        unscaled = int(value.scaleb(int(schema.parameters[DECIMAL_SCALE])))
        return unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)
    if schema.type is Type.ARRAY:
        return [_to_arrow(schema.value_schema, item) for item in value]
    if schema.type is Type.MAP:
        return [(_to_arrow(schema.key_schema, k), _to_arrow(schema.value_schema, v)) for k, v in value.items()]
    if schema.type is Type.STRUCT:
        return {field.name: _to_arrow(field.schema, value.get(field.name)) for field in schema.fields}
    return value


def to_records(batch: RecordColumns) -> list[SinkRecord]:
    """The records of a batch; it also checks that every column has the type that its schema asks for."""
    count = len(batch)
    keys = [None] * count if batch.key is None else _python_values(batch.key, count)
    values = _python_values(batch.value, count)
    has_time = batch.timestamp_type != TIMESTAMP_NOT_AVAILABLE
    assert len(batch.timestamps) == len(batch.indexes) == count
    return [
        SinkRecord(
            topic=batch.topic,
            partition=batch.original_partition,
            offset=int(batch.offsets[index]),
            key_schema=None if batch.key is None else batch.key.schema,
            key=keys[index],
            value_schema=batch.value.schema,
            value=values[index],
            timestamp=int(batch.timestamps[index]) if has_time else None,
            timestamp_type=batch.timestamp_type,
            original_topic=batch.original_topic,
            original_partition=batch.original_partition,
        )
        for index in range(count)
    ]


def _python_values(part: ValueColumns, count: int) -> list[Any]:
    assert len(part) == count
    if part.schema is None:
        return part.values.to_pylist()
    assert part.values.type == arrow_type(part.schema), (part.values.type, part.schema)
    part.values.validate(full=True)
    return [_from_arrow(part.schema, value) for value in part.values.to_pylist()]


def _from_arrow(schema: Schema, value: Any) -> Any:
    if value is None:
        return None
    if schema.name == DECIMAL and schema.type is Type.BYTES:
        return Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-int(schema.parameters[DECIMAL_SCALE]))
    if schema.type is Type.ARRAY:
        return [_from_arrow(schema.value_schema, item) for item in value]
    if schema.type is Type.MAP:
        return {_from_arrow(schema.key_schema, k): _from_arrow(schema.value_schema, v) for k, v in value}
    if schema.type is Type.STRUCT:
        return {field.name: _from_arrow(field.schema, value[field.name]) for field in schema.fields}
    return value


# What hypothesis makes up


_INTEGER_BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
_TEXTS = st.one_of(
    st.text(max_size=8),
    st.integers().map(str),
    st.floats().map(str),
    st.sampled_from(["true", "TRUE", "", "+1", " 1", "0x1F", "1f", "1e400", "1E5", "-0", "inf", "NaN"]),
)


_LOGICAL: tuple[Callable[[bool], Schema], ...] = (
    lambda is_optional: date(optional=is_optional),
    lambda is_optional: time(optional=is_optional),
    lambda is_optional: timestamp(optional=is_optional),
    lambda is_optional: decimal(2, optional=is_optional),
)


def values_of(schema: Schema) -> st.SearchStrategy[Any]:
    """Values of `schema`, with None where it is optional."""
    plain = _required_values(schema)
    return st.one_of(st.none(), plain) if schema.optional else plain


def _required_values(schema: Schema) -> st.SearchStrategy[Any]:
    kind = schema.type
    if schema.name == DECIMAL:
        scale = int(schema.parameters[DECIMAL_SCALE])
        return st.integers(-(10**12), 10**12).map(lambda unscaled: Decimal(unscaled).scaleb(-scale))
    if schema.name == DATE:
        return st.integers(-200_000, 200_000)
    if schema.name == TIME:
        return st.integers(0, 86_399_999)
    if kind in _INTEGER_BITS:
        half = 1 << _INTEGER_BITS[kind] - 1
        return st.one_of(st.integers(-half, half - 1), st.integers(-100, 100))
    if kind in (Type.FLOAT32, Type.FLOAT64):
        return st.one_of(st.floats(width=32 if kind is Type.FLOAT32 else 64), st.sampled_from([0.5, -0.0, 300.25]))
    if kind is Type.STRUCT:
        return st.fixed_dictionaries({field.name: values_of(field.schema) for field in schema.fields})
    if kind is Type.ARRAY:
        return st.lists(values_of(schema.value_schema), max_size=3)
    if kind is Type.MAP:
        return st.dictionaries(_required_values(schema.key_schema), values_of(schema.value_schema), max_size=3)
    return {Type.BOOLEAN: st.booleans(), Type.BYTES: st.binary(max_size=6)}.get(kind, _TEXTS)


@st.composite
def member_schemas(draw: st.DrawFn, *, depth: int = 1) -> Schema:
    """Schemas of fields: every type, logical ones too, optional or not, some with a default."""
    is_optional = draw(st.booleans())
    choice = draw(st.sampled_from([*ARROW_TYPES, *_LOGICAL, Type.ARRAY, *((Type.MAP, Type.STRUCT) if depth else ())]))
    if choice is Type.STRUCT:
        return draw(struct_schemas(names=("x", "y"), depth=depth - 1, optional=is_optional))
    if choice is Type.ARRAY:
        return array(Schema(Type.INT32), optional=is_optional)
    if choice is Type.MAP:
        return map_of(Schema(Type.STRING), Schema(Type.STRING, optional=True), optional=is_optional)
    if not isinstance(choice, Type):
        return choice(is_optional)
    schema = Schema(choice, optional=is_optional)
    default = draw(_required_values(schema)) if draw(st.booleans()) else None
    return Schema(choice, optional=is_optional, default=default)


@st.composite
def struct_schemas(
    draw: st.DrawFn, *, names: Sequence[str] = ("a", "b", "c"), depth: int = 1, optional: bool = False
) -> Schema:
    """STRUCT schemas with the fields `names`."""
    members = [(name, draw(member_schemas(depth=depth))) for name in names]
    return struct(*members, name=draw(st.sampled_from([None, "rec"])), version=1, optional=optional)


@st.composite
def struct_records(draw: st.DrawFn, schemas: st.SearchStrategy[Schema] | None = None) -> list[SinkRecord]:
    """One to five records of one partition, whose values are structs of one schema."""
    schema = draw(struct_schemas() if schemas is None else schemas)
    records = records_of(schema, draw(st.lists(values_of(schema), min_size=1, max_size=5)))
    if draw(st.booleans()):
        return records
    return [record.changed(timestamp=None, timestamp_type=TIMESTAMP_NOT_AVAILABLE) for record in records]


def assert_same_both_ways(transformation: Transformation, records: list[SinkRecord]) -> bool:
    """Hold the columnar form of a transformation equal to its record form.

    Returns:
        Whether the batch was plain, so that there was something to compare.
    """
    batch = transformation.apply_columns(to_columns(records))  # type: ignore[attr-defined]
    if batch is None:
        return False
    try:
        expected = [new for record in records if (new := transformation.apply(record)) is not None]
    except DataError as error:
        raise AssertionError(f"columns were made although a record fails: {error}") from error
    actual = to_records(batch)
    assert same(actual, expected), (actual, expected)
    return True

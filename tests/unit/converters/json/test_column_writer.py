"""JsonConverter writes columns byte for byte as it writes each value alone."""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.api import schema as schemas
from airflow_connect.api.schema import Schema, Type
from airflow_connect.converters.json.converter import JsonConverter
from airflow_connect.java.numbers import unscaled_bytes
from tests.support.session.searching import examples

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(['"', "\\", "\x7f", "\n", "😀"])
KINDS: dict[Type, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    Type.INT8: (pa.int8(), st.integers(-128, 127)),
    Type.INT64: (pa.int64(), st.integers(-(1 << 63), (1 << 63) - 1)),
    Type.FLOAT32: (pa.float32(), st.floats(width=32)),
    Type.FLOAT64: (pa.float64(), st.floats()),
    Type.BOOLEAN: (pa.bool_(), st.booleans()),
    Type.STRING: (pa.string(), TEXT),
    Type.BYTES: (pa.binary(), st.binary(max_size=60)),
}


def converter(**config: str) -> JsonConverter:
    found = JsonConverter()
    found.configure({key.replace("_", "."): value for key, value in config.items()})
    return found


def one_by_one(json: JsonConverter, schema: Schema, values: pa.Array) -> list[str]:
    return [(json.from_connect("t", schema, value) or b"").decode() for value in values.to_pylist()]


@st.composite
def structs(draw: st.DrawFn) -> tuple[Schema, pa.Array]:
    names = draw(st.lists(TEXT.filter(bool), min_size=1, max_size=5, unique=True))
    kinds = [draw(st.sampled_from(sorted(KINDS, key=lambda kind: kind.name))) for _ in names]
    optional = [draw(st.booleans()) for _ in names]
    count = draw(st.integers(1, 6))
    columns = []
    for kind, may_be_null in zip(kinds, optional, strict=True):
        arrow, values = KINDS[kind]
        one = values | st.none() if may_be_null else values
        columns.append(pa.array(draw(st.lists(one, min_size=count, max_size=count)), arrow))
    fields = zip(names, kinds, optional, strict=True)
    schema = schemas.struct(*((name, Schema(kind, optional=may)) for name, kind, may in fields))
    return schema, pa.StructArray.from_arrays(columns, names).slice(draw(st.integers(0, count - 1)))


@settings(max_examples=examples(150), deadline=None)
@given(structs(), st.sampled_from(["true", "false"]))
def test_structs_of_scalars_are_the_same_text(found: tuple[Schema, pa.Array], envelope: str):
    schema, values = found
    json = converter(schemas_enable=envelope)

    written = json.from_columns("t", schema, values)

    assert written is not None
    assert written.to_pylist() == one_by_one(json, schema, values)


@pytest.mark.parametrize(("kind", "dtype"), [(Type.FLOAT64, np.float64), (Type.FLOAT32, np.float32)])
def test_fractions_are_the_same_text_at_every_size(kind: Type, dtype: Any):
    """Java writes an exponent below 0.001 and from ten million on."""
    chance = np.random.default_rng(7)
    limits = np.array([1e-3, 1e7, 0.0, np.inf], dtype)
    beside = [np.nextafter(limits, dtype(towards)) for towards in (-np.inf, np.inf)]
    sizes = (10 ** chance.uniform(-6, 9, 1500)).astype(dtype)
    whole = chance.integers(0, 20_000_000, 300).astype(dtype)
    cents = (chance.integers(0, 10**8, 300) / 100).astype(dtype)
    numbers = np.concatenate([limits, *beside, sizes, whole, cents, np.array([np.nan], dtype)])
    values = pa.array([*numbers, *-numbers, None], KINDS[kind][0])
    json, schema = converter(schemas_enable="false"), Schema(kind, optional=True)

    written = json.from_columns("t", schema, values)

    assert written is not None and written.to_pylist() == one_by_one(json, schema, values)


@pytest.mark.parametrize("envelope", ["true", "false"])
def test_scalars_alone_and_defaults_are_the_same_text(envelope: str):
    json = converter(schemas_enable=envelope)
    lines = pa.array(["plain", 'a "b"', "é", ""])
    optional = Schema(Type.INT32, optional=True, default=7)
    numbers = pa.array([1, None, 3], pa.int32())

    days, instants = pa.array([-1, 20_000], pa.int32()), pa.array([0, -(1 << 62)])
    times = pa.array([0, 86_400_000], pa.int32())
    logical = ((schemas.date(), days), (schemas.timestamp(), instants), (schemas.time(), times))
    for schema, values in ((schemas.STRING, lines), (optional, numbers), *logical):
        written = json.from_columns("t", schema, values)
        assert written is not None and written.to_pylist() == one_by_one(json, schema, values)
    kept = converter(schemas_enable=envelope, replace_null_with_default="false")
    written = kept.from_columns("t", optional, numbers)
    assert written is not None and written.to_pylist() == one_by_one(kept, optional, numbers)


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        (None, pa.array(["x"])),
        (schemas.STRING, pa.array(["x", None])),
        (Schema(Type.INT32), pa.array([1], pa.int64())),
        (schemas.decimal(2), pa.array([b"\x00\x01"])),
        (schemas.decimal(2), pa.array([b"\x01", b""])),
        (schemas.decimal(2), pa.array([b"\x01" * 65])),
        (Schema(Type.BYTES, name=schemas.DECIMAL), pa.array([b"\x01"])),
        (schemas.time(), pa.array([-1], pa.int32())),
        (schemas.time(), pa.array([86_400_001], pa.int32())),
        (Schema(Type.STRING, name=schemas.TIMESTAMP), pa.array(["x"])),
        (schemas.struct(("a", schemas.array(schemas.STRING))), pa.array([{"a": ["x"]}])),
        (schemas.struct(("a", schemas.STRING)), pa.array([{"b": "x"}])),
        (schemas.struct(("a", schemas.STRING)), pa.array([{"a": "x"}, None])),
        (schemas.struct(), pa.array([{}])),
    ],
)
def test_what_is_not_plain_goes_record_by_record(schema: Schema | None, values: pa.Array):
    assert converter().from_columns("t", schema, values) is None


UNSCALED = st.integers(-(1 << 127), (1 << 127) - 1) | st.integers(-300, 300) | st.integers(-(1 << 70), 1 << 70)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(UNSCALED | st.none(), min_size=1, max_size=8), st.sampled_from(["true", "false"]))
def test_decimals_are_the_same_text(numbers: list[int | None], envelope: str):
    schema = schemas.decimal(3, optional=True)
    values = pa.array([None if number is None else unscaled_bytes(number) for number in numbers], pa.binary())
    json = converter(schemas_enable=envelope)

    written = json.from_columns("t", schema, values)

    decimals = [None if n is None else Decimal(n).scaleb(-3, Context(prec=60)) for n in numbers]
    assert written is not None
    assert written.to_pylist() == [(json.from_connect("t", schema, value) or b"").decode() for value in decimals]


LONGS = st.builds(lambda n, bits: n >> bits, st.integers(-(1 << 63), (1 << 63) - 1), st.integers(0, 63))


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(LONGS | st.none(), min_size=1, max_size=8), st.integers(0, 6), st.integers(0, 2))
def test_decimals_as_numbers_are_the_same_text(numbers: list[int | None], scale: int, first: int):
    schema = schemas.decimal(scale, optional=True)
    values = pa.array([None if number is None else unscaled_bytes(number) for number in numbers], pa.binary())
    json = converter(schemas_enable="false", decimal_format="NUMERIC")

    written = json.from_columns("t", schema, values.slice(first))

    decimals = [None if n is None else Decimal(n).scaleb(-scale, Context(prec=60)) for n in numbers[first:]]
    assert written is not None
    assert written.to_pylist() == [(json.from_connect("t", schema, value) or b"").decode() for value in decimals]


@pytest.mark.parametrize(("scale", "data"), [(7, b"\x01"), (2, b"\x01" * 9), (2, b""), (-1, b"\x01")])
def test_other_decimals_as_numbers_go_record_by_record(scale: int, data: bytes):
    numeric = converter(decimal_format="NUMERIC")
    assert numeric.from_columns("t", schemas.decimal(scale), pa.array([data])) is None

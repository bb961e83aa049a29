"""ProtobufConverter writes columns byte for byte as it writes each value alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.api import schema as schemas
from airflow_connect.api.schema import Schema, Type
from airflow_connect.converters.protobuf import names
from airflow_connect.errors import DataError
from airflow_connect.java.numbers import unscaled_bytes
from airflow_connect.registry.converters.protobuf_converter import ProtobufConverter
from airflow_connect.runtime.executor.source.columns import python_values
from tests.support.session.searching import examples
from tests.support.values.columns import arrow_type, struct_records, to_columns
from tests.unit.registry.registry_double import RegistryDouble

SCALARS = (
    Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64, Type.BOOLEAN, Type.STRING, Type.BYTES
)  # fmt: skip
LOGICAL = (schemas.date, schemas.time, schemas.timestamp, lambda optional: schemas.decimal(3, optional=optional))
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "optional.for.nullables": st.just("true"),
        "wrapper.for.nullables": st.just("true"),
        "scrub.invalid.names": st.just("true"),
        "enhanced.protobuf.schema.support": st.just("true"),
    },
)


@pytest.fixture(scope="module")
def registry() -> Iterator[RegistryDouble]:
    with RegistryDouble((200, {"id": 300})) as double:
        yield double


def converter(registry: RegistryDouble, **config: str) -> ProtobufConverter:
    found = ProtobufConverter()
    found.configure({"schema.registry.url": registry.url, **config})
    return found


def one_by_one(protobuf: ProtobufConverter, schema: Schema, column: Any) -> list[bytes | None] | None:
    """The messages; None: one of the values, or the schema, is refused."""
    try:
        return [protobuf.from_connect("t", schema, value) for value in python_values(schema, column)]
    except DataError:
        return None


def assert_same(protobuf: ProtobufConverter, schema: Schema, column: Any) -> bool:
    """Compare; returns whether there were columns."""
    written = protobuf.from_columns("t", schema, column)
    if written is None:
        return False
    written.validate(full=True)
    assert written.to_pylist() == one_by_one(protobuf, schema, column)
    return True


@st.composite
def members(draw: st.DrawFn, depth: int) -> Schema:
    """Schemas of what has a columnar form, without defaults."""
    optional = draw(st.booleans())
    choice = draw(st.integers(0, 9))
    if depth and choice == 0:
        return draw(structs(depth - 1, optional=optional))
    if depth and choice == 1:
        return schemas.array(draw(members(0) if draw(st.booleans()) else structs(depth - 1)), optional=optional)
    if depth and choice == 2:
        return schemas.map_of(
            Schema(draw(st.sampled_from(SCALARS[:4] + SCALARS[6:8]))), draw(members(0)), optional=optional
        )
    if choice <= 5:
        return draw(st.sampled_from(LOGICAL))(optional=optional)
    return Schema(draw(st.sampled_from(SCALARS)), optional=optional)


@st.composite
def structs(draw: st.DrawFn, depth: int = 2, *, optional: bool = False) -> Schema:
    """Structs whose fields have any numbers, small and large."""
    tags = draw(st.lists(st.sampled_from([1, 2, 3, 15, 16, 17, 2047, 2048, 536_870_911]), max_size=5, unique=True))
    fields = []
    for number in range(draw(st.integers(0, 5))):
        member = draw(members(depth))
        if number < len(tags) and member.type not in (Type.ARRAY, Type.MAP):
            member = replace(member, parameters={**member.parameters, names.TAG: str(tags[number])})
        fields.append((f"f{number}", member))
    return schemas.struct(*fields, optional=optional)


def values_of(schema: Schema) -> st.SearchStrategy[Any]:
    """Arrow's form of values, zeros and limits among them; null in any field."""
    kind = schema.type
    if schema.name == schemas.DECIMAL:
        found: st.SearchStrategy[Any] = (st.integers(-300, 300) | st.integers(-(10**40), 10**40)).map(unscaled_bytes)
    elif schema.name == schemas.DATE:
        found = st.integers(-141_427, 2_932_896) | st.sampled_from([0, -1, -141_427, 2_932_896, 11_016, 59])
    elif schema.name == schemas.TIME:
        found = st.integers(0, 86_400_000) | st.sampled_from([0, 86_400_000, 999, 3_600_000])
    elif schema.name == schemas.TIMESTAMP:
        found = st.integers(-62_135_596_800_000, 253_402_300_799_999) | st.sampled_from([0, -1, -1000, 999, 1000])
    elif kind is Type.STRUCT:
        found = st.fixed_dictionaries({field.name: values_of(field.schema) | st.none() for field in schema.fields})
    elif kind is Type.ARRAY:
        assert schema.value_schema is not None
        found = st.lists(values_of(schema.value_schema), max_size=4)
    elif kind is Type.MAP:
        assert schema.key_schema is not None and schema.value_schema is not None
        pairs = st.dictionaries(values_of(schema.key_schema), values_of(schema.value_schema) | st.none(), max_size=3)
        found = pairs.map(lambda entries: list(entries.items()))
    else:
        found = _scalars(kind)
    return found


def _scalars(kind: Type) -> st.SearchStrategy[Any]:
    bits = {Type.INT8: 7, Type.INT16: 15, Type.INT32: 31, Type.INT64: 63}.get(kind)
    if bits is not None:
        half = 1 << bits
        return st.integers(-half, half - 1) | st.sampled_from([0, -1, 1, 127, half - 1, -half])
    if kind in (Type.FLOAT32, Type.FLOAT64):
        width = 32 if kind is Type.FLOAT32 else 64
        return st.floats(width=width, allow_nan=False) | st.sampled_from([0.0, -0.0, 1.5, float("nan")])
    if kind is Type.BOOLEAN:
        return st.booleans()
    if kind is Type.BYTES:
        return st.binary(max_size=5) | st.sampled_from([b"", b"\0" * 130])
    return st.text(max_size=5) | st.sampled_from(["", "é" * 70])


def columns_of(data: st.DataObject, schema: Schema) -> Any:
    """The middle of a longer column."""
    values = data.draw(st.lists(values_of(schema), min_size=1, max_size=6))
    first = data.draw(st.integers(0, len(values) - 1))
    return pa.array([*values, *values[:1]], arrow_type(schema)).slice(first, len(values) - first)


@settings(max_examples=examples(400), deadline=None)
@given(st.data(), structs(), OPTIONS)
def test_structs_are_the_same_bytes(
    registry: RegistryDouble, data: st.DataObject, schema: Schema, config: dict[str, str]
) -> None:
    column = columns_of(data, schema)
    protobuf = converter(registry, **config)
    assert assert_same(protobuf, schema, column) is (one_by_one(protobuf, schema, column) is not None)


@settings(max_examples=examples(150), deadline=None)
@given(struct_records(), OPTIONS)
def test_what_is_written_of_any_schema_is_the_same(
    registry: RegistryDouble, records: list[Any], config: dict[str, str]
) -> None:
    part = to_columns(records).value
    assert part.schema is not None
    assert_same(converter(registry, **config), part.schema, part.values)


@settings(max_examples=examples(60), deadline=None)
@given(st.data(), st.sampled_from(SCALARS))
def test_scalars_alone_are_the_same_bytes(registry: RegistryDouble, data: st.DataObject, kind: Type) -> None:
    schema = Schema(kind, optional=True)
    assert assert_same(converter(registry), schema, columns_of(data, schema))


def test_limits_of_each_type_are_the_same_bytes(registry: RegistryDouble) -> None:
    edges = {
        schemas.date(): [0, -1, -141_427, 2_932_896, 11_016, 59],
        schemas.time(): [0, 86_399_999, 86_400_000],
        schemas.timestamp(): [0, -1, -62_135_596_800_000, 253_402_300_799_999],
        schemas.INT64: [0, 127, 128, (1 << 63) - 1, -(1 << 63), -1],
        schemas.STRING: ["", "x" * 127, "x" * 128, "é" * 9000],
        schemas.decimal(0): [unscaled_bytes(n) for n in (0, 9, 10, -10, 255, 10**150, -(10**150))],
        schemas.decimal(-2): [unscaled_bytes(1)],
    }
    for member, values in edges.items():
        schema = schemas.struct(("a", member), ("b", schemas.OPTIONAL_STRING))
        column = pa.array([{"a": value, "b": "b"} for value in values], arrow_type(schema))
        assert assert_same(converter(registry), schema, column), member


def test_decimal_has_the_precision_of_its_digits(registry: RegistryDouble) -> None:
    schema = schemas.struct(("a", schemas.decimal(3)))
    column = pa.array([{"a": unscaled_bytes(n)} for n in (0, 7, -1234)])
    protobuf = converter(registry)
    written = protobuf.from_columns("t", schema, column)
    values = [{"a": Decimal(n).scaleb(-3, Context(prec=60))} for n in (0, 7, -1234)]
    assert written is not None
    assert written.to_pylist() == [protobuf.from_connect("t", schema, value) for value in values]


WITH_DEFAULT = schemas.struct(("a", Schema(Type.STRING, optional=True, default="d")))
TEXTS = schemas.struct(("a", schemas.array(schemas.OPTIONAL_STRING)))
ENUM = Schema(Type.STRING, parameters={names.ENUM: "E", f"{names.ENUM}.x": "0"})


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        (None, pa.array([b"1\n"])),
        (Schema(Type.STRING), pa.array([], pa.string())),
        (Schema(Type.STRING, optional=True), pa.array(["x", None])),
        (Schema(Type.INT32), pa.array([1], pa.int64())),
        (schemas.date(), pa.array([1], pa.int32())),
        (schemas.struct(("a", schemas.decimal(2))), pa.array([{"a": b"\x00\x01"}])),
        (schemas.struct(("a", schemas.decimal(2))), pa.array([{"a": b""}])),
        (schemas.struct(("a", schemas.decimal(2))), pa.array([{"a": b"\x01" * 65}])),
        (schemas.struct(("a", schemas.date())), pa.array([{"a": -141_428}], pa.struct([("a", pa.int32())]))),
        (schemas.struct(("a", schemas.time())), pa.array([{"a": 86_400_001}], pa.struct([("a", pa.int32())]))),
        (schemas.struct(("a", schemas.time())), pa.array([{"a": -1}], pa.struct([("a", pa.int32())]))),
        (schemas.struct(("a", schemas.timestamp())), pa.array([{"a": 253_402_300_800_000}])),
        (schemas.struct(("a", schemas.timestamp())), pa.array([{"a": -62_135_596_800_001}])),
        (schemas.struct(("a", schemas.STRING)), pa.array([{"b": "x"}])),
        (schemas.struct(("a", schemas.STRING)), pa.array([{"a": "x"}, None])),
        (schemas.struct(("a b", schemas.STRING)), pa.array([{"a b": "x"}])),
        (WITH_DEFAULT, pa.array([{"a": None}], pa.struct([("a", pa.string())]))),
        (TEXTS, pa.array([{"a": ["x", None]}])),
        (schemas.struct(("a", ENUM)), pa.array([{"a": "x"}])),
        (schemas.struct(("a", schemas.array(ENUM))), pa.array([{"a": ["x"]}])),
        (schemas.struct(("a", replace(schemas.INT64, parameters={names.TYPE: "sint64"}))), pa.array([{"a": 1}])),
        (schemas.struct(("a", schemas.map_of(schemas.STRING, schemas.STRING))),
         pa.array([{"a": [("k", "x"), ("k", "y")]}], pa.struct([("a", pa.map_(pa.string(), pa.string()))]))),
    ],
)  # fmt: skip
def test_what_is_not_plain_goes_value_by_value(
    registry: RegistryDouble, schema: Schema | None, values: pa.Array[Any]
) -> None:
    assert converter(registry).from_columns("t", schema, values) is None


def test_defaults_of_values_that_are_there_and_nulls_without_one_are_columns(registry: RegistryDouble) -> None:
    assert assert_same(converter(registry), WITH_DEFAULT, pa.array([{"a": "x"}, {"a": ""}]))
    required = schemas.struct(("a", schemas.STRING), ("b", schemas.INT64))
    column = pa.array([{"a": None, "b": 1}, {"a": "x", "b": None}], arrow_type(required))
    assert assert_same(converter(registry), required, column)


def test_fields_of_absent_structs_are_not_written(registry: RegistryDouble) -> None:
    """Arrow keeps values below a null struct; nothing may be seen of them, whatever they are."""
    inner = schemas.struct(
        ("t", schemas.STRING), ("l", schemas.array(schemas.INT32)),
        ("m", schemas.map_of(schemas.STRING, schemas.INT32)),
        ("d", schemas.decimal(1)), ("at", schemas.timestamp()), ("s", schemas.struct(("n", schemas.INT64))),
        optional=True,
    )  # fmt: skip
    schema = schemas.struct(("inner", inner), ("id", schemas.INT64))
    full = {"t": "x", "l": [1, 2], "m": [("k", 1)], "d": b"\x01", "at": 10**18, "s": {"n": 5}}
    hidden = pa.array([full] * 3, arrow_type(inner))
    seen = {**full, "at": 1}
    rows: Any = pa.concat_arrays([hidden, pa.array([seen], arrow_type(inner))])
    parts = [rows.field(n) for n in range(rows.type.num_fields)]
    masked = pa.StructArray.from_arrays(parts, fields=list(rows.type), mask=pa.array([True, True, True, False]))
    column = pa.StructArray.from_arrays([masked, pa.array([1, 2, 3, 4])], names=["inner", "id"])
    assert assert_same(converter(registry), schema, column)


def test_schema_of_the_registry_that_is_another_one_goes_value_by_value() -> None:
    latest = 'syntax = "proto3"; message ConnectDefault1 { string b = 1; string a = 2; }'
    document = {"subject": "t-value", "version": 1, "id": 3, "schema": latest, "schemaType": "PROTOBUF"}
    with RegistryDouble((200, document)) as double:
        protobuf = converter(
            double,
            **{"auto.register.schemas": "false", "use.latest.version": "true", "latest.compatibility.strict": "false"},
        )
        schema = schemas.struct(("a", schemas.STRING))
        assert protobuf.from_columns("t", schema, pa.array([{"a": "x"}])) is None
        assert protobuf.from_connect("t", schema, {"a": "x"}) == b"\0\0\0\0\x03\0\x12\x01x"

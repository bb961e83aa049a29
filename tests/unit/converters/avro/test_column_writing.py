"""AvroConverter writes columns byte for byte as it writes each value alone."""

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
from airflow_connect.java.numbers import unscaled_bytes
from airflow_connect.registry.converters.avro_converter import AvroConverter
from tests.support.session.searching import examples
from tests.support.values.columns import arrow_type, struct_records, to_columns, values_of
from tests.unit.registry.registry_double import RegistryDouble

SCALARS = (
    Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64, Type.BOOLEAN, Type.STRING, Type.BYTES
)  # fmt: skip


@pytest.fixture(scope="module")
def registry() -> Iterator[RegistryDouble]:
    with RegistryDouble((200, {"id": 300})) as double:
        yield double


def converter(registry: RegistryDouble, **config: str) -> AvroConverter:
    found = AvroConverter()
    given_keys = {key.replace("_", "."): value for key, value in config.items()}
    found.configure({"schema.registry.url": registry.url, **given_keys})
    return found


def one_by_one(avro: AvroConverter, schema: Schema, values: list[Any]) -> list[bytes | None]:
    return [avro.from_connect("t", schema, value) for value in values]


@st.composite
def plain_structs(draw: st.DrawFn, depth: int = 2) -> Schema:
    """Structs of what has a columnar form, without defaults."""
    fields = []
    for number in range(draw(st.integers(1, 5))):
        optional = draw(st.booleans())
        if depth and draw(st.integers(0, 3)) == 0:
            inner = draw(plain_structs(depth - 1))
            fields.append(
                (f"f{number}", schemas.struct(*((f.name, f.schema) for f in inner.fields), optional=optional))
            )
        else:
            logical = draw(st.sampled_from([None, schemas.date, schemas.time, schemas.timestamp]))
            kind = Schema(draw(st.sampled_from(SCALARS)), optional=optional)
            fields.append((f"f{number}", kind if logical is None else logical(optional=optional)))
    return schemas.struct(*fields)


@settings(max_examples=examples(200), deadline=None)
@given(st.data(), plain_structs())
def test_structs_are_the_same_bytes(registry: RegistryDouble, data: st.DataObject, schema: Schema) -> None:
    values = data.draw(st.lists(values_of(schema), min_size=1, max_size=6))
    first = data.draw(st.integers(0, len(values) - 1))
    column = pa.array(values, arrow_type(schema)).slice(first)
    avro = converter(registry)

    written = avro.from_columns("t", schema, column)

    assert written is not None
    assert written.to_pylist() == one_by_one(avro, schema, values[first:])


@settings(max_examples=examples(150), deadline=None)
@given(struct_records(), st.sampled_from(["true", "false"]))
def test_what_is_written_of_any_schema_is_the_same(registry: RegistryDouble, records: list[Any], ignores: str) -> None:
    avro = converter(registry, ignore_default_for_nullables=ignores)
    part = to_columns(records).value

    written = avro.from_columns("t", part.schema, part.values)

    if written is not None:
        assert written.to_pylist() == one_by_one(avro, records[0].value_schema, [record.value for record in records])


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.integers(-(1 << 130), 1 << 130) | st.integers(-300, 300) | st.none(), min_size=1, max_size=8))
def test_decimals_are_the_same_bytes(registry: RegistryDouble, numbers: list[int | None]) -> None:
    avro, schema = converter(registry), schemas.struct(("a", schemas.decimal(3, optional=True)))
    column = pa.array([None if number is None else unscaled_bytes(number) for number in numbers], pa.binary())

    written = avro.from_columns("t", schema, pa.StructArray.from_arrays([column], ["a"]))

    values = [{"a": None if n is None else Decimal(n).scaleb(-3, Context(prec=60))} for n in numbers]
    assert written is not None and written.to_pylist() == one_by_one(avro, schema, values)


def test_long_numbers_and_scalars_alone(registry: RegistryDouble) -> None:
    avro = converter(registry)
    edges = [0, -1, 63, 64, -64, -65, 8191, 8192, (1 << 63) - 1, -(1 << 63)]
    texts = ["", "é", "x" * 70]
    for schema, column in (
        (Schema(Type.INT64), pa.array(edges)),
        (Schema(Type.STRING, optional=True), pa.array(texts)),
    ):
        written = avro.from_columns("t", schema, column)
        assert written is not None and written.to_pylist() == one_by_one(avro, schema, column.to_pylist())


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        (None, pa.array([b"1\n"])),
        (Schema(Type.STRING), pa.array([], pa.string())),
        (Schema(Type.STRING, optional=True), pa.array(["x", None])),
        (Schema(Type.INT32), pa.array([1], pa.int64())),
        (schemas.decimal(2), pa.array([b"\x00\x01"])),
        (schemas.decimal(2), pa.array([b""])),
        (schemas.decimal(2), pa.array([b"\x01" * 65])),
        (replace(schemas.decimal(2), parameters={"scale": "2", "connect.fixed.size": "4"}), pa.array([b"\x01"])),
        (schemas.struct(("a", schemas.array(schemas.STRING))), pa.array([{"a": ["x"]}])),
        (schemas.struct(("a", schemas.STRING)), pa.array([{"b": "x"}])),
        (schemas.struct(("a", schemas.STRING)), pa.array([{"a": "x"}, None])),
        (schemas.struct(("a", schemas.STRING)), pa.array([{"a": None}], pa.struct([("a", pa.string())]))),
        (schemas.struct(("not avro", schemas.STRING)), pa.array([{"not avro": "x"}])),
        (schemas.struct(), pa.array([{}])),
    ],
)
def test_what_is_not_plain_goes_value_by_value(
    registry: RegistryDouble, schema: Schema | None, values: pa.Array[Any]
) -> None:
    assert converter(registry).from_columns("t", schema, values) is None


def test_schema_of_the_registry_that_is_another_one_goes_value_by_value() -> None:
    latest = '{"type":"record","name":"ConnectDefault","namespace":"io.confluent.connect.avro","fields":[]}'
    document = {"subject": "t-value", "version": 1, "id": 3, "schema": latest}
    with RegistryDouble((200, document)) as double:
        config = {
            "auto_register_schemas": "false",
            "use_latest_version": "true",
            "latest_compatibility_strict": "false",
        }
        avro = converter(double, **config)
        schema = schemas.struct(("a", schemas.STRING))
        assert avro.from_columns("t", schema, pa.array([{"a": "x"}])) is None
        assert avro.from_connect("t", schema, {"a": "x"}) == b"\0\0\0\0\x03"

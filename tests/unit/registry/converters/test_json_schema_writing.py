"""JsonSchemaConverter writes columns byte for byte as it writes each value alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.api import schema as schemas
from airflow_connect.api.schema import Schema, Type
from airflow_connect.converters.json_schema_mapping import names
from airflow_connect.errors import DataError
from airflow_connect.java.numbers import unscaled_bytes
from airflow_connect.registry.converters.json_schema_converter import JsonSchemaConverter
from airflow_connect.runtime.executor.source.columns import python_values
from tests.support.session.searching import examples
from tests.support.values.columns import arrow_type, struct_records, struct_schemas, to_columns
from tests.unit.converters.json.test_column_writer import structs
from tests.unit.registry.registry_double import RegistryDouble

OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "decimal.format": st.just("NUMERIC"),
        "ignore.default.for.nullables": st.just("true"),
        "use.optional.for.nonrequired": st.just("true"),
    },
)


@pytest.fixture(scope="module")
def registry() -> Iterator[RegistryDouble]:
    # The bytes of this id are no UTF-8.
    with RegistryDouble((200, {"id": 0xFFFE_C3})) as double:
        yield double


def converter(registry: RegistryDouble, **config: str) -> JsonSchemaConverter:
    found = JsonSchemaConverter()
    found.configure({"schema.registry.url": registry.url, **config})
    return found


def assert_same(converter: JsonSchemaConverter, schema: Schema, column: Any) -> bool:
    """Compare; returns whether there were columns."""
    written = converter.from_columns("t", schema, column)
    if written is None:
        return False
    assert written.type == pa.binary()
    try:
        expected = [converter.from_connect("t", schema, value) for value in python_values(schema, column)]
    except DataError as error:
        raise AssertionError(f"columns were made although a value is refused: {error}") from error
    assert written.to_pylist() == expected
    return True


@settings(max_examples=examples(150), deadline=None)
@given(structs(), OPTIONS)
def test_structs_of_scalars_are_the_same_bytes(
    registry: RegistryDouble, found: tuple[Schema, Any], config: dict[str, str]
) -> None:
    assert assert_same(converter(registry, **config), *found)


@settings(max_examples=examples(300), deadline=None)
@given(struct_records(struct_schemas(depth=0)) | struct_records(), OPTIONS)
def test_what_is_written_of_any_schema_is_the_same(
    registry: RegistryDouble, records: list[Any], config: dict[str, str]
) -> None:
    part = to_columns(records).value
    assert part.schema is not None
    assert_same(converter(registry, **config), part.schema, part.values)


@pytest.mark.parametrize("ignores", ["true", "false"])
def test_nulls_and_defaults_are_the_same_bytes(registry: RegistryDouble, ignores: str) -> None:
    schema = schemas.struct(
        ("a", Schema(Type.STRING, optional=True, default="é")),
        ("b", Schema(Type.INT64, optional=True)),
        ("c", schemas.decimal(2, optional=True)),
        ("d", schemas.time(optional=True)),
    )
    rows = [
        {"a": None, "b": 1, "c": unscaled_bytes(-12345), "d": 86_399_999},
        {"a": 'x"', "b": None, "c": None, "d": None},
    ]
    for form in ("BASE64", "NUMERIC"):
        config = {"ignore.default.for.nullables": ignores, "decimal.format": form}
        assert assert_same(converter(registry, **config), schema, pa.array(rows, arrow_type(schema)))


def test_scalars_alone_are_the_same_bytes(registry: RegistryDouble) -> None:
    for schema, values in (
        (schemas.INT64, [1, -(1 << 63)]),
        (schemas.OPTIONAL_STRING, ["é", None]),
        (schemas.date(), [1]),
    ):
        assert assert_same(converter(registry), schema, pa.array(values, arrow_type(schema)))


UNION = replace(schemas.struct(("a", schemas.OPTIONAL_INT64)), parameters={names.GENERAL_UNION: "u"})
REQUIRED = schemas.struct(("a", schemas.INT64), ("b", schemas.INT64))


@pytest.mark.parametrize(
    ("schema", "values", "config"),
    [
        (None, pa.array([b"1\n"]), {}),
        (UNION, pa.array([{"a": 1}]), {}),
        (REQUIRED, pa.array([{"a": 1, "b": None}], arrow_type(REQUIRED)), {}),
        (REQUIRED, pa.array([{"a": 1, "b": 2}, None], arrow_type(REQUIRED)), {}),
        (schemas.struct(("a", schemas.array(schemas.INT64))), pa.array([{"a": [1]}]), {}),
        (schemas.INT64, pa.array([1]), {"json.fail.invalid.schema": "true"}),
    ],
)
def test_what_is_not_plain_goes_value_by_value(
    registry: RegistryDouble, schema: Schema | None, values: Any, config: dict[str, str]
) -> None:
    assert converter(registry, **config).from_columns("t", schema, values) is None

"""Hypothesis strategies for Connect schemas and values that fit them, shared by the format tests."""

from __future__ import annotations

import io
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from airflow_connect.api import schema as s
from airflow_connect.api.schema import Schema, Type


class Sink(io.BytesIO):
    """A byte sink in memory."""

    def write(self, data: bytes | bytearray | memoryview) -> None:  # type: ignore[override]
        super().write(bytes(data))


_TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
_FLOAT64 = st.floats(allow_nan=False)
_FLOAT32 = st.floats(allow_nan=False, width=32)


def _signed(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


_VALUES: dict[Type, st.SearchStrategy[Any]] = {
    Type.INT8: _signed(8),
    Type.INT16: _signed(16),
    Type.INT32: _signed(32),
    Type.INT64: _signed(64),
    Type.FLOAT32: _FLOAT32,
    Type.FLOAT64: _FLOAT64,
    Type.BOOLEAN: st.booleans(),
    Type.STRING: _TEXT,
    Type.BYTES: st.binary(max_size=8),
}

primitive_schemas = st.builds(Schema, st.sampled_from(list(_VALUES)), st.booleans())
logical_schemas = st.one_of(
    st.builds(s.decimal, st.integers(0, 6), optional=st.booleans()),
    st.builds(s.date, optional=st.booleans()),
    st.builds(s.time, optional=st.booleans()),
    st.builds(s.timestamp, optional=st.booleans()),
)
_KEYS = st.sampled_from([s.STRING, s.INT32, s.OPTIONAL_STRING, s.BOOLEAN])


def _structs(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    def build(members: list[Schema], optional: bool) -> Schema:
        return s.struct(*((f"f{n}", member) for n, member in enumerate(members)), optional=optional)

    return st.builds(build, st.lists(inner, min_size=1, max_size=4), st.booleans())


schemas = st.recursive(
    st.one_of(primitive_schemas, logical_schemas),
    lambda inner: st.one_of(
        _structs(inner),
        st.builds(s.array, inner, optional=st.booleans()),
        st.builds(s.map_of, _KEYS, inner, optional=st.booleans()),
    ),
    max_leaves=6,
)
struct_schemas = _structs(schemas).map(lambda schema: s.struct(*((f.name, f.schema) for f in schema.fields)))


def values_of(schema: Schema) -> st.SearchStrategy[Any]:
    """Values that fit `schema`, None included where it is optional."""
    present = _present(schema)
    return st.none() | present if schema.optional else present


def _present(schema: Schema) -> st.SearchStrategy[Any]:
    if schema.name == s.DECIMAL:
        scale = int(schema.parameters["scale"])
        return _signed(96).map(lambda number: Decimal((number < 0, tuple(map(int, str(abs(number)))), -scale)))
    if schema.name == s.TIME:
        return st.integers(0, 86_399_999)
    if schema.type is Type.STRUCT:
        return st.fixed_dictionaries({f.name: values_of(f.schema) for f in schema.fields})
    if schema.type is Type.ARRAY:
        assert schema.value_schema
        return st.lists(values_of(schema.value_schema), max_size=3)
    if schema.type is Type.MAP:
        assert schema.key_schema and schema.value_schema
        return st.dictionaries(_present(schema.key_schema), values_of(schema.value_schema), max_size=3)
    return _VALUES[schema.type]


@st.composite
def schema_and_values(draw: st.DrawFn, of: st.SearchStrategy[Schema] = schemas) -> tuple[Schema, list[Any]]:
    """A schema and up to five values of it."""
    schema = draw(of)
    return schema, draw(st.lists(values_of(schema), max_size=5))

"""Values nested in any way, with optional and required parts, are read back as they were."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_connect.api.schema import Schema, Type, array, map_of, struct
from airflow_connect.connectors.iceberg.catalogs import open_catalog
from airflow_connect.connectors.iceberg.open_tables import OpenTables
from airflow_connect.connectors.iceberg.tables import IcebergConfig
from tests.support.session.searching import examples
from tests.unit.connectors.iceberg.lakes import Lake
from tests.unit.connectors.iceberg.test_types import TYPES, optional

LEAVES = {name: (schema, value, read) for name, schema, _, value, read in TYPES}


@st.composite
def schemas(draw: st.DrawFn, depth: int = 3) -> tuple[Schema, Any]:
    """A schema, and how its values are made: a leaf's name, or the parts."""
    kind = draw(st.sampled_from(["leaf", "leaf", "struct", "list", "map"] if depth else ["leaf"]))
    made: Schema
    if kind == "leaf":
        name = draw(st.sampled_from(sorted(LEAVES)))
        made, parts = LEAVES[name][0], name
    elif kind == "struct":
        members = draw(st.lists(schemas(depth - 1), min_size=1, max_size=3))
        made = struct(*((f"f{n}", member) for n, (member, _) in enumerate(members)))
        parts = [inner for _, inner in members]
    else:
        inner, parts = draw(schemas(depth - 1))
        made = array(inner) if kind == "list" else map_of(Schema(Type.STRING), inner)
        parts = (inner, parts)
    return (optional(made) if draw(st.booleans()) else made), parts


def value_of(draw: Any, schema: Schema, parts: Any) -> tuple[Any, Any]:
    """A value, and what is read of it."""
    if schema.optional and draw(st.sampled_from([True, False, False])):
        return None, None
    if schema.type is Type.STRUCT:
        members = [value_of(draw, f.schema, inner) for f, inner in zip(schema.fields, parts, strict=True)]
        names = [f.name for f in schema.fields]
        return tuple({name: member[n] for name, member in zip(names, members, strict=True)} for n in (0, 1))  # type: ignore[return-value]
    if schema.type is Type.ARRAY:
        items = [value_of(draw, *parts) for _ in range(draw(st.integers(0, 2)))]
        return [item[0] for item in items], [item[1] for item in items]
    if schema.type is Type.MAP:
        pairs = {f"k{n}": value_of(draw, *parts) for n in range(draw(st.integers(0, 2)))}
        return {key: pair[0] for key, pair in pairs.items()}, [(key, pair[1]) for key, pair in pairs.items()]
    return LEAVES[parts][1], LEAVES[parts][2]


def with_more_fields(schema: Schema) -> Schema:
    """The same with an optional struct more, which has a required member, in every struct."""
    some: dict[str, Any] = {"optional": schema.optional, "name": schema.name, "parameters": schema.parameters}
    if schema.type is Type.STRUCT:
        more = ("more", optional(struct(("x", LEAVES["uuid"][0]), ("y", LEAVES["timestamp"][0]))))
        fields = struct(*((f.name, with_more_fields(f.schema)) for f in schema.fields), more).fields
        return Schema(schema.type, fields=fields, **some)
    if schema.type is Type.ARRAY and schema.value_schema:
        return Schema(schema.type, value_schema=with_more_fields(schema.value_schema), **some)
    if schema.type is Type.MAP and schema.value_schema:
        value = with_more_fields(schema.value_schema)
        return Schema(schema.type, key_schema=schema.key_schema, value_schema=value, **some)
    return schema


def without_more(value: Any) -> Any:
    if isinstance(value, dict):
        assert value.get("more") is None
        return {name: without_more(member) for name, member in value.items() if name != "more"}
    if isinstance(value, list | tuple):
        return type(value)(without_more(item) for item in value)
    return value


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_values_nested_in_any_way_are_read_back(data: st.DataObject) -> None:
    members = data.draw(st.lists(schemas(), min_size=1, max_size=3))
    schema = struct(*((f"c{n}", member) for n, (member, _) in enumerate(members)))
    parts = [inner for _, inner in members]
    values = [value_of(data.draw, schema, parts) for _ in range(data.draw(st.integers(1, 5)))]
    has_wide_table, forces = data.draw(st.booleans()), data.draw(st.booleans())
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake(Path(folder), **{"iceberg_tables_schema-force-optional": str(forces).lower()})
        if has_wide_table:
            wide = with_more_fields(schema)
            config = IcebergConfig.from_config(lake.config)
            OpenTables(open_catalog(config, {}), config, "run-0").of("lake.t", wide)
        staged = lake.put([given for given, _ in values], schema)
        assert lake.refusals.errors == []
        rows = [row for file in staged for row in pq.read_table(file.token["path"].removeprefix("file://")).to_pylist()]
        assert [without_more(row) for row in rows] == [read for _, read in values]

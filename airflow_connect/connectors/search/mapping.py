"""Mappings of indices from Connect's schemas, with the types of Confluent's sink.

Source: io.confluent.connect.elasticsearch.Mapping.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from airflow_connect.api.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, Type
from airflow_connect.errors import SchemaError

_TYPES = {
    Type.BOOLEAN: "boolean",
    Type.INT8: "byte",
    Type.INT16: "short",
    Type.INT32: "integer",
    Type.INT64: "long",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.STRING: "text",
    Type.BYTES: "binary",
}
_LOGICAL = {DATE: "date", TIME: "date", TIMESTAMP: "date", DECIMAL: "double"}
LONGEST_KEYWORD = 256
CHOSEN = {"date": "long", "double": "float", "binary": "text"}
"""Types of Confluent's mappings, and what the server maps their JSON to if there is no mapping."""
_DAYS, _SINCE = "days since 1970", "since 1970"
DEBEZIUM_UNITS = {
    "io.debezium.time.Date": _DAYS,
    "io.debezium.time.MicroTimestamp": f"microseconds {_SINCE}",
    "io.debezium.time.NanoTimestamp": f"nanoseconds {_SINCE}",
    "io.debezium.time.Time": "milliseconds since midnight",
    "io.debezium.time.MicroTime": "microseconds since midnight",
    "io.debezium.time.NanoTime": "nanoseconds since midnight",
    "io.debezium.time.Year": "years",
}
"""Schemas of Debezium's numbers that are no milliseconds since 1970 ("Temporal types", `time.precision.mode`)."""


def mapping_of(schema: Schema, *, compacts_maps: bool) -> dict[str, Any]:
    """The mapping of values with this schema.

    Raises:
        SchemaError: an array or a map has no schema of its elements.
    """
    kind = _LOGICAL.get(schema.name or "")
    if kind is None and schema.type is Type.ARRAY:
        return mapping_of(_part(schema.value_schema), compacts_maps=compacts_maps)
    if kind is None and schema.type is Type.MAP:
        names, values = _part(schema.key_schema), _part(schema.value_schema)
        if compacts_maps and names.type is Type.STRING:
            return {"type": "object"}
        members = {"key": names, "value": values}
        return {"properties": {n: mapping_of(s, compacts_maps=compacts_maps) for n, s in members.items()}}
    if kind is None and schema.type is Type.STRUCT:
        return {"properties": {f.name: mapping_of(f.schema, compacts_maps=compacts_maps) for f in schema.fields}}
    return _primitive(kind or _TYPES[schema.type], schema.default)


ANY = "*"
"""In a path: each name of an object that was a map."""


def dates_in(schema: Schema | None, path: str = "", *, compacts_maps: bool | None = None) -> Iterator[tuple[str, str]]:
    """The dates of Connect, and the dates and times of `DEBEZIUM_UNITS`, in a schema.

    Each is its path, as mappings have it, and the name of its schema.

    Args:
        schema: of the values.
        path: of the schema itself.
        compacts_maps: whether maps with texts as keys become objects, and others lists of objects with `key` and
            `value`. None: as JsonConverter writes them, where the latter are lists of two.
    """
    if schema is None:
        return
    if schema.name == DATE or schema.name in DEBEZIUM_UNITS:
        yield path, schema.name
    parts = [(field.name, field.schema) for field in schema.fields]
    if schema.type is Type.ARRAY and schema.value_schema is not None:
        parts = [("", schema.value_schema)]
    elif schema.type is Type.MAP and schema.key_schema is not None and schema.value_schema is not None:
        is_object = schema.key_schema.type is Type.STRING and compacts_maps is not False
        names = ("", ANY) if is_object else ("", "") if compacts_maps is None else ("key", "value")
        parts = list(zip(names, (schema.key_schema, schema.value_schema), strict=True))
    for name, part in parts:
        yield from dates_in(part, ".".join(filter(None, (path, name))), compacts_maps=compacts_maps)


def is_date(mapping: Any, path: str) -> bool:
    """Whether a field has a type of points in time in a mapping, as the server shows it; with `ANY`: one of several."""
    found = [mapping]
    for name in path.split("."):
        members = [each.get("properties", {}) for each in found if isinstance(each, dict)]
        found = [member for each in members for key, member in each.items() if name in (key, ANY)]
    return any(isinstance(each, dict) and each.get("type") in ("date", "date_nanos") for each in found)


def chosen_by_server(wanted: Mapping[str, Any], mapping: Any, path: str = "") -> Iterator[str]:
    """The fields without a mapping to which the server gives another type than the sink would have, by their values.

    Args:
        wanted: the mapping of the schema of records.
        mapping: of the index, as the server shows it.
        path: of both, with a point at its end.
    """
    known = mapping.get("properties", {}) if isinstance(mapping, dict) else {}
    for name, part in wanted.get("properties", {}).items():
        if "properties" in part and (name not in known or "properties" in known[name]):
            yield from chosen_by_server(part, known.get(name), f"{path}{name}.")
        elif name not in known and part.get("type") in CHOSEN:
            yield f"{path}{name} ({part['type']})"


def follows_values(mapping: Any) -> bool:
    """Whether the server maps new fields, and by nothing but their values; `mapping`: as it shows that of an index."""
    is_dynamic = str(mapping.get("dynamic", "true")).lower() == "true"
    return is_dynamic and not mapping.get("dynamic_templates")


def _primitive(kind: str, default: Any) -> dict[str, Any]:
    if kind == "text":
        return {"type": kind, "fields": {"keyword": {"type": "keyword", "ignore_above": LONGEST_KEYWORD}}}
    if default is None or kind == "binary":
        return {"type": kind}
    return {"type": kind, "null_value": float(default) if isinstance(default, Decimal) else default}


def _part(schema: Schema | None) -> Schema:
    if schema is None:
        raise SchemaError(
            "An array or a map has no schema of its elements.",
            code="search.mapping",
            suggestion="Correct the schema, or set schema.ignore=true.",
        )
    return schema

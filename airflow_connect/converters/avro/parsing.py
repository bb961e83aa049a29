"""The form of an Avro schema for fastavro: no logical types, and unions with distinguishable branches.

fastavro converts logical types to Python's dates and decimals, whose range is narrower than Avro's; Connect's values
are the underlying numbers and bytes. fastavro also does not report from which branch of a union a value was read: an
int and a long look the same. So for reading, each branch of a union of several types is wrapped in a record with one
field, named after the branch. The bytes are the same, because a record is encoded as its fields only.
Source: Avro specification 1.12, "Binary Encoding" and "Logical Types".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import fastavro

from airflow_connect.errors import SchemaError

AvroType = Any
"""An Avro schema as JSON: str, list or dict."""

_KEPT = ("type", "name", "namespace", "aliases", "fields", "items", "values", "symbols", "size")


def parsed_for_writing(avro_type: AvroType, named: Iterable[AvroType] = (), *, for_files: bool = False) -> Any:
    """A schema with which fastavro writes plain values.

    Args:
        avro_type: the schema.
        named: schemas of types that it refers to, in the order of use.
        for_files: fastavro's writer of files takes JSON only; values then need all fields with a default of bytes.

    Raises:
        SchemaError: not a valid Avro schema.
    """
    known: dict[str, Any] = {}
    parsed = _parsed(avro_type, named, _Bare(with_branches=False), known)
    if not for_files:
        _make_defaults_plain([parsed, *known.values()], known)
    return parsed


def parsed_for_reading(avro_type: AvroType, named: Iterable[AvroType] = ()) -> Any:
    """A schema with which fastavro reads plain values; values of unions of several types are `{branch: value}`.

    Args:
        avro_type: the schema.
        named: schemas of types that it refers to, in the order of use.

    Raises:
        SchemaError: not a valid Avro schema.
    """
    return _parsed(avro_type, named, _Bare(with_branches=True), {})


def branch_key(index: int) -> str:
    """The one key of a value that was read from the `index`-th branch of a union of several types."""
    return f"branch{index}"


def is_null(avro_type: AvroType) -> bool:
    """Whether the type is null, in either notation."""
    return avro_type == "null" or (isinstance(avro_type, dict) and avro_type.get("type") == "null")


def optional_member(union: list[AvroType]) -> AvroType | None:
    """The other type of a union of null and one type; None for other unions."""
    others = [member for member in union if not is_null(member)]
    return others[0] if len(union) == 2 and len(others) == 1 else None


def first_kind(avro_type: AvroType) -> str:
    """The kind of a type; for a union that of its first branch, to which a default belongs."""
    while not isinstance(avro_type, str):
        avro_type = avro_type[0] if isinstance(avro_type, list) else avro_type["type"]
    return avro_type


def _parsed(avro_type: AvroType, named: Iterable[AvroType], bare: _Bare, known: dict[str, Any]) -> Any:
    """The parsed schema; its named types are added to `known`."""
    try:
        for other in named:
            fastavro.parse_schema(bare.copy(other), named_schemas=known)
        return fastavro.parse_schema(bare.copy(avro_type), named_schemas=known)
    except (fastavro.schema.SchemaParseException, ValueError, TypeError, KeyError, AttributeError) as error:
        raise SchemaError(
            f"The Avro schema is not valid: {error}.",
            code="data.schema_invalid",
            suggestion="Compare it with the Avro specification.",
        ) from error
    except RecursionError:
        raise SchemaError("The Avro schema is nested too deeply.", code="data.schema_invalid") from None


def _make_defaults_plain(schemas: Iterable[Any], named: Mapping[str, Any]) -> None:
    """Turn defaults of bytes into bytes: fastavro checks them as JSON, but writes them as they are."""
    for part in _parts(list(schemas)):
        if isinstance(part.get("default"), str):
            kind = first_kind(part["type"])
            if named.get(kind, {"type": kind})["type"] in ("bytes", "fixed"):
                part["default"] = part["default"].encode("latin-1")


def _parts(parsed: Any) -> Iterator[dict[str, Any]]:
    """Every JSON object inside a parsed schema."""
    if isinstance(parsed, list):
        for member in parsed:
            yield from _parts(member)
    elif isinstance(parsed, dict):
        yield parsed
        for name in ("type", "fields", "items", "values"):
            yield from _parts(parsed.get(name))


class _Bare:
    """Copies schemas without what does not change the bytes."""

    def __init__(self, with_branches: bool) -> None:
        self._with_branches = with_branches
        self._branches = 0

    def copy(self, avro_type: AvroType) -> AvroType:
        if isinstance(avro_type, list):
            return self._union(avro_type)
        if not isinstance(avro_type, dict):
            return avro_type
        made = {key: avro_type[key] for key in _KEPT if key in avro_type}
        kind = made.get("type")
        if kind in ("record", "error"):
            made["fields"] = [self._field(f) for f in avro_type["fields"]]
        elif kind == "array":
            made["items"] = self.copy(avro_type["items"])
        elif kind == "map":
            made["values"] = self.copy(avro_type["values"])
        elif kind not in ("enum", "fixed"):
            return self.copy(kind)
        return made

    def _field(self, field: dict[str, Any]) -> dict[str, Any]:
        made = {"name": field["name"], "type": self.copy(field["type"])}
        if "default" in field and not self._with_branches:
            # A value may lack fields of the schema that it is written with (use.latest.version).
            made["default"] = field["default"]
        return made

    def _union(self, members: list[AvroType]) -> AvroType:
        if not self._with_branches or optional_member(members) is not None:
            return [self.copy(member) for member in members]
        return [m if is_null(m) else self._branch(m, index) for index, m in enumerate(members)]

    def _branch(self, member: AvroType, index: int) -> AvroType:
        self._branches += 1
        name = f"airflow_connect_branch_{self._branches}"
        field = {"name": branch_key(index), "type": self.copy(member)}
        return {"type": "record", "name": name, "fields": [field]}

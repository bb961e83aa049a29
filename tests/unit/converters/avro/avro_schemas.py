"""Random Avro schemas with values of them, as fastavro writes them."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Any

import fastavro
from hypothesis import strategies as st

from airflow_connect.converters.avro.parsing import parsed_for_writing

INTS = st.one_of(st.integers(-(1 << 31), (1 << 31) - 1), st.integers(-70, 70))
LONGS = st.one_of(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(-70, 70), st.sampled_from([-(1 << 63), 1 << 62]))
DECIMALS = st.binary(min_size=1, max_size=20)
_SIMPLE: list[tuple[Any, st.SearchStrategy[Any]]] = [
    ("boolean", st.booleans()),
    ("int", INTS),
    ("long", LONGS),
    ("float", st.floats(width=32, allow_nan=False)),
    ("double", st.floats(allow_nan=False)),
    ("string", st.text(max_size=40)),
    ("bytes", st.binary(max_size=40)),
    ({"type": "int", "connect.type": "int8"}, st.integers(-128, 127)),
    ({"type": "int", "connect.type": "int16"}, st.integers(-(1 << 15), (1 << 15) - 1)),
    ({"type": "int", "logicalType": "date"}, INTS),
    ({"type": "int", "logicalType": "time-millis"}, st.integers(0, 86_400_000)),
    ({"type": "long", "logicalType": "timestamp-millis"}, LONGS),
    ({"type": "long", "logicalType": "timestamp-micros"}, LONGS),
    ({"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 3}, DECIMALS),
]


@dataclass
class Made:
    """A type in the making; names must differ within a schema."""

    columnar: bool
    names: int = 0
    values: dict[str, st.SearchStrategy[Any]] = field(default_factory=dict)

    def name(self) -> str:
        self.names += 1
        return f"Type{self.names}"


@st.composite
def avro_types(draw: st.DrawFn, made: Made, depth: int = 2) -> tuple[Any, st.SearchStrategy[Any]]:
    """A type and a strategy for its values."""
    kinds = ["simple"] * 6 + ["optional"] * 4 + ["enum", "fixed", "decimal fixed"]
    if depth:
        kinds += ["record", "record"]
        kinds += ["array", "map"] + ([] if made.columnar else ["union"])
    kind = draw(st.sampled_from(kinds))
    if kind == "optional":
        return draw(_optional(made, depth))
    if kind == "enum":
        symbols = [f"S{n}" for n in range(draw(st.integers(1, 90)))]
        return {"type": "enum", "name": made.name(), "symbols": symbols}, st.sampled_from(symbols)
    if kind in ("fixed", "decimal fixed"):
        size = draw(st.integers(1, 9))
        logical = {"logicalType": "decimal", "precision": 2, "scale": 1} if kind != "fixed" else {}
        return {"type": "fixed", "name": made.name(), "size": size, **logical}, st.binary(min_size=size, max_size=size)
    if kind == "record":
        return draw(records(made, depth - 1))
    if kind in ("array", "map"):
        inner, values = draw(avro_types(made, depth - 1))
        if kind == "array":
            return {"type": "array", "items": inner}, st.lists(values, max_size=3)
        return {"type": "map", "values": inner}, st.dictionaries(st.text(max_size=3), values, max_size=3)
    if kind == "union":
        record, values = draw(records(made, depth - 1))
        branches = [("string", st.text()), ("int", INTS), ("long", LONGS), (record["name"], values)]
        tagged = [strategy.map(lambda v, name=name: (name, v)) for name, strategy in branches]
        return ["null", "string", "int", "long", record], st.one_of(st.none(), *tagged)
    return draw(st.sampled_from(_SIMPLE))


@st.composite
def _optional(draw: st.DrawFn, made: Made, depth: int) -> tuple[Any, st.SearchStrategy[Any]]:
    inner, values = draw(avro_types(made, depth).filter(lambda found: not isinstance(found[0], list)))
    union = ["null", inner] if draw(st.booleans()) else [inner, "null"]
    return union, st.one_of(values, st.none(), values)


@st.composite
def records(draw: st.DrawFn, made: Made, depth: int = 2) -> tuple[Any, st.SearchStrategy[Any]]:
    """A record type and a strategy for its values."""
    name, fields, values = made.name(), [], {}
    for number in range(draw(st.integers(1, 5))):
        inner, strategy = draw(avro_types(made, depth))
        fields.append({"name": f"f{number}", "type": inner})
        values[f"f{number}"] = strategy
    return {"type": "record", "name": name, "fields": fields}, st.fixed_dictionaries(values)


def encoded(avro_type: Any, values: list[Any]) -> list[bytes]:
    """Avro data of each value."""
    parsed, made = parsed_for_writing(avro_type), []
    for value in values:
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, parsed, value)
        made.append(stream.getvalue())
    return made

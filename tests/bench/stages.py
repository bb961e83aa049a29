"""Converters and transformations by themselves: records per second of CPU time of one process, one stage at a time.

A record by itself goes through `to_connect`, `from_connect` or `apply`; columns go through `to_columns`, `from_columns`
or `apply_columns`, 16,384 records at once, as in a copy.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

import numpy as np
import pyarrow as pa

from airflow_connect.api import schema as s
from airflow_connect.api.columns import RecordColumns, ValueColumns
from airflow_connect.api.config import plugins
from airflow_connect.api.config.plugins import PluginKind
from airflow_connect.api.record import TIMESTAMP_CREATE_TIME, Header, SinkRecord
from airflow_connect.api.schema import Schema
from airflow_connect.converters.json.converter import JsonConverter
from airflow_connect.converters.json.schema import schema_to_json
from tests.devstack.schema_registry import SchemaRegistry
from tests.support.values.columns import arrow_type

EVENT = s.struct(
    ("id", s.INT64),
    ("user", s.STRING),
    ("event", s.OPTIONAL_STRING),
    ("amount", s.OPTIONAL_FLOAT64),
    ("at", s.timestamp()),
    ("session", s.OPTIONAL_STRING),
    ("paid", s.BOOLEAN),
    ("note", s.OPTIONAL_STRING),
    name="bench.Event",
)
REGISTRY = ("Avro", "JsonSchema", "Protobuf")
BATCH = 16_384
MEASURED_S = 0.25
"""CPU seconds that a figure takes at least."""
_DIFFERENT = 1024


@dataclass(frozen=True, slots=True)
class Stage:
    """A converter, with values that it can write.

    Attributes:
        name: simple class name, and what is special.
        config: without the URL of the registry.
        schema, values: of what `from_connect` gets.
    """

    name: str
    config: Mapping[str, str]
    schema: Schema | None
    values: Sequence[Any]


def events() -> list[dict[str, Any]]:
    """Values of `EVENT`."""
    kinds = ("view", "click", "search", "purchase", "logout")
    return [
        {
            "id": n,
            "user": f"user-{n % 97:05d}",
            "event": kinds[n % 5],
            "amount": n / 100,
            "at": 1_700_000_000_000 + n,
            "session": f"{n * 7919:012x}",
            "paid": n % 3 == 0,
            "note": "the quick brown fox jumps over a lazy dog" if n % 4 else None,
        }
        for n in range(_DIFFERENT)
    ]


def converter_stages() -> list[Stage]:
    """Every converter."""
    plain: Mapping[str, str] = {"schemas.enable": "false"}
    content = schema_to_json(EVENT, lambda schema, default: json.dumps(default))
    structs = events()
    found = [
        Stage("JsonConverter, schemaless", plain, None, structs),
        Stage("JsonConverter, schema.content", {"schema.content": content}, EVENT, structs),
        Stage("JsonConverter, schema in each message", {}, EVENT, structs),
        Stage("StringConverter", {}, s.STRING, [event["session"] for event in structs]),
        Stage("ByteArrayConverter", {}, s.BYTES, [event["session"].encode() for event in structs]),
        Stage("BooleanConverter", {}, s.BOOLEAN, [event["paid"] for event in structs]),
        Stage("ShortConverter", {}, s.INT16, [event["id"] for event in structs]),
        Stage("IntegerConverter", {}, s.INT32, [event["id"] for event in structs]),
        Stage("LongConverter", {}, s.INT64, [event["at"] for event in structs]),
        Stage("FloatConverter", {}, s.FLOAT32, [float(event["id"]) for event in structs]),
        Stage("DoubleConverter", {}, s.FLOAT64, [event["amount"] for event in structs]),
    ]
    return found + [Stage(f"{name}Converter", {}, EVENT, structs) for name in REGISTRY]


TRANSFORMATIONS: dict[str, Mapping[str, str]] = {
    "Cast$Value": {"spec": "id:string,amount:float32"},
    "DropHeaders": {"headers": "trace"},
    "ExtractField$Value": {"field": "session"},
    "Filter": {},
    "Flatten$Value": {},
    "HeaderFrom$Value": {"fields": "user", "headers": "user", "operation": "copy"},
    "HoistField$Value": {"field": "event"},
    "InsertField$Value": {"offset.field": "offset", "static.field": "source", "static.value": "bench"},
    "InsertHeader": {"header": "source", "value.literal": "bench"},
    "MaskField$Value": {"fields": "user,amount"},
    "RegexRouter": {"regex": "(.*)", "replacement": "copy-$1"},
    "ReplaceField$Value": {"renames": "id:number,at:created_at", "exclude": "note"},
    "SetSchemaMetadata$Value": {"schema.name": "Event", "schema.version": "2"},
    "TimestampConverter$Value": {"field": "at", "target.type": "unix"},
    "TimestampRouter": {},
    "ValueToKey": {"fields": "id"},
}


def rate(work: Callable[[], int]) -> float:
    """Records per second of CPU time; `work` returns how many it did."""
    work()
    done, started = 0, time.process_time()
    while (spent := time.process_time() - started) < MEASURED_S:
        done += work()
    return done / spent


def one_by_one(function: Callable[[Any], Any], values: Sequence[Any]) -> float:
    """Records per second of a function that takes one."""

    def work() -> int:
        for value in values:
            function(value)
        return len(values)

    return rate(work)


def converter_rates(stage: Stage, registry_url: str) -> tuple[float, float, float | None, float | None]:
    """Reading, writing, and both in columns (None: it has none)."""
    topic = stage.name.partition(",")[0]
    converter = _open(PluginKind.CONVERTER, topic)
    uses_registry = topic.removesuffix("Converter") in REGISTRY
    converter.configure({**stage.config, **({"schema.registry.url": registry_url} if uses_registry else {})}, False)
    messages = [converter.from_connect(topic, stage.schema, value) for value in stage.values]
    if "schema.content" in stage.config:
        plain = JsonConverter()
        plain.configure({"schemas.enable": "false"})
        messages = [plain.from_connect(topic, stage.schema, value) for value in stage.values]
    column = pa.array(list(islice(cycle(messages), BATCH)), pa.binary())
    to_columns = getattr(converter, "to_columns", None)
    columns = None
    if to_columns is not None and to_columns(topic, column) is not None:
        columns = rate(lambda: len(to_columns(topic, column)) and BATCH)
    reading = one_by_one(lambda message: converter.to_connect(topic, message), messages)
    writing = one_by_one(lambda value: converter.from_connect(topic, stage.schema, value), stage.values)
    return reading, writing, columns, _writing_in_columns(converter, topic, stage)


def _writing_in_columns(converter: Any, topic: str, stage: Stage) -> float | None:
    from_columns = getattr(converter, "from_columns", None)
    schema = stage.schema or EVENT
    column = pa.array(list(islice(cycle(stage.values), BATCH)), arrow_type(schema))
    if from_columns is None or from_columns(topic, schema, column) is None:
        return None
    return rate(lambda: len(from_columns(topic, schema, column)))


def transformation_rates(name: str, config: Mapping[str, str]) -> tuple[float, float | None, float | None]:
    """With a schema, schemaless (None: it needs a schema), in columns (None: it has none)."""
    transformation = _open(PluginKind.TRANSFORMATION, f"org.apache.kafka.connect.transforms.{name}")
    transformation.configure(config)
    with_schema = one_by_one(transformation.apply, list(_records(EVENT)))
    schemaless = None
    if not name.startswith("SetSchemaMetadata"):
        schemaless = one_by_one(transformation.apply, list(_records(None)))
    apply_columns = getattr(transformation, "apply_columns", None)
    batch = _batch()
    if apply_columns is None or apply_columns(batch) is None:
        return with_schema, schemaless, None
    return with_schema, schemaless, rate(lambda: len(batch) if apply_columns(batch) is not None else 0)


def _open(kind: PluginKind, name: str) -> Any:
    return plugins.load_class(kind, name)()


def _records(schema: Schema | None) -> Iterator[SinkRecord]:
    for n, event in enumerate(events()):
        yield SinkRecord(
            topic="t",
            partition=0,
            value_schema=schema,
            value=event,
            timestamp=1_700_000_000_000 + n,
            headers=(Header("trace", s.STRING, "0af7651916cd43dd"),),
            offset=n,
        )


def _batch() -> RecordColumns:
    converter = JsonConverter()
    content = schema_to_json(EVENT, lambda schema, default: json.dumps(default))
    converter.configure({"schema.content": content})
    messages = list(islice(cycle([json.dumps(event).encode() for event in events()]), BATCH))
    converted = converter.to_columns("t", pa.array(messages, pa.binary()))
    assert converted is not None
    numbers = np.arange(BATCH, dtype=np.int64)
    value = ValueColumns(EVENT, converted[0].values)
    return RecordColumns(
        "t", "t", 0, numbers, numbers + 1_700_000_000_000, TIMESTAMP_CREATE_TIME, None, value, lambda _: [], numbers
    )


def measure_stages() -> int:
    """Measure and print every stage."""
    print(_line("converter", "read/s", "write/s", "read columns/s", "write columns/s"), flush=True)
    with SchemaRegistry.start() as registry:
        for stage in converter_stages():
            print(_line(stage.name, *map(_figure, converter_rates(stage, registry.url))), flush=True)
    print(_line("transformation", "schema/s", "schemaless/s", "columns/s"), flush=True)
    for name, config in TRANSFORMATIONS.items():
        print(_line(name, *map(_figure, transformation_rates(name, config))), flush=True)
    return 0


def _figure(records_per_s: float | None) -> str:
    """Three digits: more of them say nothing."""
    return "-" if records_per_s is None else f"{int(float(f'{records_per_s:.3g}')):,}"


def _line(name: str, *cells: str) -> str:
    return name.ljust(40) + "".join(cell.rjust(16) for cell in cells)

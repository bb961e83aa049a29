"""What the search for endless or broken conversions calls: one function per part of the project, drawing one case each.

A case is (a description that names its input, a call). The call may raise errors of the project and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import Any
from unittest.mock import patch

from airflow_connect.api.config import values as config_values
from airflow_connect.api.record import Header, SinkRecord
from airflow_connect.api.schema import DECIMAL, INT32, INT64, Schema, Type, decimal, struct
from airflow_connect.config.keys.transform_classes import PREDICATE_KIND, TRANSFORMATION_KIND, find_class
from airflow_connect.converters.byte_array_converter import ByteArrayConverter
from airflow_connect.converters.json.converter import JsonConverter
from airflow_connect.converters.primitive_converters import DoubleConverter, FloatConverter, LongConverter
from airflow_connect.converters.simple_header_converter import SimpleHeaderConverter
from airflow_connect.converters.string_converter import StringConverter
from airflow_connect.errors import ConnectError
from airflow_connect.kafka.state.offsets.offsets_topic import SourceOffsets
from airflow_connect.layout.partitioners import FieldPartitioner
from airflow_connect.layout.timestamp_extractors import extractor
from airflow_connect.registry.client import SchemaRegistryClient, SchemaText
from airflow_connect.registry.converters.avro_converter import AvroConverter
from airflow_connect.registry.converters.json_schema_converter import JsonSchemaConverter
from airflow_connect.registry.converters.protobuf_converter import ProtobufConverter
from tests.support.values.value_conversions import convert_value
from tests.unit.limits import hostile

Case = tuple[str, Callable[[], Any]]

PREFIX = b"\0\0\0\0\x01"
LARGE_ARRAY = b"\xfe\xff\xff\xff\x0f"
"""The length 2^34 as Avro codes it."""
DECIMAL_VALUES = {"amount": Decimal("1.50"), "n": 5, "small": 3, "text": "x"}
DECIMAL_SCHEMA = struct(("amount", decimal(2)), ("n", INT64), ("small", INT32), ("text", Schema(Type.STRING)))


def json_converter(random: Random) -> Case:
    text = hostile.json_text(random)
    config = random.choice(({"schemas.enable": "false"}, {}, {"schema.content": hostile.schema_text(random)}))
    if not config:
        text = f'{{"schema":{random.choice(("null", hostile.schema_text(random)))},"payload":{text}}}'
    data = hostile.mutated(random, text.encode()) if random.random() < 0.3 else text.encode()

    def call() -> None:
        converter = JsonConverter()
        converter.configure(config)
        for _ in range(2):
            found = converter.to_connect_header("t", "h", data)
        written = converter.from_connect("t", found.schema, found.value)
        if written is not None:
            converter.to_connect("t", written)

    return f"JsonConverter {config} {data!r}", call


def json_columns(random: Random) -> Case:
    import pyarrow as pa

    inner = {"type": random.choice(("int64", "double", "string", "int8")), "optional": True, "field": "a"}
    fixed = {"schema.content": json.dumps({"type": "struct", "fields": [inner]})}
    config = random.choice(({"schemas.enable": "false"}, fixed))
    data = [f'{{"a":{hostile.number(random)}}}'.encode(), hostile.json_text(random).encode()]

    def call() -> None:
        converter = JsonConverter()
        converter.configure(config)
        for batch in (data, data[:1], data[1:]):
            converter.to_columns("t", pa.array(batch, pa.binary()))

    return f"JsonConverter.to_columns {config} {data!r}", call


def headers(random: Random) -> Case:
    text = random.choice((hostile.number, hostile.json_text, lambda r: hostile.nested(r, hostile.number(r))))(random)

    def call() -> None:
        converter = SimpleHeaderConverter()
        found = converter.to_connect_header("t", "h", text.encode("utf-8", "replace"))
        converter.from_connect_header("t", "h", found.schema, found.value)

    return f"SimpleHeaderConverter {text!r}", call


PLAIN_CONVERTERS: tuple[Any, ...] = (
    StringConverter, ByteArrayConverter, LongConverter, FloatConverter, DoubleConverter, JsonConverter,
)  # fmt: skip


def plain_converters(random: Random) -> Case:
    kind = random.choice(PLAIN_CONVERTERS)
    value = random.choice((hostile.scalar, hostile.deep_value))(random)
    schema = random.choice((None, decimal(2), INT64))
    data = hostile.mutated(random, bytes(8))

    def call() -> None:
        converter = kind()
        converter.configure({"schemas.enable": "false"} if kind is JsonConverter else {}, False)
        for step in (lambda: converter.to_connect("t", data), lambda: converter.from_connect("t", schema, value)):
            _allowed(step)

    return f"{kind.__name__} {data!r} {_shown(schema, value)}", call


def conversions(random: Random) -> Case:
    target, value = random.choice(list(_TARGETS)), random.choice((hostile.scalar, hostile.deep_value))(random)
    return f"convert_value {target} {_shown(None, value)}", lambda: convert_value(target, None, value)


_TARGETS = (
    Type.INT8, Type.INT64, Type.FLOAT32, Type.FLOAT64, Type.BOOLEAN, Type.STRING, Type.ARRAY, Type.MAP,
)  # fmt: skip


def transformations(random: Random) -> Case:
    name = random.choice(TRANSFORMATION_KIND.java_names() + PREDICATE_KIND.java_names())
    kind = TRANSFORMATION_KIND if name in TRANSFORMATION_KIND.java_names() else PREDICATE_KIND
    value = {**DECIMAL_VALUES, "more": hostile.deep_value(random), "text": hostile.scalar(random)}
    schema = None
    if random.random() < 0.4:
        value, schema = {**DECIMAL_VALUES, "text": hostile.number(random)}, DECIMAL_SCHEMA
    config = {
        "fields": "text,n,amount,small", "replacement": hostile.number(random), "field": "text", "header": "h",
        "value.literal": hostile.json_text(random), "headers": "h", "operation": "copy", "exclude": "n", "name": "h",
        "spec": random.choice(("text:int8", "text:float32,amount:int64", "text:string", "n:float64,text:boolean")),
        "target.type": random.choice(("Timestamp", "unix", "string", "Date")), "format": "yyyy-MM-dd", "pattern": "t.*",
        "topic.field": "topic", "regex": "t(.*)", "replacement.text": "x", "schema.name": "s", "delimiter": ".",
        "unix.precision": random.choice(("seconds", "nanoseconds")), "schema.version": hostile.number(random),
    }  # fmt: skip
    if name.endswith("RegexRouter"):
        config["replacement"] = "t"
    header = Header("h", None, hostile.scalar(random))
    record = SinkRecord(
        topic="topic", partition=0, offset=1, timestamp=2**63 - 1, value=value, value_schema=schema, key=value,
        key_schema=schema, headers=(header,),
    )  # fmt: skip

    def call() -> None:
        plugin = find_class(kind, "transforms.x.type", name).plugin()
        known = {key: text for key, text in config.items() if key in plugin.config_def.keys}
        plugin.configure(known)
        if kind is PREDICATE_KIND:
            plugin.test(record)
        else:
            plugin.apply(record)

    return f"{name} {config} {_shown(schema, value)}", call


def layout(random: Random) -> Case:
    value, schema = {"f": hostile.scalar(random), "g": hostile.deep_value(random)}, None
    if random.random() < 0.5:
        schema = struct(("f", Schema(Type.STRING)), ("n", INT64))
        value = {"f": hostile.number(random), "n": -(2**63)}
    record = SinkRecord(topic="t", partition=0, offset=1, timestamp=0, value=value, value_schema=schema)

    def call() -> None:
        for step in (
            lambda: extractor("RecordField", "f").extract_ms(record, 0),
            lambda: FieldPartitioner(["f"]).directory(record, 0),
        ):
            _allowed(step)

    return f"layout {_shown(schema, value)}", call


def source_offsets(random: Random) -> Case:
    key = f'["c",{hostile.json_text(random)}]'.encode()
    value = random.choice((None, b'{"position":5}', hostile.json_text(random).encode()))

    def call() -> None:
        offsets = SourceOffsets("c")
        offsets.take(key, value)
        offsets.is_own(key)
        offsets.records()

    return f"SourceOffsets.take {key!r} {value!r}", call


def configuration(random: Random) -> Case:
    kind = config_values.Type(random.choice(("INT", "LONG", "SHORT", "DOUBLE")))
    value: Any = random.choice((hostile.number(random), 10**400, 10**5000, 1e308))

    def call() -> None:
        with suppress(config_values.InvalidValueError):
            config_values.parse_type("k", value, kind)

    return f"parse_type {kind} {_shown(None, value)}", call


def avro(random: Random) -> Case:
    schema = random.choice(AVRO_SCHEMAS)
    data = PREFIX + random.choice((
        hostile.mutated(random, bytes(30)), LARGE_ARRAY + b"\x02" * 20, b"\x02" * 60, random.randbytes(40),
    ))  # fmt: skip
    return _registered(AvroConverter(), schema, "AVRO", data)


def _doubling(count: int) -> Any:
    """Record types of which each holds the one before twice."""
    made: Any = {"type": "record", "name": "r0", "fields": [{"name": "x", "type": "int"}]}
    for level in range(1, count):
        fields = [{"name": "x", "type": made}, {"name": "y", "type": f"r{level - 1}"}]
        made = {"type": "record", "name": f"r{level}", "fields": fields}
    return made


def _deep_avro(depth: int) -> Any:
    made: Any = "int"
    for _ in range(depth):
        made = {"type": "array", "items": made}
    return made


AVRO_SCHEMAS = (
    {"type": "array", "items": "long"},
    {"type": "array", "items": {"type": "record", "name": "empty", "fields": []}},
    {"type": "array", "items": {"type": "fixed", "name": "nothing", "size": 0}},
    {"type": "map", "values": "bytes"},
    {"type": "fixed", "name": "huge", "size": 2**62},
    {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2**40},
    {"type": "bytes", "logicalType": "decimal", "precision": 10**30, "scale": 2},
    {"type": "record", "name": "list", "fields": [{"name": "next", "type": ["null", "list"]}]},
    _doubling(40),
    _deep_avro(101),
    _deep_avro(90),
)


def json_schema(random: Random) -> Case:
    before = {f"a{n}": {"$ref": f"#/definitions/a{n - 1}"} for n in range(1, 40)}
    doubling = {name: {"type": "object", "properties": {"x": ref, "y": ref}} for name, ref in before.items()}
    all_of = {name: {"allOf": [ref, ref]} for name, ref in before.items()}
    deep: Any = {"type": "integer"}
    for _ in range(random.choice((50, 120))):
        deep = {"type": "array", "items": deep}
    number: Any = {"type": "integer", "connect.type": random.choice(("int8", "int64", "bytes"))}
    number |= {"title": DECIMAL, "connect.parameters": {"scale": random.choice(hostile.SCALES)}}
    schema = random.choice((
        {"definitions": {"a0": {"type": "integer"}, **doubling}, "$ref": "#/definitions/a39"},
        {"definitions": {"a0": {"type": "object"}, **all_of}, "allOf": [{"$ref": "#/definitions/a39"}]},
        {"$ref": "#"}, deep, number, {"type": "integer"}, {"type": "object", "properties": {"a": {"type": "number"}}},
    ))  # fmt: skip
    return _registered(JsonSchemaConverter(), schema, "JSON", PREFIX + hostile.json_text(random).encode())


def protobuf(random: Random) -> Case:
    doubling = "".join(f"message M{n} {{ M{n - 1} x = 1; M{n - 1} y = 2; }}" for n in range(1, 40))
    schema = random.choice((
        f'syntax = "proto3"; message M39x {{ M39 m = 1; }} message M0 {{ int32 i = 1; }} {doubling}',
        'syntax = "proto3"; message M { repeated int64 n = 1; string s = 2; M2 m = 3; } message M2 { double d = 1; }',
        f'syntax = "proto3"; message M {{ int32 n = {hostile.number(random)}; }}',
        'syntax = "proto3"; message M { M next = 1; }',
        'syntax = "proto3";' + "message M { " * random.choice((50, 200, 5000)) + "}" * 5000,
    ))  # fmt: skip
    data = PREFIX + b"\0" + random.choice((b"\x0a\xff\xff\xff\xff\x0f", b"\x0a\x02" * 300, random.randbytes(30)))
    return _registered(ProtobufConverter(), schema, "PROTOBUF", data)


def _registered(converter: Any, schema: Any, kind: str, data: bytes) -> Case:
    """The converter on a message of a schema that a registry would give."""
    text = SchemaText(kind, schema if isinstance(schema, str) else json.dumps(schema))

    def call() -> None:
        converter.configure({"schema.registry.url": "http://localhost:1"}, False)
        with (
            patch.object(SchemaRegistryClient, "schema", lambda self, schema_id: text),
            patch.object(SchemaRegistryClient, "lookup", lambda self, subject, text, **_: None),
            patch.object(SchemaRegistryClient, "referenced", lambda self, text: {}),
        ):
            found = _allowed(lambda: converter.to_connect("t", data))
            if found is not None and found.schema is not None:
                hash(replace(found.schema, optional=True))

    return f"{type(converter).__name__} {text.text[:2000]} {data!r}", call


def _allowed(step: Callable[[], Any]) -> Any:
    try:
        return step()
    except ConnectError:
        return None


def _shown(schema: Schema | None, value: Any) -> str:
    try:
        return f"{schema!r} {value!r}"
    except (ValueError, RecursionError):
        return f"{schema!r} (a value that Python cannot print: {type(value).__name__})"


FAMILIES: dict[str, Callable[[Random], Case]] = {
    family.__name__: family
    for family in (
        json_converter, json_columns, headers, plain_converters, conversions, transformations, layout, source_offsets,
        configuration, avro, json_schema, protobuf,
    )
}  # fmt: skip

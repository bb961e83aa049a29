"""Transformations and converters of sources: whatever values and configuration, columns are the records one by one.

Values come from the messages of test_columns_equal_records.py, read in columns: so a converter writes what any other
one has read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

from airflow_connect.api.columns import ValueColumns
from airflow_connect.api.schema import Schema, Type
from airflow_connect.api.source import SourceColumns
from airflow_connect.config.resolved.loading import load_connector_config
from airflow_connect.config.resolved.source import load_source_config
from airflow_connect.errors import DataError
from airflow_connect.registry.client import SchemaRegistryClient, SchemaText, SubjectVersion
from airflow_connect.runtime.executor.converting import RecordConverter
from airflow_connect.runtime.executor.source.columns import SourceColumnConverter, records_of
from airflow_connect.runtime.executor.source.converting import SourceRecordConverter
from tests.support.session.searching import examples, seed_day
from tests.unit.runtime.executor.random_messages.values import NAMES
from tests.unit.runtime.executor.test_columns_equal_records import KAFKA, KINDS, SINK, WORKER, registry

SOURCE = {"name": "c", "connector.class": "FileStreamSource", "topic": "t", "file": "x"}
OPTIONS = {
    "AvroConverter": ("enhanced.avro.schema.support", "generalized.sum.type.support", "scrub.invalid.names"),
    "ProtobufConverter": ("optional.for.nullables", "wrapper.for.nullables", "enhanced.protobuf.schema.support"),
    "JsonSchemaConverter": ("use.optional.for.nonrequired", "ignore.default.for.nullables"),
    "JsonConverter": ("schemas.enable", "replace.null.with.default"),
}


def converter_of(r: Random, side: str) -> dict[str, str]:
    name = r.choice([*OPTIONS, "JsonConverter", "StringConverter", "ByteArrayConverter"])
    config = {f"{side}.converter": name}
    for option in OPTIONS.get(name, ()):
        if r.random() < 0.3:
            config[f"{side}.converter.{option}"] = r.choice(["true", "false"])
    if "Json" in name and r.random() < 0.3:
        config[f"{side}.converter.decimal.format"] = "NUMERIC"
    if name in ("AvroConverter", "ProtobufConverter", "JsonSchemaConverter"):
        config[f"{side}.converter.schema.registry.url"] = "http://127.0.0.1:9"
    return config


def steps(r: Random) -> dict[str, str]:
    """Up to two transformations, with or without a predicate."""
    name, other = r.sample(NAMES, 2)
    kind = r.choice(["string", "int8", "int64", "float32", "boolean"])
    found: list[dict[str, str]] = [
        {"type": "ValueToKey", "fields": name},
        {"type": "ValueToKey", "fields": f"{name},{other}"},
        {"type": "InsertField$Value", "static.field": r.choice(["_s", name]), "static.value": "1", "topic.field": "_t"},
        {"type": "InsertField$Key", "static.field": "_s", "static.value": "1"},
        {"type": "ReplaceField$Value", "renames": f"{name}:new", "exclude": other},
        {"type": "MaskField$Value", "fields": name},
        {"type": "Cast$Value", "spec": f"{name}:{kind}"},
        {"type": "ExtractField$Value", "field": name},
        {"type": "ExtractField$Key", "field": name},
        {"type": "HoistField$Value", "field": "w"},
        {"type": "Flatten$Value"},
        {"type": "TimestampConverter$Value", "field": name, "target.type": r.choice(["unix", "Date", "Timestamp"])},
        {"type": "SetSchemaMetadata$Value", "schema.name": "thing", "schema.version": "2"},
        {"type": "RegexRouter", "regex": "(.*)", "replacement": "new-$1"},
        {"type": "TimestampRouter", "timestamp.format": "SSS"},
        {"type": "Filter", "predicate": "here"},
    ]
    config: dict[str, str] = {}
    chosen = r.sample(found, r.choice([0, 0, 0, 1, 2]))
    for number, step in enumerate(chosen):
        config |= {f"transforms.s{number}.{key}": value for key, value in step.items()}
        config[f"transforms.s{number}.type"] = f"{KAFKA}transforms.{step['type']}"
        if r.random() < 0.2:
            config |= {f"transforms.s{number}.predicate": "here", f"transforms.s{number}.negate": "true"}
    if chosen:
        config |= {"transforms": ",".join(f"s{n}" for n in range(len(chosen))), "predicates": "here"}
        config["predicates.here.type"] = f"{KAFKA}transforms.predicates.TopicNameMatches"
        config["predicates.here.pattern"] = r.choice(["t", "zz"])
    return config


@contextmanager
def accepting() -> Iterator[None]:
    """A registry that takes every schema."""
    numbers: dict[SchemaText, int] = {}

    def register(_: SchemaRegistryClient, __: str, schema: SchemaText, **___: Any) -> int:
        return numbers.setdefault(schema, len(numbers) + 1)

    def lookup(_: SchemaRegistryClient, subject: str, schema: SchemaText, **__: Any) -> SubjectVersion:
        return SubjectVersion(subject, 1, numbers.setdefault(schema, len(numbers) + 1), schema)

    with patch.object(SchemaRegistryClient, "register", register), patch.object(SchemaRegistryClient, "lookup", lookup):
        yield


def read_values(r: Random) -> list[ValueColumns]:
    """Values of messages of any converter, in columns; [] where they have no columns."""
    kind = KINDS[r.choice(list(KINDS))](r, r.choice([0, 0, 0.02]))
    data = pa.array([kind.message() for _ in range(r.choice([1, 2, 5, 20]))], pa.binary())
    with registry(kind.schemas):
        try:
            return list(
                RecordConverter(load_connector_config({**SINK, **kind.config}, WORKER)).value.to_columns("t", data)
                or ()
            )
        except DataError:
            return []


def batch(r: Random, found: ValueColumns) -> SourceColumns:
    """A batch with these values, and with keys and times of any form."""
    values = found.values.slice(r.randrange(len(found.values))) if r.random() < 0.3 else found.values
    count = len(values)
    texts: Any = pa.array([r.choice([None, "k", "é", ""]) for _ in range(count)], pa.string())
    key_schema, keys = r.choice(
        [(None, None), (None, None), (Schema(Type.STRING, True), texts), (found.schema, values)]
    )
    columns = SourceColumns("t", {"file": "x"}, {"at": 1}, key_schema, keys, found.schema, values)
    if r.random() < 0.2:
        columns = columns._replace(timestamps=pa.array([r.choice([0, -1, 5]) for _ in range(count)], pa.int64()))
    return columns if r.random() < 0.9 else columns._replace(partition=3)


def in_bytes(part: Any, count: int) -> list[Any]:
    texts = [None] * count if part is None else part.to_pylist()
    return [text.encode() if isinstance(text, str) else text for text in texts]


def compare(columns: SourceColumns, config: Mapping[str, str]) -> int:
    """Compare a batch; returns how many of its records are in columns."""
    own = [SourceRecordConverter(load_source_config({**SOURCE, **config}, {"bootstrap.servers": "x:1"})) for _ in "ab"]
    found = SourceColumnConverter(own[0]).convert(columns)
    # What columns would note here would be counted with the next record.
    assert not any(own[0].unwritten.found)
    if found is None:
        return 0
    wanted = [record for record in map(own[1].convert, records_of(columns)) if record is not None]
    assert not any(own[1].unwritten.found)
    count = len(found.values)
    stamps = [None] * count if found.timestamps is None else found.timestamps.to_pylist()
    parts = zip(in_bytes(found.keys, count), in_bytes(found.values, count), stamps, strict=True)
    assert [(found.topic, found.partition, *part) for part in parts] == [
        (record.topic, record.partition, record.key, record.value, record.timestamp) for record in wanted
    ]
    assert found.headers is None and not any(record.headers for record in wanted)
    assert found.left_out == len(columns.values) - count
    return len(columns.values)


@pytest.mark.budget(10)
def test_columns_of_any_source_are_the_records() -> None:
    in_columns = 0
    for seed in range(examples(600)):
        r = Random(f"{seed_day()} {seed}")
        try:
            for found in read_values(r):
                with accepting():
                    config = {**steps(r), **converter_of(r, "key"), **converter_of(r, "value")}
                    in_columns += compare(batch(r, found), config)
        except Exception as error:
            error.add_note(f"The seed is '{seed_day()} {seed}'.")
            raise
    assert in_columns > examples(600) // 10

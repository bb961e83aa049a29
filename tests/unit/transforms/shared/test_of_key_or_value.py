"""Both variants of the transformations of keys and values, and what they leave alone."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from airflow_connect.api import schema as schemas
from airflow_connect.api.config.config_def import ConfigDef
from airflow_connect.api.config.plugins import PluginKind, built_in, load_class
from airflow_connect.api.record import Header, SinkRecord
from airflow_connect.api.schema import struct
from airflow_connect.transforms.shared.of_key_or_value import REPLACE_NULL_WITH_DEFAULT
from tests.support.values.columns import to_columns, to_records
from tests.support.values.connect_values import same

SCHEMA = struct(("id", schemas.INT64), ("at", schemas.timestamp()), ("in", struct(("x", schemas.OPTIONAL_STRING))))
STRUCT = {"id": 7, "at": 1_700_000_000_123, "in": {"x": "X"}}
CONFIGS: dict[str, dict[str, str]] = {
    "Cast": {"spec": "id:string"},
    "ExtractField": {"field": "id"},
    "Flatten": {},
    "HoistField": {"field": "hoisted"},
    "InsertField": {"topic.field": "topic", "offset.field": "offset!"},
    "MaskField": {"fields": "id"},
    "ReplaceField": {"renames": "id:number"},
    "SetSchemaMetadata": {"schema.name": "named"},
    "TimestampConverter": {"field": "at", "target.type": "Date"},
}
COLUMNAR = ("Cast", "Flatten", "InsertField", "MaskField", "SetSchemaMetadata", "TimestampConverter")


def transformation(name: str, part: str) -> Any:
    made = load_class(PluginKind.TRANSFORMATION, f"org.apache.kafka.connect.transforms.{name}${part}")()
    made.configure(CONFIGS[name])
    return made


def sink_record(**parts: Any) -> SinkRecord:
    return SinkRecord(topic="orders", partition=3, offset=9, timestamp=5, headers=(Header("h", None, 1),), **parts)


@pytest.mark.parametrize("name", CONFIGS)
def test_key_variant_does_to_keys_what_the_value_variant_does_to_values(name: str) -> None:
    of_key = transformation(name, "Key").apply(sink_record(key_schema=SCHEMA, key=STRUCT, value="v"))
    of_value = transformation(name, "Value").apply(sink_record(value_schema=SCHEMA, value=STRUCT, key="k"))
    assert same((of_key.key_schema, of_key.key), (of_value.value_schema, of_value.value))
    assert (of_key.value_schema, of_key.value) == (None, "v")
    assert (of_value.key_schema, of_value.key) == (None, "k")
    for changed in (of_key, of_value):
        assert changed.where == "orders-3@9"
        assert (changed.timestamp, changed.headers) == (5, (Header("h", None, 1),))


@pytest.mark.parametrize("name", COLUMNAR)
def test_key_variant_does_to_columns_what_it_does_to_records(name: str) -> None:
    of_key = transformation(name, "Key")
    record = SinkRecord(
        topic="orders",
        partition=3,
        offset=9,
        timestamp=5,
        key_schema=SCHEMA,
        key=STRUCT,
        value_schema=schemas.STRING,
        value="v",
    )
    batch = of_key.apply_columns(to_columns([record], with_key=True))
    assert batch is not None
    assert same(to_records(batch), [of_key.apply(record)])
    assert of_key.apply_columns(to_columns([record])) is None, "keys that were not read cannot be changed"


@pytest.mark.parametrize("name", COLUMNAR)
def test_columns_of_a_slice_are_those_of_its_records(name: str) -> None:
    of_value = transformation(name, "Value")
    values = [{**STRUCT, "id": number, "in": {"x": str(number)}} for number in range(6)]
    records = [
        SinkRecord(topic="t", partition=0, offset=n, timestamp=5, value_schema=SCHEMA, value=value)
        for n, value in enumerate(values)
    ]
    whole = to_columns(records)
    sliced = whole.changed(
        offsets=whole.offsets[2:5],
        timestamps=whole.timestamps[2:5],
        indexes=whole.indexes[2:5],
        value=type(whole.value)(SCHEMA, whole.value.values.slice(2, 3)),
    )
    batch = of_value.apply_columns(sliced)
    assert batch is not None
    assert same(to_records(batch), [of_value.apply(record) for record in records[2:5]])


@pytest.mark.parametrize("name", COLUMNAR)
def test_columns_of_no_records_stay_empty(name: str) -> None:
    batch = to_columns([SinkRecord(topic="t", partition=0, offset=1, timestamp=5, value_schema=SCHEMA, value=STRUCT)])
    empty = batch.filter(batch.offsets < 0)
    changed = transformation(name, "Value").apply_columns(empty)
    assert changed is not None
    assert to_records(changed) == []


@pytest.mark.parametrize("java_name", built_in(PluginKind.TRANSFORMATION))
def test_config_of_each_transformation_is_documented(java_name: str) -> None:
    config_def: ConfigDef = load_class(PluginKind.TRANSFORMATION, java_name).config_def
    assert all(key.documentation for key in config_def.keys.values())
    if REPLACE_NULL_WITH_DEFAULT in config_def.keys:
        assert config_def.keys[REPLACE_NULL_WITH_DEFAULT].parsed_default is True


def test_import_of_transformations_loads_no_arrow() -> None:
    modules = {path.partition(":")[0] for path in built_in(PluginKind.TRANSFORMATION).values()}
    code = f"import sys, {', '.join(sorted(modules))}; print([m for m in ('pyarrow', 'numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

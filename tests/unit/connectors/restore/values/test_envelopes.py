"""Envelopes of Lenses and Aiven: what is taken out of them, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.record import Header
from airflow_connect.api.schema import (
    BOOLEAN,
    FLOAT64,
    INT32,
    INT64,
    OPTIONAL_BYTES,
    OPTIONAL_STRING,
    STRING,
    Schema,
    Type,
    struct,
)
from airflow_connect.connectors.restore.config import LocalRestoreConfig
from airflow_connect.connectors.restore.values.batches import Values
from airflow_connect.connectors.restore.values.envelopes import Unpacked, envelope_of
from airflow_connect.connectors.restore.values.files import PatternNames, names_of
from airflow_connect.errors import ConfigError, DataError
from airflow_connect.stores.file_system import FoundFile

PLACE = {"timestamp": 1_700_000_000_123, "topic": "t", "partition": 2, "offset": 7}


def unpacked(name: str, value: Any, schema: Schema | None = None, accepted: tuple[str, ...] = ()) -> Unpacked:
    envelope = envelope_of(name, accepted)
    assert envelope is not None
    (found,) = envelope.unpacked(Values(0, schema, [value]))
    return found


def test_lenses_in_json() -> None:
    headers = {"a": "1", "b": None, "c": 5, "d": 1.5, "e": True, "f": {"x": 1}}
    value = {"key": "k", "value": {"id": 1}, "headers": headers, "metadata": PLACE}
    found = unpacked("lenses", value)
    assert (found.key, found.value, found.timestamp, found.place) == (
        (None, "k"),
        (None, {"id": 1}),
        PLACE["timestamp"],
        2,
    )
    schemas = [STRING, OPTIONAL_STRING, INT64, FLOAT64, BOOLEAN, None]
    assert found.headers == tuple(
        Header(name, schema, headers[name]) for name, schema in zip(headers, schemas, strict=True)
    )


def test_lenses_in_json_marks_bytes() -> None:
    value = {"key": "AAE=", "keyIsArray": True, "value": "eA==", "valueIsArray": True, "headers": {}, "metadata": PLACE}
    found = unpacked("lenses", value)
    assert (found.key, found.value) == ((OPTIONAL_BYTES, b"\0\x01"), (OPTIONAL_BYTES, b"x"))
    with pytest.raises(DataError, match="its key is no base64, and keyIsArray"):
        unpacked("lenses", {**value, "key": "!"})


@pytest.mark.parametrize("name", ["lenses", "aiven"])
def test_null_is_a_tombstone(name: str) -> None:
    value: Any = {"key": None, "value": None, "headers": None, "metadata": PLACE, "timestamp": None}
    value_schema = struct(("id", INT32), optional=True)
    schema = struct(("key", OPTIONAL_STRING), ("value", value_schema), ("headers", OPTIONAL_STRING))
    for of_values in (None, schema):
        found = unpacked(name, value, of_values)
        assert (found.key, found.value, found.headers) == ((None, None), (None, None), ())


def test_lenses_in_structs_keeps_types() -> None:
    headers = struct(("a", INT32), ("b", STRING))
    value_schema = struct(("id", INT32))
    schema = struct(("key", STRING), ("value", value_schema), ("headers", headers), ("metadata", STRING))
    value = {"key": "k", "value": {"id": 1}, "headers": {"a": 1, "b": "x"}, "metadata": PLACE}
    found = unpacked("lenses", value, schema)
    assert (found.key, found.value) == ((STRING, "k"), (value_schema, {"id": 1}))
    assert found.headers == (Header("a", INT32, 1), Header("b", STRING, "x"))


def test_aiven_in_json() -> None:
    headers = [{"key": "a", "value": "1"}, {"key": "a", "value": None}, {"key": "b", "value": [1]}]
    value = {"key": "k", "value": [1], "offset": 3, "timestamp": "2023-11-14T22:13:20.123Z", "headers": headers}
    found = unpacked("aiven", value)
    assert (found.key, found.value, found.timestamp) == ((None, "k"), (None, [1]), 1_700_000_000_123)
    assert found.headers == (Header("a", STRING, "1"), Header("a", OPTIONAL_STRING, None), Header("b", None, [1]))
    assert unpacked("aiven", {**value, "timestamp": "1969-12-31T23:59:59.999Z"}).timestamp == -1


def test_aiven_in_structs() -> None:
    of_headers = Schema(Type.MAP, key_schema=STRING, value_schema=INT64)
    schema = struct(("key", INT32), ("value", STRING), ("timestamp", INT64), ("headers", of_headers))
    found = unpacked("aiven", {"key": 1, "value": "x", "timestamp": 5, "headers": {"a": 1}}, schema)
    assert found == Unpacked((STRING, "x"), (INT32, 1), (Header("a", INT64, 1),), 5)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("lenses", 5, "it is int, and no object"),
        ("lenses", {"key": 1}, "it has no member value, but key"),
        ("lenses", {"key": 1, "value": 1, "headers": [], "metadata": PLACE}, "its member headers is no object"),
        ("lenses", {"key": 1, "value": 1, "headers": {}, "metadata": {"partition": 1}}, "no number timestamp"),
        ("lenses", {"key": 1, "value": 1, "headers": {}}, "no member metadata.*lacks its timestamp"),
        ("lenses", {"value": 1, "headers": {}, "metadata": PLACE}, "no member key"),
        ("lenses", {"key": 1, "value": 1, "metadata": PLACE}, "no member headers"),
        ("aiven", {"key": 1, "value": 1, "headers": [], "timestamp": "today"}, "its timestamp 'today' is no time"),
        ("aiven", {"key": 1, "value": 1, "headers": [], "timestamp": "2023-11-14T22:13:20"}, "is no time"),
        ("aiven", {"key": 1, "value": 1, "headers": [], "timestamp": True}, "is no time"),
        ("aiven", {"key": 1, "value": 1, "headers": [1], "timestamp": 1}, "no list of key and value"),
        ("aiven", {"key": 1, "value": 1, "headers": []}, "no member timestamp"),
    ],
)
def test_what_is_no_envelope_is_refused(name: str, value: Any, told: str) -> None:
    with pytest.raises(DataError, match=told) as caught:
        unpacked(name, value)
    assert caught.value.code == "restore.envelope"


@pytest.mark.parametrize("name", ["lenses", "aiven"])
def test_losses_that_are_accepted(name: str) -> None:
    assert unpacked(name, {"value": 1}, accepted=("key", "headers", "timestamp")) == Unpacked((None, 1))


def names(**config: str) -> Any:
    given = {"store.url": "file:///data", "format.class": "JsonFormat", "topics.dir": "", **config}
    return names_of(LocalRestoreConfig.from_config({"name": "r", **given}))


@pytest.mark.parametrize(
    ("envelope", "path", "place", "offset"),
    [
        ("lenses", "orders/2/000000000012_1700000000000_1700000000001.json", ("orders", 2), 12),
        ("lenses", "backup/of/orders/2/9.json", ("orders", 2), 9),
        ("lenses", "day=5/orders(2_000000000012).json", ("orders", 2), 12),
        ("aiven", "orders-2-12.gz", ("orders", 2), 12),
        ("aiven", "2026/11/or-de-rs-2-12", ("or-de-rs", 2), 12),
        ("aiven", "orders-2.json", None, 0),
        ("lenses", ".indexes/orders/2/x", None, 0),
        ("lenses", "orders/2/99999999999999999999.json", None, 0),
        ("lenses", "orders/99999999999/1.json", None, 0),
    ],
)
def test_names_of_the_sinks(envelope: str, path: str, place: Any, offset: int) -> None:
    grammar = names(**{"record.envelope": envelope})
    assert isinstance(grammar, PatternNames)
    found = grammar.read(FoundFile(f"{grammar.root}/{path}", 5, 6, "", 0))
    if place is None:
        assert found is None
    else:
        assert found is not None and (found[0], found[3].start) == (TopicPartition(*place), offset)


def test_names_of_any_sink() -> None:
    grammar = names(**{"file.pattern": r"(?<offset>\d+)_of_(?<topic>\w+)/(?<partition>\d)\.json"})
    found = grammar.read(FoundFile(f"{grammar.root}/17_of_orders/3.json", 5, 6, "", 0))
    assert (found[0], found[3].start) == (TopicPartition("orders", 3), 17)


@pytest.mark.parametrize(
    ("config", "key", "told"),
    [
        ({"file.pattern": r"(?<topic>\w+)/(?<offset>\d+)"}, "file.pattern", "no group named partition"),
        ({"file.pattern": "("}, "file.pattern", "not a valid regular expression"),
        ({"record.envelope": "camel"}, "record.envelope", "camel"),
        (
            {"record.envelope": "lenses", "store.kafka.records": "true", "format.class": "ParquetFormat"},
            "store.kafka.records",
            "are for files of values",
        ),
    ],
)
def test_configurations_that_are_refused(config: dict[str, str], key: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told) as caught:
        names(**config)
    assert caught.value.config_path == key

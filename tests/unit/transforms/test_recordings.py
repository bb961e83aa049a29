"""Replays what the transformations and predicates of Kafka Connect 4.3.1 did.

tests/data/transforms.jsonl was recorded inside a worker. tests/data/transforms_more.jsonl, ids from 1000 on, goes into
the corners: tests/data/TransformRecorder.java plays its lines through Kafka's own classes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.api.config.plugins import PluginKind, load_class
from airflow_connect.api.record import ConnectRecord, Header, SinkRecord, SourceRecord
from airflow_connect.errors import ConfigError, ConnectError
from tests.support.session.many_cases import check_each
from tests.support.values.connect_values import same
from tests.support.values.recorded_values import schema_of, value_of

DATA = Path(__file__).parents[2] / "data"
RECORDINGS = (DATA / "transforms.jsonl", DATA / "transforms_more.jsonl")
SINK_OFFSET = 42

# Where we mean to differ: ids of the recordings -> why. docs/transformations.md tells the same to users.
WIDTH = "a Python int has no width: without a schema Integer and Long are one type"
DIFFERENCES: dict[int, str] = {
    571: WIDTH,
    602: WIDTH,
    695: WIDTH,
    1171: "numbers are written as by Java 19 and later; Java 17 gives this float a digit more than it needs",
    2197: "of two members that get one name the renamed one stays, not the one that Java's hash order puts last",
}

# Where only the words of the message differ: ids of the recordings -> what ours says.
HASH_ORDER = "Flatten transformation was passed a value of type class java.util.Date which is not supported"
NOT_A_PATTERN = "TimestampConverter requires a SimpleDateFormat-compatible pattern for string timestamps"
WORDS: dict[int, str] = {
    92: "Invalid type found in casting spec: f.",
    93: "Invalid type found in casting spec: decimal.",
    # Java's HashMap finds the BigDecimal first, our maps keep their order.
    237: HASH_ORDER,
    245: HASH_ORDER,
    253: HASH_ORDER,
    356: "Invalid value null for configuration static.value: No value specified for static field: sf",
    357: "Invalid value null for configuration static.value: No value specified for static field: sf",
    # In Connect another transformation's message, and the words of Java's enums.
    1609: "Invalid mapping in casting spec: a:b:c.",
    1613: "Invalid type found in casting spec: foo.",
    1615: "Invalid type found in casting spec: a.",
    1616: "Invalid type found in casting spec: a.",
    1620: "Invalid type found in casting spec: .",
    2055: f"{NOT_A_PATTERN}: QQQ. Illegal pattern character 'Q'",
    2056: f"{NOT_A_PATTERN}: yyyy 'open. Unterminated quote",
    # An IllegalArgumentException of a list and a NullPointerException.
    2110: "A path of field syntax V2 has at least one step.",
    2111: "A path of field syntax V2 has at least one step.",
    2189: "Unknown field: nope.",
    # Connect's message holds the whole record, and with it the user's data.
    712: "Timestamp missing on record: {'p': 1}@{'o': 2}.",
    714: "Timestamp missing on record: {'p': 1}@{'o': 2}.",
    2411: "Timestamp missing on record: my-topic-3@42.",
    # Connect reads the pattern only when the first record with a timestamp comes.
    718: "Illegal pattern character 'Q' in the date pattern QQQ.",
    # The reason is in the words of Python's own regular expressions.
    2396: "Invalid value ( for configuration regex: Invalid regex: Unclosed group near index 1 of (.",
    769: "Invalid value [ for configuration pattern: Invalid regex: Unclosed character class near index 0 of [.",
}


def recordings() -> list[dict[str, Any]]:
    return [json.loads(line) for path in RECORDINGS for line in path.read_text(encoding="utf-8").splitlines()]


def name_of(recording: dict[str, Any]) -> str:
    simple_class = recording["class"].rpartition(".")[2]
    settings = ",".join(f"{key}={value}" for key, value in recording["config"].items())
    return f"{recording['id']}-{simple_class}({settings})"


def record_of(node: dict[str, Any]) -> ConnectRecord:
    key_schema, value_schema = schema_of(node["key_schema"]), schema_of(node["value_schema"])
    parts: dict[str, Any] = {
        "topic": node["topic"],
        "partition": node["partition"],
        "key_schema": key_schema,
        "key": value_of(key_schema, node["key"]),
        "value_schema": value_schema,
        "value": value_of(value_schema, node["value"]),
        "timestamp": node["timestamp"],
        "headers": tuple(header_of(*header) for header in node["headers"]),
    }
    if node["record"] == "sink":
        return SinkRecord(offset=SINK_OFFSET, original_topic="my-topic", original_partition=3, **parts)
    return SourceRecord(source_partition={"p": 1}, source_offset={"o": 2}, **parts)


def header_of(name: str, schema_node: Any, tagged: Any) -> Header:
    schema = schema_of(schema_node)
    return Header(name, schema, value_of(schema, tagged))


def play(recording: dict[str, Any]) -> Any:
    """What a fresh transformation or predicate answers; the second record of a schema takes cached ways."""
    is_predicate = ".predicates." in recording["class"]
    plugin = load_class(PluginKind.PREDICATE if is_predicate else PluginKind.TRANSFORMATION, recording["class"])()
    plugin.configure(recording["config"])
    if recording["phase"] == "configure":
        return None
    record, untouched = record_of(recording["input"]), record_of(recording["input"])
    run = plugin.test if is_predicate else plugin.apply
    first, second = run(record), run(record)
    assert same(record, untouched), "the record that was given must stay as it is"
    assert same(first, second)
    plugin.close()
    return first


def expected(recording: dict[str, Any]) -> Any:
    output = recording["output"]
    return record_of({"record": recording["input"]["record"], **output}) if isinstance(output, dict) else output


def equals_connect(recording: dict[str, Any]) -> bool:
    try:
        actual = play(recording)
    except ConnectError as error:
        if "error" not in recording or isinstance(error, ConfigError) != (recording["phase"] == "configure"):
            return False
        return WORDS.get(recording["id"], comparable(recording)) in str(error)
    return "error" not in recording and same(actual, expected(recording))


def comparable(recording: dict[str, Any]) -> str:
    """The words of an error without punctuation at its end."""
    return str(recording["error"]["message"]).rstrip(". ")


def by_class() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for recording in recordings():
        found.setdefault(recording["class"].rpartition(".")[2], []).append(recording)
    return found


@pytest.mark.parametrize(("simple_class", "of_class"), by_class().items(), ids=by_class())
def test_recordings_replayed_equal_connect(simple_class: str, of_class: list[dict[str, Any]]) -> None:
    check_each(of_class, name_of, check_recording)


def check_recording(recording: dict[str, Any]) -> None:
    if recording["id"] in DIFFERENCES:
        assert not equals_connect(recording), "the difference is gone: take it off the table"
        return
    if "error" in recording:
        with pytest.raises(ConfigError if recording["phase"] == "configure" else ConnectError) as caught:
            play(recording)
        assert WORDS.get(recording["id"], comparable(recording)) in str(caught.value)
    else:
        actual = play(recording)
        assert same(actual, expected(recording)), (actual, expected(recording))


def test_tables_name_only_recordings_that_differ() -> None:
    by_id = {recording["id"]: recording for recording in recordings()}
    assert by_id.keys() >= DIFFERENCES.keys() | WORDS.keys()
    assert not DIFFERENCES.keys() & WORDS.keys()
    for number, words in WORDS.items():
        assert comparable(by_id[number]) not in words, f"recording {number} needs no words of its own"


def test_recordings_cover_every_built_in_transformation_and_predicate() -> None:
    from airflow_connect.api.config.plugins import built_in

    def class_of(name: str) -> str:
        return name.partition("$")[0]

    shipped = {class_of(name) for kind in (PluginKind.TRANSFORMATION, PluginKind.PREDICATE) for name in built_in(kind)}
    assert {class_of(recording["class"]) for recording in recordings()} == shipped

"""Source offsets as bytes: what a real Kafka Connect wrote is read, and written again byte for byte."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.errors import TaskFailedError
from airflow_connect.kafka.state.murmur2 import partition_for
from airflow_connect.kafka.state.offsets.offsets_topic import SourceOffsets, identity, offset_changes

TOPICS = Path(__file__).parents[4] / "data" / "connect_topics"
FILES = sorted(TOPICS.glob("*-offsets.jsonl"))


def recorded(file: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    meta, *records = map(json.loads, file.read_text("utf-8").splitlines())
    return meta, records


def data(field: dict[str, str] | None) -> bytes | None:
    return None if field is None else base64.b64decode(field["base64"])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_recorded_offsets_are_read_and_written_again_byte_for_byte(file: Path):
    meta, records = recorded(file)
    assert records
    for record in records:
        key, value = data(record["key"]), data(record["value"])
        assert key is not None
        connector, partition = json.loads(key)
        assert partition_for(key, meta["num_partitions"]) == record["partition"]
        read = SourceOffsets(connector)
        read.take(key, value)
        written = SourceOffsets(connector).record(partition, None if value is None else json.loads(value))
        assert (written.key, written.value) == (key, value)
        assert read.get(partition) == (None if value is None else json.loads(value))


def test_only_records_of_the_connector_are_taken():
    offsets = SourceOffsets("a")
    for key in (b'["a-b",{"f":"x"}]', b'["b",{"f":"a"}]', b"a", b'["a"]', b'{"a":1}', b'["a",3]', b"\xffa", None):
        offsets.take(key, b'{"n":1}')
    assert len(offsets) == 0
    offsets.take(b'["a",{"f":"x"}]', b'{"n":1}')
    assert dict(next(iter(offsets.items()))[1]) == {"n": 1}


def test_key_that_was_found_is_written_again_whatever_the_order_of_its_members():
    offsets = SourceOffsets("m")
    key = b'["m",{"partition":0,"topic":"t","cluster":"A"}]'
    offsets.take(key, b'{"offset":41}')

    record = offsets.record({"cluster": "A", "topic": "t", "partition": 0}, {"offset": 42})

    assert record == (key, b'{"offset":42}')
    assert offsets.record({"topic": "t", "cluster": "A", "partition": 0}, None) == (key, None)
    assert len(offsets) == 0


def test_new_key_keeps_the_order_that_the_connector_gives():
    record = SourceOffsets("m").record({"z": 1, "a": "é\n"}, {"b": True, "a": None, "f": 1.5})
    assert record.key == '["m",{"z":1,"a":"é\\n"}]'.encode()
    assert record.value == b'{"b":true,"a":null,"f":1.5}'


@pytest.mark.parametrize("offset", [{"n": [1]}, {"n": {"m": 1}}, {1: "x"}, {"n": b"x"}], ids=str)
def test_offset_that_is_not_flat_is_refused(offset: dict[Any, Any]):
    with pytest.raises(TaskFailedError, match="is not a flat map of text, numbers"):
        SourceOffsets("c").record({"p": 1}, offset)
    with pytest.raises(TaskFailedError, match="is not a flat map of text, numbers"):
        SourceOffsets("c").record(offset, {"n": 1})


def test_changes_that_change_nothing_are_left_out():
    offsets = SourceOffsets("c")
    offsets.record({"p": 1}, {"n": 1})
    changes = [({"p": 1}, {"n": 1}), ({"p": 2}, None), ({"p": 1}, {"n": 2})]
    assert [record.value for record in offset_changes(offsets, changes)] == [b'{"n":2}']


@pytest.mark.parametrize("value", [True, 1.0])
def test_offset_that_changes_its_type_alone_is_a_change(value: Any):
    offsets = SourceOffsets("c")
    offsets.record({"p": 1}, {"n": 1})
    (record,) = offset_changes(offsets, [({"p": 1}, {"n": value})])
    assert record.value == (b'{"n":true}' if value is True else b'{"n":1.0}')
    assert offset_changes(offsets, [({"p": 1}, {"n": value})]) == []


plain = st.one_of(st.text(), st.integers(-(2**63), 2**63 - 1), st.booleans(), st.none())


@given(st.text(min_size=1), st.dictionaries(st.text(), plain, min_size=1), st.dictionaries(st.text(), plain))
def test_what_is_written_is_read_again(connector: str, partition: dict[str, Any], offset: dict[str, Any]):
    try:
        json.dumps([connector, partition, offset], ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return  # Half a surrogate pair is no text.
    record = SourceOffsets(connector).record(partition, offset)

    read = SourceOffsets(connector)
    read.take(*record)

    assert read.get(partition) == offset
    assert [identity(p) for p, _ in read.items()] == [identity(partition)]

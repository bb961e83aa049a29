"""Sinks through the plugin host: delivery, repetition, errant records, offsets, what a task asks for."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
import pytest

from airflow_connect.errors import InternalError
from airflow_connect.jvm.frames import encode
from tests.integration.jvm.hosting import configuration, frame_of

pytestmark = pytest.mark.integration

INT = "org.apache.kafka.connect.converters.IntegerConverter"
NOTHING = {"errant": [], "rewind": [], "paused": [], "commit_requested": False}
LOG_ERRORS = {"errors.log.enable": "true"}


def put(host, frame) -> dict:
    encoded = encode(frame)
    return host.call("put", encoded.body, **encoded.members).result


def outcome(delivered: int, **others) -> dict:
    nothing = {"dropped": 0, "failed": [], "errant": [], "retry": None, "rewind": [], "paused": []}
    return {"delivered": delivered, **nothing, "commit_requested": False, **others}


def numbered(count: int):
    return frame_of([(b"k", b"%d" % number) for number in range(count)])


def test_records_reach_the_task_as_a_worker_would_make_them(start_task, tmp_path):
    host = start_task("Sinks$Records", topics="t", file=str(tmp_path / "out"))
    headers = pa.array(
        [[{"key": b"h", "value": b"1"}, {"key": b"h", "value": None}], [], []],
        pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())])),
    )
    frame = dataclasses.replace(frame_of([(b"k", b"v"), (None, b""), (b"", None)]), headers=headers, timestamp_type=1)
    assert put(host, frame) == outcome(3)
    assert put(host, frame_of([])) == outcome(0)
    assert host.call("pre_commit", offsets=[["t", 0, 3]]).result == {"offsets": [["t", 0, 3]], **NOTHING}
    assert host.close() == []
    assert (tmp_path / "out").read_text().splitlines() == [
        "open [t-0]",
        "put 3",
        "t-0@0 1000 LogAppendTime k=v h:1 h:null InternalSinkRecord",
        "t-0@1 1000 LogAppendTime null= InternalSinkRecord",
        "t-0@2 1000 LogAppendTime =null InternalSinkRecord",
        "put 0",
        "flush 1",
        "close [t-0]",
        "stop",
    ]


def test_retriable_put_is_repeated_with_the_same_records(start_task, lines):
    host = start_task("Sinks$Retries")
    first = put(host, numbered(1700))
    retry = {"message": "org.apache.kafka.connect.errors.RetriableException: busy 3", "after_ms": 250}
    assert first == outcome(1000, retry=retry)
    with pytest.raises(InternalError, match="The last frame is not finished"):
        put(host, numbered(1))
    second = host.call("put", again=True).result
    assert second["retry"] == {"message": "org.apache.kafka.connect.errors.RetriableException: busy 4", "after_ms": 0}
    assert host.call("put", again=True).result == outcome(700)
    host.close()
    assert [line for line in lines if line.startswith("put")] == ["put 500", "put 500", "put 500", "put 200"]


def test_errant_records_are_told_whenever_they_are_reported(start_task):
    host = start_task("Sinks$ReportsErrors", **LOG_ERRORS)
    at_once = put(host, numbered(3))["errant"]
    later = host.call("pre_commit", offsets=[["t", 0, 3]]).result["errant"]
    at_the_end = "java.lang.IllegalArgumentException: bad record, at the end"
    assert host.close() == [f"the record t-0@2 was reported as errant when the task was stopped: {at_the_end}"]
    said = [(*each[:3], each[3]["chain"]) for each in [*at_once, *later, *host.late_reports]]
    assert said == [
        ("t", 0, number, [f"java.lang.IllegalArgumentException: bad record, {when}"])
        for number, when in enumerate(["at once", "later", "at the end"])
    ]


def test_errant_records_are_told_without_a_place_for_them(start_task):
    """A worker has no reporter then, and plugins leave the records out."""
    host = start_task("Sinks$LeavesOut")
    assert [each[:3] for each in put(host, numbered(4))["errant"]] == [["t", 0, 1], ["t", 0, 3]]


def test_requests_of_a_task_are_told(start_task):
    host = start_task("Sinks$Asks")
    asked = put(host, numbered(2))
    assert asked == outcome(2, rewind=[["t", 0, 4]], paused=[["t", 0]], commit_requested=True)
    assert put(host, frame_of([])) == outcome(0)
    assert host.call("pre_commit", offsets=[["t", 0, 2]]).result == {"offsets": [], **NOTHING}


def test_requests_of_a_task_that_is_being_opened_are_told(start_host):
    config = configuration("Sinks$AsksInOpen")
    task = {"config": config, "task": config, "task_class": "plugins.Sinks$AsksInOpen$AskTask", "task_id": 0}
    started = start_host().call("sink", assignment=[["t", 0]], **task).result
    assert started == {**NOTHING, "rewind": [["t", 0, 17]], "paused": [["t", 0]]}


def test_plugin_that_keeps_its_own_offsets_says_so(start_task):
    host = start_task("Sinks$Asks", mode2="null")
    assert host.call("pre_commit", offsets=[["t", 0, 2]]).result == {"offsets": None, **NOTHING}


def test_failed_records_are_left_out_and_described_by_row(start_task):
    host = start_task("Sinks$Discards", **{"value.converter": INT})
    result = put(host, frame_of([(None, b"\0\0\0\1"), (None, b"bad"), (None, b"\0\0\0\2"), (None, None)]))
    ((row, failed),) = result.pop("failed")
    assert (result["delivered"], row) == (3, 1)
    assert failed["stage"] == "VALUE_CONVERTER"
    assert failed["executing"] == INT
    assert failed["class"] == "org.apache.kafka.connect.errors.DataException"


def test_descriptions_of_many_failed_records_do_not_fill_the_heap(start_host):
    host = start_host(heap_mb=64)
    config = configuration("Sinks$Discards", **{"value.converter": "org.apache.kafka.connect.json.JsonConverter"})
    task = {"config": config, "task": config, "task_class": "plugins.Sinks$Discards$DiscardTask", "task_id": 0}
    host.call("sink", assignment=[["t", 0]], **task)
    result = put(host, frame_of([(None, b"{bad %d" % number) for number in range(8000)]))
    assert (result["delivered"], len(result["failed"])) == (0, 8000)
    assert {failure["stack"].count("Caused by: ") for _, failure in result["failed"]} == {2}


def test_failed_record_stops_the_frame_if_errors_are_not_tolerated(start_task):
    host = start_task("Sinks$Discards", {"stop_on_error": True}, **{"value.converter": INT})
    result = put(host, frame_of([(None, b"\0\0\0\1"), (None, b"bad"), (None, b"\0\0\0\2")]))
    assert result["delivered"] == 1
    assert [row for row, _ in result["failed"]] == [1]


def test_dropped_records_are_counted(start_task):
    host = start_task(
        "Sinks$Discards",
        **{
            "transforms": "f",
            "transforms.f.type": "org.apache.kafka.connect.transforms.Filter",
            "transforms.f.predicate": "null",
            "predicates": "null",
            "predicates.null.type": "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
        },
    )
    assert put(host, frame_of([(b"a", b"1"), (b"b", None), (b"c", None)])) == outcome(1, dropped=2)


def test_offsets_that_are_set_are_passed_to_the_connector(start_host):
    host = start_host()
    config = {"connector.class": "plugins.Sinks$Records"}
    assert host.call("alter", config=config, offsets=[["t", 0, None]]).result == {"value": True}
    assert host.call("alter", config=config, offsets=[["t", 0, 5]]).result == {"value": False}

"""Sources through the plugin host: where frames end, their offsets, marks, idle times, failed records."""

from __future__ import annotations

import json
import re

import pytest

from airflow_connect.errors import JavaDataError, JavaPluginError
from airflow_connect.jvm import host as host_module
from airflow_connect.jvm.frames import decode
from tests.integration.jvm.hosting import drain, replies, values
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration

CAST = {
    "transforms": "cast",
    "transforms.cast.type": "org.apache.kafka.connect.transforms.Cast$Value",
    "transforms.cast.spec": "int32",
}


def marks(host) -> list[tuple[int, str | None, list[list[dict]]]]:
    return [(reply.result["rows"], reply.result["mark"], reply.result["offsets"]) for reply in replies(host)]


def position(number: int) -> list[list[dict]]:
    return [[{"file": "x"}, {"position": number}]]


def test_marks_of_records_cut_the_frame_where_they_are(start_task):
    host = start_task("OddSources$Marks", **{"transaction.boundary": "connector", "marks": "record"})
    assert marks(host) == [
        (4, "commit", position(3)),
        (10, "commit", position(13)),
        (6, None, position(19)),
    ]


def test_marks_of_batches_belong_to_the_batch_that_poll_returned(start_task):
    host = start_task("OddSources$Marks", **{"transaction.boundary": "connector", "marks": "batch"})
    assert marks(host) == [(10, "commit", position(9)), (10, "commit", position(19))]


def test_marks_of_aborts_are_told_as_such(start_task):
    host = start_task("OddSources$Marks", **{"transaction.boundary": "connector", "marks": "abort"})
    assert marks(host) == [(7, "abort", position(6)), (10, "abort", position(16)), (3, None, position(19))]


def test_connector_tells_what_it_promises_and_plans(start_host):
    config = {"name": "c", "connector.class": "plugins.OddSources$Marks"}
    host = start_host()
    support = host.call("support", config=config).result
    plan = host.call("plan", config=config, max_tasks=3, offsets=[]).result
    assert support == {"exactly_once": "SUPPORTED", "boundaries": "SUPPORTED", "warnings": []}
    assert plan == {
        "kind": "source",
        "tasks": [config],
        "task_class": "plugins.OddSources$Marks$MarkTask",
        "version": "1.0",
    }


def test_null_offsets_come_as_the_plugin_gave_them(start_task):
    host = start_task("OddSources$NullOffsets")
    frames = list(replies(host))
    assert values(frames) == ["neither", "no offset", "null in it"] * 2
    assert frames[0].result["offsets"] == [[{"file": "a"}, None], [{"file": "b"}, {"position": None}]]


def test_offsets_come_back_as_connect_reads_them(start_task):
    host = start_task("OddSources$NestedOffsets")
    (frame, *_) = replies(host)
    assert values([frame])[0] == "nothing"
    ((partition, offset),) = frame.result["offsets"]
    assert json.dumps(partition, ensure_ascii=False) == '{"z": 1, "a": "é"}'  # the plugin's order
    assert json.dumps(offset) == (
        '{"long": 9223372036854775807, "double": 0.1, "flag": true, "list": [1, "two"], "map": {"deep": null}}'
    )
    again = start_task("OddSources$NestedOffsets", {"offsets": [[{"a": "é", "z": 1}, offset]]})
    (seen, *_) = values(replies(again))
    assert seen == (
        "long=9223372036854775807:Long double=0.1:Double flag=true:Boolean list=[1, two]:ArrayList"
        " map={deep=null}:LinkedHashMap"
    )


@pytest.mark.parametrize(("kind", "says"), [("bytes", "byte[]"), ("nan", "NaN"), ("object", "java.lang.Object")])
def test_offsets_that_json_cannot_hold_name_the_plugin(start_task, kind, says):
    host = start_task("OddSources$BadOffsets", kind=kind)
    found: list[str | None] = []
    with pytest.raises(JavaPluginError, match=re.escape(says)) as failed:
        drain(host, found)
    assert "plugins.OddSources$BadOffsets" in failed.value.message
    assert found[:20] == [f"v{number}" for number in range(20)]


def test_offset_that_a_plugin_changes_later_is_that_of_its_record(start_task):
    host = start_task("OddSources$ReusesOffset")
    (frame,) = replies(host)
    assert frame.result["rows"] == 2
    assert frame.result["offsets"] == position(1)  # the third poll, which was empty, set 2


def test_poll_that_is_too_large_for_a_frame_continues_in_the_next(start_task):
    host = start_task("OddSources$BigPoll", {"max_rows": 40}, rows="100", bytes="10")
    frames = [reply.result for reply in replies(host)]
    assert [(frame["rows"], frame["continues"]) for frame in frames] == [(40, True), (40, True), (20, False)]
    assert [frame["offsets"] for frame in frames] == [position(39), position(79), position(99)]


def test_bytes_limit_a_frame_inside_a_large_poll(start_task):
    host = start_task("OddSources$BigPoll", {"max_bytes": 100_000}, rows="100", bytes="10000")
    frames = list(replies(host))
    assert sum(frame.result["rows"] for frame in frames) == 100
    assert max(len(frame.body) for frame in frames) < 112_000
    assert [frame.result["continues"] for frame in frames] == [True] * (len(frames) - 1) + [False]


def test_small_polls_share_a_frame_up_to_the_limit(start_task):
    host = start_task("FailingSources$ThrowsInStop", {"max_rows": 15})
    frames = [reply.result for reply in replies(host)]
    assert [(frame["frame"], frame["rows"], frame["continues"]) for frame in frames] == [(1, 20, False)]


def test_source_that_starts_late_is_idle_until_then(start_task):
    host = start_task("OddSources$StartsLate", after_ms="900")
    idle = host.call("next", wait_ms=300).result
    assert idle["state"] == "idle"
    assert idle["ready"] is True
    assert idle["first"] is True
    assert idle["empty_polls"] >= 2
    assert 0 < idle["idle_ms"] <= 900
    seen = []
    wait_until(lambda: "rows" in (seen.append(host.call("next", wait_ms=100)) or seen[-1]).result, "data comes")
    assert values([seen[-1]]) == [f"v{number}" for number in range(20)]
    after = host.call("next", wait_ms=100).result
    assert after["first"] is False
    assert after["idle_ms"] < 900


@pytest.mark.parametrize(
    ("mode", "steps"),
    [
        (
            "initial",
            [
                "it has no metrics yet",
                "its snapshot has not begun",
                "its snapshot is running",
                "it does not stream yet",
                "it is not connected yet",
                "its queue is not empty",
            ],
        ),
        (
            "initial_only",
            [
                "it has no metrics yet",
                "its snapshot has not begun",
                "its snapshot is running",
                "its queue is not empty",
            ],
        ),
    ],
)
def test_empty_polls_of_a_source_that_is_not_ready_are_no_idle_time(start_task, mode, steps):
    """Debezium's threads connect and make a snapshot while poll returns nothing."""
    host = start_task("io.debezium.like.LikeDebezium", step_ms="300", **{"snapshot.mode": mode})
    seen: list[str] = []
    while "rows" not in (reply := host.call("next", wait_ms=20)).result:
        idle = reply.result
        if idle["why"] and idle["why"] not in seen:
            seen.append(idle["why"])
        assert idle["ready"] is not bool(idle["why"])
        if not idle["ready"]:
            assert (idle["idle_ms"], idle["empty_polls"]) == (0, 0)
        assert idle["idle_ms"] < 600  # only the step between the snapshot and the queue, in mode initial_only
    assert seen == steps
    assert values([reply]) == ["row"]
    after = host.call("next", wait_ms=200).result
    assert (after["ready"], after["why"]) == (True, "")


def test_source_that_reads_old_changes_of_other_tables_is_not_idle(start_task):
    """None of them is returned; what comes after them may be of a captured table."""
    host = start_task("io.debezium.like.LikeDebezium", step_ms="50", others_ms="1500")
    longest = 0
    while "rows" not in (reply := host.call("next", wait_ms=20)).result:
        longest = max(longest, reply.result["idle_ms"])
    assert values([reply]) == ["row"]
    assert longest < 1000
    after = host.call("next", wait_ms=500).result
    assert (after["ready"], after["why"]) == (True, "")


def test_heartbeats_are_no_sign_of_more_to_read(start_task):
    """They cross as all records do, and each frame of them tells how long nothing else has come."""
    host = start_task("io.debezium.like.LikeDebezium", step_ms="50", beats="true")
    found = []
    while not found or found[-1].result.get("idle", {}).get("idle_ms", 0) < 300:
        reply = host.call("next", wait_ms=500)
        if "rows" in reply.result:
            found.append(reply)
    assert "row" in values(found)
    assert found[-1].result["idle"]["empty_polls"] > 2


def test_records_of_every_kind_cross_unchanged(start_task):
    host = start_task("OddSources$Varied")
    (reply,) = replies(host)
    frame = decode(reply)
    assert list(frame.topics) == ["varied"]
    assert frame.partition.to_pylist() == [-1, 3, -1]
    assert frame.timestamp.to_pylist() == [7, -1, -1]
    assert frame.offset is None
    assert frame.keys.to_pylist() == [None, b"", "ключ".encode()]
    assert frame.values.to_pylist() == [b"value", b"", None]
    assert [[tuple(header.values()) for header in each] for each in frame.headers.to_pylist()] == [
        [(b"twice", b"a"), (b"twice", b"b"), (b"none", None)],
        [(b"", b"")],
        [],
    ]


def test_dropped_records_are_counted_and_their_offsets_kept(start_task):
    drop_all = {
        "transforms": "filter",
        "transforms.filter.type": "org.apache.kafka.connect.transforms.Filter",
    }
    host = start_task("FailingSources$ThrowsInStop", **drop_all)
    (reply,) = replies(host)
    assert (reply.result["rows"], reply.result["dropped"]) == (0, 20)
    assert reply.result["offsets"] == position(19)
    assert len(decode(reply)) == 0


def test_failed_records_are_left_out_and_described(start_task):
    host = start_task("FailingSources$ThrowsInStop", **CAST)
    (reply,) = replies(host)
    assert (reply.result["rows"], len(reply.result["failed"])) == (0, 20)
    assert reply.result["offsets"] == position(19)
    failed = reply.result["failed"][0]
    assert failed["stage"] == "TRANSFORMATION"
    assert failed["executing"] == "org.apache.kafka.connect.transforms.Cast$Value"
    assert failed["class"] == "org.apache.kafka.connect.errors.DataException"
    assert "topic numbers, source partition {file=x}, offset {position=0}" in failed["where"]
    assert "\tat org.apache.kafka.connect.transforms.Cast" in failed["stack"]


def test_failed_record_ends_the_task_if_errors_are_not_tolerated(start_task):
    host = start_task("FailingSources$ThrowsInStop", {"stop_on_error": True}, **CAST)
    reply = host.call("next", wait_ms=5000)
    assert (reply.result["rows"], len(reply.result["failed"])) == (0, 1)
    assert reply.result["offsets"] == []
    with pytest.raises(JavaDataError, match="DataException") as failed:
        host.call("next", wait_ms=5000)
    assert failed.value.code == "java.data"


def test_stack_of_a_failed_record_is_the_text_that_java_prints(start_task, monkeypatch):
    """That of the frame is put together from texts that its records share; that of the error comes from Java."""
    printed = []
    monkeypatch.setattr(
        host_module, "plugin_error", lambda error, _subject: printed.append(error) or JavaDataError("x")
    )
    bad = {"value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter"}
    for keys in (CAST, bad):
        host = start_task("FailingSources$ThrowsInStop", {"stop_on_error": True}, **keys)
        (failed,) = host.call("next", wait_ms=5000).result["failed"]
        with pytest.raises(JavaDataError):
            host.call("next", wait_ms=5000)
        assert failed["stack"] == printed[-1]["stack"]
        assert failed["chain"] == printed[-1]["chain"]
    assert "Caused by: " in printed[0]["stack"]


def test_acknowledged_records_are_committed_and_failures_of_that_are_warnings(start_task, lines):
    drop_one = {
        "transforms": "filter",
        "transforms.filter.type": "org.apache.kafka.connect.transforms.Filter",
        "transforms.filter.predicate": "gone",
        "predicates": "gone",
        "predicates.gone.type": "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
    }
    host = start_task("OddSources$Commits", **drop_one)
    (reply,) = replies(host)
    acknowledged = host.call("ack", frame=reply.result["frame"]).result
    assert acknowledged == {"warnings": ["commit has failed: java.lang.IllegalStateException: commit bug"]}
    wait_until(lambda: "committed 20 last v19" in lines, "the task prints what was committed")


def test_converters_that_are_not_named_are_an_error_of_the_configuration(start_host):
    from airflow_connect.errors import ConfigError

    host = start_host()
    config = {"name": "c", "connector.class": "plugins.OddSources$Commits"}
    with pytest.raises(ConfigError, match=r"names no key\.converter"):
        host.call("source", config=config, task=config, task_class="plugins.OddSources$Commits$CommitTask", task_id=0)

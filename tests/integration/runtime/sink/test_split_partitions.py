"""Several tasks share a partition: the same records in the same order, and nothing is committed behind a hole."""

import json
from dataclasses import replace

import pytest

from airflow_connect.exactly_once.manifest import Manifest
from airflow_connect.runtime import crash_points
from airflow_connect.runtime.crash_points import DRIVER_POINTS, TASK_POINTS, VARIABLE
from tests.crash.rounds import Victim
from tests.integration.runtime.sink.failures.test_errors import TOLERANT, queue_of
from tests.support.copies.hdfs import hdfs_sink
from tests.support.copies.local import local_sink
from tests.support.copies.s3 import numbered
from tests.support.steps import Crashed, HookedEngine

SPLIT = {"tasks_max": "4", "split_min_records": "10"}
JSON = "io.confluent.connect.s3.format.json.JsonFormat"
WHOLE = {"tasks_max": "4", "split_partitions": "false"}


@pytest.fixture(params=["s3", "hdfs", "local"])
def make(request, kafka, tmp_path):
    """`make(topic, **config)`: a connector with one store of each kind."""
    if request.param == "local":
        return lambda topic, **config: local_sink(kafka, tmp_path / "out", topic, **config)
    if request.param == "hdfs":
        return lambda topic, **config: hdfs_sink(kafka, request.getfixturevalue("hdfs"), topic, **config)
    return request.getfixturevalue("make_sink")


def contents(sink, prefix):
    """Object names below `topics.dir` to their bytes."""
    return {key.removeprefix(prefix): sink.body(key) for key in list(sink.keys()) if key.startswith(prefix)}


def ranges(sink):
    """Start and end of each range of the last plan, by task."""
    return [[(r.start, r.end) for r in task.ranges] for task in sink.plan().tasks]


def check_equal_objects(make, topic, **config):
    """The same connector with and without cuts writes equal objects."""
    whole = make(topic, flush_size="5", topics_dir="whole", **WHOLE, **config)
    split = whole.second(topics_dir="split", split_partitions="true", split_min_records="10")

    assert whole.run().tasks == 1
    report = split.run()

    assert sorted(ranges(split)) == [[(0, 25)], [(25, 50)], [(50, 80)], [(80, 107)]]
    assert (report.tasks, report.records, split.offsets()) == (4, 107, {0: 107})
    assert f"Several tasks share a partition: {topic}-0 into 4 ranges." in report.notes
    assert contents(split, "split/") == contents(whole, "whole/") != {}
    assert split.run().status == "empty"


def test_objects_of_a_log_without_gaps_are_the_same_with_and_without_cuts(make, make_topic, produce):
    topic = make_topic()
    produce(topic, numbered(0, 107)[0])

    check_equal_objects(make, topic)


def test_objects_of_the_reference_path_are_the_same_with_and_without_cuts(make_sink, make_topic, produce):
    topic = make_topic()
    produce(topic, numbered(0, 107)[0])

    check_equal_objects(make_sink, topic, store_kafka_keys="true", keys_format_class=JSON)


def test_every_record_of_a_log_with_gaps_is_there_once_and_in_order(make, make_topic, produce):
    topic = make_topic()
    for start in range(0, 120, 12):
        produce.transaction(topic, [*numbered(start, start + 12)[0], (0, "gone", None)], "commit")
        produce.transaction(topic, [(0, None, '{"n": -1}')], "abort")
    sink = make(topic, flush_size="7", behavior_on_null_values="ignore", **SPLIT)

    report = sink.run()

    assert (report.tasks, report.records, report.filtered) == (4, 120, 10)
    assert all(row.is_balanced for row in report.detail.partitions)
    assert sum(row.read for row in report.detail.partitions) == 130
    bodies = [[json.loads(line)["n"] for line in sink.body(key).splitlines()] for key in list(sink.keys())]
    assert [n for body in bodies for n in body] == list(range(120))
    assert max(map(len, bodies)) == 7
    assert sink.run().status == "empty"


def test_dead_letters_in_a_middle_range_end_the_run_there(make, make_topic, produce, unique_name):
    topic = make_topic()
    rows, values = numbered(0, 40)
    for n in (15, 16, 35):
        rows[n] = (0, None, f"broken {n}")
    produce(topic, rows)
    sink = make(topic, flush_size="10", errors_deadletterqueue_topic_name=f"{unique_name}-dlq", **TOLERANT, **SPLIT)
    sink.engine = HookedEngine(change=lambda task: replace(task, max_dead_letter_bytes=1))

    first = sink.run()

    # Of [10, 20) what is before the first broken record, and that one; of [20, 40) nothing, although it was copied.
    assert (sink.offsets(), first.dead_lettered, first.records) == ({0: 16}, 1, 15)
    assert any("copied, but not committed" in note for note in first.notes)
    assert sorted(value["n"] for value in sink.values()) == list(range(15))
    assert [value for _, value in queue_of(sink)] == [b"broken 15"]
    assert sink.uploads() == []
    reports = [sink.run() for _ in range(4)]
    assert reports[-1].status == "empty"
    assert [value for _, value in queue_of(sink)] == [b"broken 15", b"broken 16", b"broken 35"]
    sink.assert_exactly_once([value for value in values if value["n"] not in (15, 16, 35)])


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_most_once"])
def test_a_broken_record_in_a_middle_range_commits_nothing(make_sink, make_topic, produce, guarantee):
    topic = make_topic()
    rows, _ = numbered(0, 80)
    rows[30] = (0, None, "broken")
    produce(topic, rows)
    sink = make_sink(topic, flush_size="5", delivery_guarantee=guarantee, **SPLIT)

    report = sink.try_run()

    assert report.error is not None and f"{topic}-0@30" in report.error["message"]
    assert (sink.offsets(), sink.keys(), sink.uploads()) == ({}, [], [])


def test_lost_upload_of_a_range_is_copied_again_under_its_name(make_sink, make_topic, produce, steps, s3):
    topic = make_topic()
    produce.transaction(topic, numbered(0, 80)[0], "commit")
    sink = make_sink(topic, flush_size="7", **SPLIT)
    steps.crash(crash_points.MANIFEST_WRITTEN)
    with pytest.raises(Crashed):
        sink.run()
    manifest = sink.view().manifest
    doomed = [f for f in manifest.files if f.start >= 21][:2]
    for file in doomed:
        s3.client().abort_multipart_upload(Bucket=sink.bucket, Key=file.key, UploadId=file.token["upload_id"])

    report = sink.run(tasks_max="1")  # Fewer than there are ranges: each still begins its own files.

    assert isinstance(manifest, Manifest) and len(manifest.partitions) == 4
    assert report.recovered_run_id == manifest.run_id
    assert sink.keys() == sorted(f.key for f in manifest.files)
    sink.assert_exactly_once(numbered(0, 80)[1])
    assert sink.offsets() == {0: 81}


def test_kill_at_every_step_with_ranges_of_one_partition_copies_every_record_once(make_sink, make_topic, produce):
    sink = make_sink(make_topic(), flush_size="3", **SPLIT)
    written, survivors = 0, []
    for point in (*DRIVER_POINTS, *TASK_POINTS):
        produce(sink.topic, numbered(written, written + 40)[0])
        written += 40
        if Victim(sink, {VARIABLE: point}).wait() is not None:
            survivors.append(point)

    last = [Victim(sink).wait() for _ in range(3)]

    assert survivors == []
    assert [report.status for report in last] == ["done", "empty", "empty"]
    assert last[0].tasks == 4
    sink.assert_exactly_once(numbered(0, written)[1])


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"split_partitions": "false"}, "split.partitions is false"),
        ({"flush_on_end": "false"}, "with flush.on.end=false, a file ends only where it is full"),
        ({"run_max_seconds": "60"}, "run.max.seconds may end a task anywhere"),
        ({"run_max_bytes": "100000"}, "run.max.bytes may end a task anywhere"),
        ({"delivery_guarantee": "at_least_once"}, "with delivery.guarantee=at_least_once, a repeated run must give"),
        ({"files_per_partition": "compact"}, "files.per.partition=compact is for as few files as possible"),
        ({"flush_size": "50"}, "ranges have multiples of 50 offsets"),
    ],
)
def test_plan_says_why_a_partition_has_one_task(make_sink, make_topic, produce, config, why):
    topic = make_topic()
    produce(topic, numbered(0, 80)[0])
    sink = make_sink(topic, **{"flush_size": "5", **SPLIT, **config})

    report = sink.run()

    assert report.tasks == 1
    (note,) = [note for note in report.notes if note.startswith("tasks.max=4")]
    assert f"one task copies all of {topic}-0: {why}" in note


def test_default_splits_no_small_partition(make_sink, make_topic, produce):
    topic = make_topic()
    produce(topic, numbered(0, 80)[0])
    sink = make_sink(topic, flush_size="5", tasks_max="4")

    report = sink.run()

    assert (report.tasks, report.notes) == (1, ())

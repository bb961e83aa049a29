"""What the next run does after a crash at each step, and what it does when the store has changed meanwhile."""

import json
from dataclasses import replace

import pytest

from airflow_connect.runtime import crash_points
from tests.support.copies.s3 import InProcessEngine, numbered
from tests.support.kafka_data import delete_records
from tests.support.steps import Crashed, HookedEngine


@pytest.fixture
def sink(make_topic, produce, make_sink):
    """A connector with 30 records in 3 partitions to copy into 9 files."""
    topic = make_topic(partitions=3)
    produce(topic, numbered(0, 30, 3)[0])
    return make_sink(topic, flush_size="4")


def crash(sink, steps, point, skip=0, **overrides):
    """A run that dies at `point`."""
    steps.crash(point, skip)
    with pytest.raises(Crashed):
        sink.try_run(**overrides)


BEFORE_MANIFEST = [
    crash_points.FENCED,
    crash_points.RECOVERED,
    crash_points.PLANNED,
    crash_points.BEGUN,
    crash_points.TASK_READING,
    crash_points.TASK_STAGED,
    crash_points.COPIED,
    crash_points.AUDITED,
]


@pytest.mark.parametrize("point", BEFORE_MANIFEST)
def test_crash_before_the_manifest_leaves_nothing_visible_and_is_copied_again(sink, steps, produce, point):
    crash(sink, steps, point)
    visible = sink.keys()
    produce(sink.topic, numbered(30, 36, 3)[0])

    report = sink.run()

    assert visible == []
    assert (report.records, report.recovered_run_id) == (36, "")
    sink.assert_exactly_once(numbered(0, 36)[1])
    assert sink.run().status == "empty"


@pytest.mark.parametrize(
    ("point", "skip"),
    [
        (crash_points.MANIFEST_WRITTEN, 0),
        *((crash_points.PUBLISHING, n) for n in (0, 4, 8)),
        (crash_points.PUBLISHED, 0),
    ],
)
def test_crash_between_manifest_and_commit_is_rolled_forward_before_planning(sink, steps, produce, point, skip):
    crash(sink, steps, point, skip)
    visible = sink.identities()
    manifest = sink.view().manifest
    produce(sink.topic, numbered(30, 36, 3)[0])

    report = sink.run()

    assert report.records == 6
    assert report.recovered_run_id == manifest.run_id
    assert any(manifest.run_id in warning for warning in sink.warnings())
    assert visible.items() <= sink.identities().items()
    assert sink.view().manifest is None
    assert sink.history() == sorted([manifest.run_id, report.run_id])
    sink.assert_exactly_once(numbered(0, 36)[1])


def test_crash_after_the_commit_leaves_nothing_to_do(sink, steps):
    crash(sink, steps, crash_points.COMMITTED)

    assert sink.run().status == "empty"
    sink.assert_exactly_once(numbered(0, 30)[1])


def test_crash_while_recovering_is_recovered_again(sink, steps):
    crash(sink, steps, crash_points.MANIFEST_WRITTEN)
    crash(sink, steps, crash_points.PUBLISHING, 3)
    crash(sink, steps, crash_points.PUBLISHED)
    crash(sink, steps, crash_points.RECOVERED)

    assert sink.run().status == "empty"
    sink.assert_exactly_once(numbered(0, 30)[1])


def abort_uploads(sink, keys):
    """What a bucket's lifecycle rule for incomplete uploads does."""
    client = sink.s3.client()
    for upload in client.list_multipart_uploads(Bucket=sink.bucket)["Uploads"]:
        if upload["Key"] in keys:
            client.abort_multipart_upload(Bucket=sink.bucket, Key=upload["Key"], UploadId=upload["UploadId"])


def test_uploads_that_a_lifecycle_rule_aborted_are_copied_again_under_the_same_keys(sink, steps, produce):
    crash(sink, steps, crash_points.MANIFEST_WRITTEN)
    keys = sink.uploads()
    abort_uploads(sink, keys[1:7])
    produce(sink.topic, numbered(30, 36, 3)[0])

    report = sink.run()

    assert set(keys) <= set(sink.keys())
    assert report.records == 6
    assert any("copying them again" in warning for warning in sink.warnings())
    sink.assert_exactly_once(numbered(0, 36)[1])


def test_recopy_keeps_the_layout_of_the_manifest_when_the_configuration_has_changed(sink, steps):
    crash(sink, steps, crash_points.MANIFEST_WRITTEN)
    keys = sink.uploads()
    abort_uploads(sink, keys[:5])

    sink.run(flush_size="1000", topics_dir="elsewhere", run_max_bytes="10")

    assert sink.keys() == keys
    sink.assert_exactly_once(numbered(0, 30)[1])


def test_recopy_after_flush_on_end_false_restores_only_what_the_manifest_holds(sink, steps):
    crash(sink, steps, crash_points.MANIFEST_WRITTEN, flush_on_end="false")
    keys = sink.uploads()
    abort_uploads(sink, keys)

    sink.run(flush_on_end="false")

    assert sink.keys() == keys
    assert sink.offsets() == {0: 8, 1: 8, 2: 8}
    sink.run()
    sink.assert_exactly_once(numbered(0, 30)[1])


@pytest.mark.parametrize("point", [crash_points.TASK_READING, crash_points.TASK_STAGED, crash_points.PUBLISHING])
def test_crash_while_lost_files_are_copied_again_is_recovered(sink, steps, point):
    crash(sink, steps, crash_points.MANIFEST_WRITTEN)
    abort_uploads(sink, sink.uploads())
    crash(sink, steps, point)

    assert sink.run().status == "empty"
    sink.assert_exactly_once(numbered(0, 30)[1])


def test_lost_uploads_whose_records_are_gone_are_named_and_leave_the_manifest_open(sink, steps, kafka):
    crash(sink, steps, crash_points.MANIFEST_WRITTEN)
    keys = sink.uploads()
    abort_uploads(sink, keys[:1])
    delete_records(kafka.bootstrap, sink.topic, 0, 5)

    first, second = sink.try_run(), sink.try_run()

    for report in (first, second):
        assert report.status == "failed"
        assert report.error["type"] in ("StagedFileLostError", "OffsetError")
        assert sink.topic in report.error["message"]
    assert sink.view().manifest is not None
    assert sink.offsets() == {}
    assert sink.uploads() == []


def contents(sink):
    """The numbers in each visible object."""
    return {
        key: [json.loads(line)["n"] for line in sink.body(key).decode().split()] for key in sorted(sink.identities())
    }


def test_lost_uploads_are_written_as_far_as_kafka_holds_them_and_the_rest_is_given_up(sink, steps, kafka, produce):
    crash(sink, steps, crash_points.MANIFEST_WRITTEN)
    abort_uploads(sink, sink.uploads()[1:])
    delete_records(kafka.bootstrap, sink.topic, 1, 5)
    produce(sink.topic, numbered(30, 36, 3)[0])
    assert sink.try_run().error["configPath"] == "offsets.out.of.range"
    assert list(contents(sink).values()) == [[0, 3, 6, 9]]

    crash(sink, steps, crash_points.PUBLISHED, offsets_out_of_range="nearest")
    report = sink.run()

    assert sink.view().manifest is None
    assert report.records == 6
    found = contents(sink)
    # Partition 1 has every third number: its offsets 0 to 4 are gone.
    assert sorted(n for every in found.values() for n in every) == [n for n in range(36) if n not in (1, 4, 7, 10, 13)]
    assert any(key.endswith("+1+0000000005.json") for key in found)
    (note,) = [note for note in report.notes if "given up" in note]
    assert f"2 staged files of {sink.topic}-1" in note
    assert "5 records between offsets 0 and 8 are given up" in note
    assert "+1+0000000000.json, offsets [0, 4): 4 of 4 records" in note
    assert "+1+0000000004.json, offsets [4, 8): 1 of 4 records, the others are in" in note
    assert sink.run().status == "empty"


def test_lost_uploads_in_several_directories_come_back_without_a_duplicate(
    make_topic, produce, make_sink, steps, kafka
):
    topic = make_topic()
    types = [{"field": "n", "type": "int32"}, {"field": "kind", "type": "string"}]
    schema = {"type": "struct", "fields": types}
    values = [{"schema": schema, "payload": {"n": n, "kind": "ab"[n % 2]}} for n in range(12)]
    produce(topic, [(0, None, json.dumps(value)) for value in values])
    sink = make_sink(topic, flush_size="6", partitioner_class="FieldPartitioner", partition_field_name="kind")
    sink.config |= {"value.converter": "JsonConverter", "value.converter.schemas.enable": "true"}
    crash(sink, steps, crash_points.MANIFEST_WRITTEN)
    abort_uploads(sink, sink.uploads()[1:])  # kind=a/+0 stays: 0, 2, 4.
    delete_records(kafka.bootstrap, topic, 0, 2)

    report = sink.run(offsets_out_of_range="earliest")

    assert {tuple(sorted({n % 2 for n in every})) for every in contents(sink).values()} == {(0,), (1,)}
    assert sorted(n for every in contents(sink).values() for n in every) == [n for n in range(12) if n != 1]
    assert sink.history() == [report.recovered_run_id]
    (note,) = [note for note in report.notes if "given up" in note]
    assert "1 record between offsets 1 and 6 is given up" in note


def test_object_of_somebody_else_is_named_and_nothing_is_overwritten(sink, steps):
    crash(sink, steps, crash_points.MANIFEST_WRITTEN)
    key = sink.uploads()[4]
    client = sink.s3.client()
    client.put_object(Bucket=sink.bucket, Key=key, Body=b"precious\n")

    refused = sink.try_run()
    stands = sink.body(key)
    client.delete_object(Bucket=sink.bucket, Key=key)
    after = sink.run()

    assert refused.error["type"] == "PublishConflictError"
    assert key in refused.error["message"]
    assert stands == b"precious\n"
    assert after.status == "empty"
    sink.assert_exactly_once(numbered(0, 30)[1])


def test_object_of_somebody_else_is_overwritten_without_conditional_writes(sink, steps):
    crash(sink, steps, crash_points.MANIFEST_WRITTEN)
    key = sink.uploads()[4]
    sink.s3.client().put_object(Bucket=sink.bucket, Key=key, Body=b"precious\n")
    assert sink.try_run().error["type"] == "PublishConflictError"

    sink.run(enable_conditional_writes="false")

    sink.assert_exactly_once(numbered(0, 30)[1])


def test_manifest_is_published_where_it_was_staged_when_the_bucket_has_changed(sink, steps, produce, s3):
    crash(sink, steps, crash_points.MANIFEST_WRITTEN)
    other = replace(sink, bucket=f"{sink.bucket}-new", engine=InProcessEngine(), events=[])
    s3.client().create_bucket(Bucket=other.bucket)
    produce(sink.topic, numbered(30, 36, 3)[0])

    report = other.run()

    assert report.records == 6
    sink.assert_exactly_once(numbered(0, 30)[1])
    other.assert_exactly_once(numbered(30, 36)[1])


def test_manifest_of_many_kafka_records_is_written_read_and_recovered(make_topic, produce, make_sink, steps):
    """Many files under long names, and dead letters: the manifest holds them until the commit."""
    topic = make_topic()
    rows, values = numbered(0, 100)
    produce(topic, rows)
    produce(topic, [(0, None, f"broken {n} " + "x" * 700) for n in range(1500)])
    sink = make_sink(
        topic,
        flush_size="1",
        topics_dir="/".join("d" * 200 for _ in range(4)),
        errors_tolerance="all",
        errors_deadletterqueue_topic_name=f"{topic}-dlq",
        errors_deadletterqueue_topic_replication_factor="1",
    )

    crash(sink, steps, crash_points.MANIFEST_WRITTEN)
    size = len(json.dumps(sink.view().manifest.to_json()))
    report = sink.run()

    assert size > 1_048_588
    assert len(sink.keys()) == 100
    assert report.status == "empty"
    sink.assert_exactly_once(values)


def test_failed_audit_publishes_nothing_and_the_next_run_copies_all(sink):
    def lose_a_record(report):
        first, *rest = report.partitions
        return replace(report, partitions=(replace(first, written=first.written - 1), *rest))

    honest, sink.engine = sink.engine, HookedEngine(tamper=lose_a_record)
    report = sink.try_run()
    visible = sink.keys()
    sink.engine = honest
    sink.run()

    assert report.error["type"] == "AuditError"
    assert visible == []
    sink.assert_exactly_once(numbered(0, 30)[1])

"""`delivery.guarantee`: what a crash between publishing and committing may cost, and what it may not."""

import json
from collections import Counter

import pytest

from airflow_connect.errors import AccessError
from airflow_connect.runtime import crash_points
from tests.support.copies.local import local_sink
from tests.support.copies.s3 import numbered
from tests.support.steps import Crashed


@pytest.fixture
def make(make_topic, produce, make_sink):
    """Make a connector with 30 records in 3 partitions and a guarantee."""

    def make(guarantee):
        topic = make_topic(partitions=3)
        produce(topic, numbered(0, 30, 3)[0])
        return make_sink(topic, flush_size="4", delivery_guarantee=guarantee)

    return make


def crash(sink, steps, point, skip=0):
    """A run that dies at `point`."""
    steps.crash(point, skip)
    with pytest.raises(Crashed):
        sink.try_run()


def counts(sink):
    """How often each record is in the bucket."""
    return Counter(json.dumps(value) for value in sink.values())


@pytest.mark.parametrize("guarantee", ["at_least_once", "at_most_once"])
def test_without_a_crash_every_guarantee_copies_once_and_writes_no_manifest(make, guarantee):
    sink = make(guarantee)

    report = sink.run()

    assert report.delivery_guarantee == guarantee
    assert "manifest" not in report.phases_ms
    assert sink.offsets() == {0: 10, 1: 10, 2: 10}
    assert sink.run().status == "empty"
    sink.assert_exactly_once(numbered(0, 30)[1])


@pytest.mark.parametrize("point", [crash_points.COPIED, crash_points.PUBLISHING, crash_points.PUBLISHED])
def test_at_least_once_loses_nothing_when_it_crashes(make, steps, produce, point):
    sink = make("at_least_once")
    crash(sink, steps, point)
    produce(sink.topic, numbered(30, 36, 3)[0])

    sink.run()

    assert set(counts(sink)) == {json.dumps(v) for v in numbered(0, 36)[1]}
    assert sink.run().status == "empty"
    assert sink.uploads() == []


@pytest.mark.parametrize("point", [crash_points.COPIED, crash_points.COMMITTED, crash_points.PUBLISHING])
def test_at_most_once_repeats_nothing_when_it_crashes_and_leaves_no_upload(make, steps, produce, point):
    sink = make("at_most_once")
    crash(sink, steps, point)
    produce(sink.topic, numbered(30, 36, 3)[0])

    sink.run()

    assert set(counts(sink).values()) == {1}
    assert set(counts(sink)) >= {json.dumps(v) for v in numbered(30, 36)[1]}
    assert sink.run().status == "empty"
    assert sink.uploads() == []


def test_at_most_once_restores_an_upload_that_vanished_without_opening_a_manifest(make, steps):
    sink = make("at_most_once")

    def abort_all():
        client = sink.s3.client()
        for upload in client.list_multipart_uploads(Bucket=sink.bucket)["Uploads"]:
            client.abort_multipart_upload(Bucket=sink.bucket, Key=upload["Key"], UploadId=upload["UploadId"])

    steps.on(crash_points.COMMITTED, abort_all)
    sink.run()

    assert sink.view().manifest is None
    sink.assert_exactly_once(numbered(0, 30)[1])


def test_guarantee_that_was_changed_after_a_crash_still_rolls_the_manifest_forward(make, steps):
    sink = make("exactly_once")
    crash(sink, steps, crash_points.PUBLISHING, 4)

    report = sink.run(delivery_guarantee="at_most_once")

    assert report.status == "empty"
    sink.assert_exactly_once(numbered(0, 30)[1])


def test_at_most_once_names_the_run_whose_files_a_crash_has_kept_from_being_published(make, steps):
    sink = make("at_most_once")
    crash(sink, steps, crash_points.COMMITTED)
    given_up = len(sink.uploads())

    report = sink.run(delivery_guarantee="exactly_once")

    (note,) = report.notes
    assert f"{given_up} staged files were discarded. Their records are not in the target." in note
    assert note in sink.warnings()
    assert sink.history()[0] in note
    assert sink.run().notes == ()


def test_at_most_once_says_that_files_may_be_in_a_bucket_that_the_configuration_no_longer_names(
    make, steps, kafka, tmp_path
):
    sink = make("at_most_once")
    crash(sink, steps, crash_points.COMMITTED)
    moved = local_sink(kafka, tmp_path, sink.topic, flush_size="4")
    moved.name = sink.name

    (note,) = moved.run().notes

    assert "Whether it has published everything is unknown" in note
    assert sink.bucket in note


def test_at_most_once_that_cannot_publish_names_the_offsets_that_it_has_committed(make, steps):
    sink = make("at_most_once")

    def refuse():
        raise AccessError("The bucket is gone.", code="s3.no_bucket", suggestion="Create it.")

    steps.on(crash_points.PUBLISHED, refuse)
    report = sink.try_run()

    assert report.error["code"] == "s3.no_bucket"
    assert "the offsets were committed before" in report.error["message"]
    assert f"{sink.topic}-2@10" in report.error["message"]


def test_manifest_whose_store_the_new_configuration_cannot_reach_names_the_keys_that_were_changed(
    make, steps, kafka, tmp_path
):
    sink = make("exactly_once")
    crash(sink, steps, crash_points.MANIFEST_WRITTEN)
    moved = local_sink(kafka, tmp_path, sink.topic, flush_size="4")
    moved.name = sink.name

    report = moved.try_run()
    run_id = sink.view().manifest.run_id
    sink.run()

    assert report.error["code"] == "s3.no_credentials"
    assert f"Run {run_id} ended between manifest and commit and must be finished first" in report.error["message"]
    assert "connector.class" in report.error["message"]
    assert "restore the former configuration" in report.error["suggestion"]
    assert moved.run().status == "empty"
    sink.assert_exactly_once(numbered(0, 30)[1])

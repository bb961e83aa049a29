"""`delivery.guarantee`: what a crash between publishing and committing may cost, and what it may not."""

import json
from collections import Counter

import pytest

from airflow_connect.runtime import crash_points
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

"""Records for directories that were announced: written there, beside them, or to the dead letter queue."""

from __future__ import annotations

import pytest

from airflow_connect.runtime import crash_points
from tests.integration.complete_directories.conftest import files_below, hour, markers, minutes_below
from tests.support.steps import Crashed

QUEUE = {"errors_tolerance": "all", "errors_deadletterqueue_topic_replication_factor": "1"}


@pytest.fixture
def announced(hourly, write):
    """A sink whose hour 13 is complete."""

    def make(**config):
        sink = hourly(**config)
        write(sink, 0, 1, 61)
        assert [d["directory"] for d in sink.run().complete] == [hour(sink, 13)]
        return sink

    return make


def test_late_records_are_written_to_their_directory_as_usual(announced, write):
    sink = announced()
    write(sink, 0, 2, 62, 3)
    report = sink.run()
    assert (report.records, report.late, report.complete) == (3, 2, ())
    assert minutes_below(sink, hour(sink, 13)) == [1, 2, 3]


def test_late_records_go_beside_their_directory(announced, write):
    sink = announced(late_records="directory")
    write(sink, 0, 2, 62, 3)
    report = sink.run()
    assert (report.records, report.late) == (3, 2)
    assert minutes_below(sink, hour(sink, 13)) == [1]
    assert minutes_below(sink, f"topics/{sink.topic}/_late/year=2026/month=03/day=04/hour=13/") == [2, 3]
    assert minutes_below(sink, hour(sink, 14)) == [61, 62]


def test_late_records_go_to_the_dead_letter_queue(announced, write):
    sink = announced(late_records="dlq", errors_deadletterqueue_topic_name="late-letters", **QUEUE)
    write(sink, 0, 2, 62, 3)
    report = sink.run()
    assert (report.records, report.dead_lettered, report.late) == (1, 2, 2)
    assert minutes_below(sink, hour(sink, 13)) == [1]


def test_what_is_late_is_frozen_when_lost_files_are_copied_again(announced, write, steps):
    """The manifest's own run completes hour 14; copying its files again must not take their records for late."""
    sink = announced(late_records="directory")
    write(sink, 0, 2, 62, 130)
    steps.crash(crash_points.MANIFEST_WRITTEN)
    with pytest.raises(Crashed):
        sink.try_run()
    keys = sink.uploads()
    client = sink.s3.client()
    for upload in client.list_multipart_uploads(Bucket=sink.bucket)["Uploads"]:
        client.abort_multipart_upload(Bucket=sink.bucket, Key=upload["Key"], UploadId=upload["UploadId"])

    report = sink.run()

    assert set(keys) <= set(files_below(sink, "topics/"))
    assert [d["directory"] for d in report.complete] == [hour(sink, 14)]
    assert minutes_below(sink, hour(sink, 14)) == [61, 62]
    assert minutes_below(sink, f"topics/{sink.topic}/_late/") == [2]
    assert markers(sink) == [hour(sink, 13), hour(sink, 14)]


def test_leftovers_of_late_records_are_swept(announced, write, steps):
    sink = announced(late_records="directory")
    write(sink, 0, 2, 62)
    steps.crash(crash_points.COPIED)
    with pytest.raises(Crashed):
        sink.try_run()
    assert any("/_late/" in key for key in sink.uploads())

    report = sink.run()

    assert report.swept == 2
    assert sink.uploads() == []
    assert minutes_below(sink, f"topics/{sink.topic}/_late/") == [2]


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"late_records": "dlq"}, "late.records"),
        ({"late_records": "directory", "complete_marker": ""}, "late.records"),
        ({"partitioner_class": "io.confluent.connect.storage.partitioner.DefaultPartitioner"}, "complete.marker"),
        ({"complete_marker": "a/b"}, "complete.marker"),
        ({"late_records_directory": ""}, "late.records.directory"),
        (
            {
                "partitioner_class": "io.confluent.connect.storage.partitioner.TimeBasedPartitioner",
                "partition_duration_ms": "3600000",
                "path_format": "'hour'=HH",
            },
            "path.format",
        ),
    ],
    ids=["queue", "nothing-is-late", "no-time", "file-name", "blank", "names-come-again"],
)
def test_configuration_that_cannot_mean_anything_is_refused_with_its_key(hourly, write, config, key):
    report = hourly(**config).try_run()
    assert report.status == "failed"
    assert report.error["configPath"] == key
    assert report.error["suggestion"]

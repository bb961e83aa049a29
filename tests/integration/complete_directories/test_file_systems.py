"""Markers and late records of the sinks that write into file systems: HDFS, and a directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_connect.runtime import crash_points
from tests.integration.complete_directories.conftest import HOURLY, hour, markers, minutes_below
from tests.support.copies.hdfs import hdfs_sink
from tests.support.copies.local import local_sink
from tests.support.copies.s3 import Sink
from tests.support.steps import Crashed


@pytest.fixture(params=["hdfs", "local"])
def sink(request: pytest.FixtureRequest, kafka, make_topic, tmp_path: Path) -> Sink:
    """A sink with directories of hours."""
    topic = make_topic()
    if request.param == "local":
        made: Sink = local_sink(kafka, tmp_path, topic)
        made.config = dict(HOURLY)
        return made
    made = hdfs_sink(kafka, request.getfixturevalue("hdfs"), topic)
    made.config = dict(HOURLY)
    return made


def test_complete_directory_gets_its_marker_once_also_after_a_crash(sink: Sink, write, steps) -> None:
    write(sink, 0, 1, 2, 61)
    steps.crash(crash_points.PUBLISHED)
    with pytest.raises(Crashed):
        sink.try_run()
    assert markers(sink) == [hour(sink, 13)]

    report = sink.run()

    assert [(d["directory"], d["records"], d["files"]) for d in report.complete] == [(hour(sink, 13), 2, 1)]
    assert markers(sink) == [hour(sink, 13)]
    assert minutes_below(sink, "topics/") == [1, 2, 61]


def test_late_records_lie_beside_their_directory_and_their_leftovers_are_swept(sink: Sink, write, steps) -> None:
    write(sink, 0, 1, 61)
    sink.run()
    write(sink, 0, 2, 62)
    steps.crash(crash_points.COPIED)
    with pytest.raises(Crashed):
        sink.try_run(late_records="directory")

    report = sink.run(late_records="directory")

    assert (report.late, report.swept) == (1, 2)
    assert minutes_below(sink, hour(sink, 13)) == [1]
    assert minutes_below(sink, f"topics/{sink.topic}/_late/year=2026/month=03/day=04/hour=13/") == [2]

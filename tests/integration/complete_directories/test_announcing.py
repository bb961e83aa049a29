"""Directories are announced once, when every partition has passed their end, and their files are visible."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from airflow_connect.runtime import crash_points
from airflow_connect.runtime.driver.entry import run_connector
from airflow_connect.runtime.driver.sink import run as driver_run
from tests.integration.complete_directories.conftest import HOUR_MS, T13, files_below, hour, markers, minutes_below
from tests.support.steps import Crashed
from tests.support.waiting import wait_until


def announced(report):
    """Directories of a report, with their numbers of records and files."""
    return [(d["directory"], d["records"], d["files"]) for d in report.complete]


def test_hour_is_complete_when_every_partition_has_passed_it(hourly, write):
    sink = hourly(2)
    write(sink, 0, 1, 59, 61)
    write(sink, 1, 2, 58)
    first = sink.run()
    assert (announced(first), markers(sink)) == ([], [])

    write(sink, 1, 60)
    second = sink.run()

    assert announced(second) == [(hour(sink, 13), 4, 2)]
    (directory,) = second.complete
    assert (directory["topic"], directory["start_ms"], directory["end_ms"]) == (sink.topic, T13, T13 + HOUR_MS)
    assert directory["size_bytes"] == sum(len(sink.body(key)) for key in files_below(sink, hour(sink, 13)))
    assert markers(sink) == [hour(sink, 13)]
    assert minutes_below(sink, hour(sink, 13)) == [1, 2, 58, 59]
    assert sink.view().state.kept["time"]["boundaries"] == {sink.topic: T13 + HOUR_MS}


def test_directory_is_announced_once_and_one_without_records_never(hourly, write):
    sink = hourly()
    write(sink, 0, 1, 200, 201)
    first = sink.run()
    write(sink, 0, 2, 202, 260)
    second = sink.run()

    assert announced(first) == [(hour(sink, 13), 1, 1)]
    assert announced(second) == [(hour(sink, 16), 3, 2)]
    assert second.late == 1
    assert markers(sink) == [hour(sink, 13), hour(sink, 16)]


def test_delay_holds_a_directory_back(hourly, write):
    sink = hourly(complete_delay_ms="600000")
    write(sink, 0, 1, 69.9)
    assert sink.run().complete == ()
    write(sink, 0, 2, 70)
    report = sink.run()
    assert announced(report) == [(hour(sink, 13), 2, 2)]
    assert report.late == 0


def test_record_from_the_future_says_nothing_about_what_is_to_come(hourly, produce):
    sink = hourly(timestamp_extractor="RecordField", timestamp_field="at")
    century = 100 * 365 * 24 * HOUR_MS
    produce(sink.topic, [(0, None, json.dumps({"minute": 1, "at": at})) for at in (T13, T13 + century)])
    assert sink.run().complete == ()
    produce(sink.topic, [(0, None, json.dumps({"minute": 61, "at": T13 + HOUR_MS}))])
    assert announced(sink.run()) == [(hour(sink, 13), 1, 1)]


def test_idle_partition_counts_as_passed_when_it_was_read_to_its_end(hourly, write):
    sink = hourly(2)
    write(sink, 0, 1, 61)
    assert sink.run().complete == ()

    report = sink.run(complete_idle_ms="60000")

    assert report.status == "empty"
    assert [d["directory"] for d in report.complete] == [hour(sink, 13), hour(sink, 14)]
    assert markers(sink) == [hour(sink, 13), hour(sink, 14)]
    assert sink.run(complete_idle_ms="60000").complete == ()
    assert sink.view().manifest is None
    assert len(sink.history()) == 2


def test_partition_that_a_limit_cut_short_is_not_idle(hourly, write):
    sink = hourly(2, complete_idle_ms="60000")
    write(sink, 0, *range(1, 50))
    write(sink, 1, 1)
    assert sink.run(run_max_records="10").complete == ()
    assert [d["directory"] for d in sink.run().complete] == [hour(sink, 13)]


def test_partition_with_an_open_transaction_is_not_idle(hourly, write, produce):
    sink = hourly(complete_idle_ms="60000")
    write(sink, 0, 1)
    produce.transaction(sink.topic, [(0, None, '{"minute": 2}', T13 + 120_000)], "open")
    report = sink.run()
    assert (report.records, report.complete) == (1, ())


def test_partition_that_is_added_later_holds_back_what_is_not_announced(hourly, write, kafka):
    sink = hourly()
    write(sink, 0, 1, 61)
    assert announced(sink.run()) == [(hour(sink, 13), 1, 1)]
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_partitions([NewPartitions(sink.topic, 2)])[sink.topic].result(10)
    wait_until(lambda: len(admin.list_topics(sink.topic, timeout=5).topics[sink.topic].partitions) == 2, "2 partitions")

    write(sink, 0, 121)
    assert sink.run().complete == ()
    write(sink, 1, 120)
    assert announced(sink.run()) == [(hour(sink, 14), 1, 1)]


def test_merged_topics_are_complete_together(hourly, write, make_topic):
    sink = hourly(
        transforms="r",
        transforms_r_type="org.apache.kafka.connect.transforms.RegexRouter",
        transforms_r_regex=".*",
        transforms_r_replacement="all",
    )
    other = make_topic()
    topics = f"{sink.topic},{other}"
    write(sink, 0, 1, 61)
    write(sink, 0, 2, topic=other)
    assert sink.run(topics=topics).complete == ()
    write(sink, 0, 62, topic=other)

    report = sink.run(topics=topics)

    assert announced(report) == [(hour(sink, 13, "all"), 2, 2)]
    assert markers(sink) == [hour(sink, 13, "all")]


def test_records_that_are_left_for_the_next_run_hold_their_hour_back(hourly, write):
    sink = hourly(flush_on_end="false", flush_size="3")
    write(sink, 0, 1, 2, 61, 3, 62)
    first = sink.run()
    assert (first.records, first.left, first.complete) == (3, 2, ())
    write(sink, 0, 63)
    second = sink.run()
    assert announced(second) == [(hour(sink, 13), 3, 2)]
    assert second.late == 0


def test_wall_clock_directories_are_complete_when_the_clock_has_passed_them(hourly, write, monkeypatch):
    sink = hourly(timestamp_extractor="Wallclock")
    write(sink, 0, 1, 2)
    monkeypatch.setattr(driver_run, "now_ms", lambda: T13 + 5 * 60_000)
    assert sink.run().complete == ()
    monkeypatch.setattr(driver_run, "now_ms", lambda: T13 + HOUR_MS)
    report = sink.run()
    assert (report.status, announced(report)) == ("empty", [(hour(sink, 13), 2, 1)])


def test_day_in_a_zone_ends_when_it_ends_there(hourly, write):
    sink = hourly(
        partitioner_class="io.confluent.connect.storage.partitioner.DailyPartitioner", timezone="America/New_York"
    )
    write(sink, 0, 1, 60 * 15.9)
    assert sink.run().complete == ()
    write(sink, 0, 60 * 16)
    (directory,) = sink.run().complete
    assert directory["directory"] == f"topics/{sink.topic}/year=2026/month=03/day=04"
    assert directory["end_ms"] - directory["start_ms"] == 24 * HOUR_MS


def test_directories_are_found_without_a_marker_too(hourly, write):
    sink = hourly(complete_directories="true", complete_marker="")
    write(sink, 0, 1, 61)
    assert announced(sink.run()) == [(hour(sink, 13), 1, 1)]
    assert markers(sink) == []


def test_nothing_is_asked_without_the_keys(hourly, write):
    sink = hourly(complete_marker="")
    write(sink, 0, 1, 61)
    assert sink.run().complete == ()
    assert sink.view().state.kept == {}


@pytest.mark.parametrize(
    ("point", "skip"), [(crash_points.MANIFEST_WRITTEN, 0), (crash_points.PUBLISHING, 1), (crash_points.PUBLISHED, 0)]
)
def test_crash_between_manifest_and_commit_announces_the_same_directories(hourly, write, steps, point, skip):
    sink = hourly()
    write(sink, 0, 1, 59, 61)
    steps.crash(point, skip)
    with pytest.raises(Crashed):
        sink.try_run()
    marked = markers(sink)
    write(sink, 0, 2, 62)

    report = sink.run()

    assert marked == ([hour(sink, 13)] if point == crash_points.PUBLISHED else [])
    assert announced(report) == [(hour(sink, 13), 2, 1)]
    assert report.late == 1
    assert markers(sink) == [hour(sink, 13)]
    assert sink.run().complete == ()


@pytest.mark.parametrize("point", [crash_points.MANIFEST_WRITTEN, crash_points.PUBLISHED])
def test_crash_while_an_empty_run_announces_is_rolled_forward(hourly, write, steps, point):
    sink = hourly()
    write(sink, 0, 1)
    sink.run()
    steps.crash(point)
    with pytest.raises(Crashed):
        sink.try_run(complete_idle_ms="60000")

    report = sink.run()

    assert (report.status, announced(report)) == ("empty", [(hour(sink, 13), 1, 1)])
    assert markers(sink) == [hour(sink, 13)]


def test_next_try_of_an_airflow_task_that_died_after_its_commit_announces_again(hourly, write, steps):
    sink = hourly()
    write(sink, 0, 1, 61)
    origin = {"dag_id": "d", "dag_run_id": "r1", "task_id": "t", "map_index": "-1", "try_number": "1"}

    def tried(**changes):
        spec = replace(sink.spec(), origin={**origin, **changes})
        return [d["directory"] for d in run_connector(spec, sink.events.append, sink.engine).complete]

    steps.crash(crash_points.COMMITTED)
    with pytest.raises(Crashed):
        tried()

    assert tried(try_number="2") == [hour(sink, 13)]
    assert tried(dag_run_id="r2") == []
    assert sink.run().complete == ()
    write(sink, 0, 62, 121)
    assert tried(dag_run_id="r2", try_number="3") == [hour(sink, 14)]


def test_failed_run_announces_nothing(hourly, write, steps):
    sink = hourly()
    write(sink, 0, 1, 61)
    steps.crash(crash_points.AUDITED)
    with pytest.raises(Crashed):
        sink.try_run()
    assert markers(sink) == []
    assert announced(sink.run()) == [(hour(sink, 13), 1, 1)]


def test_offsets_that_were_set_back_announce_nothing_again(hourly, write):
    sink = hourly(enable_conditional_writes="false")
    write(sink, 0, 1, 61)
    sink.run()
    sink.set_offsets({0: 0})
    report = sink.run(delivery_guarantee="at_least_once")
    assert (report.records, report.late, report.complete) == (2, 1, ())

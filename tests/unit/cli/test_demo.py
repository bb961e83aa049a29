"""The parts of the demo that need no server."""

from __future__ import annotations

import json

from airflow_connect.cli.demo.bucket import CountedObject, directories
from airflow_connect.cli.demo.meetups import MINUTES, PARTITIONS, rsvps
from airflow_connect.cli.demo.stage import CONNECTOR_FILE, dags_folder

NOW_MS = 1_790_000_000_000


def test_rsvps_are_the_same_every_time() -> None:
    assert list(rsvps(50, NOW_MS)) == list(rsvps(50, NOW_MS))


def test_rsvps_spread_over_all_partitions_and_minutes_in_order() -> None:
    records = list(rsvps(2000, NOW_MS))
    times = [record.timestamp_ms for record in records]
    assert times == sorted(times)
    assert {record.partition for record in records} == set(range(PARTITIONS))
    assert len({time // 60_000 for time in times}) == MINUTES
    assert len({time // 3_600_000 for time in times}) == 2


def test_rsvp_looks_like_one() -> None:
    record = next(rsvps(1, NOW_MS))
    value = json.loads(record.value)
    assert set(value) == {"rsvp_id", "mtime", "response", "guests", "member", "event", "group"}
    assert record.key.decode() == str(value["group"]["group_id"])
    assert value["mtime"] == record.timestamp_ms


def test_directories_sum_up_their_objects() -> None:
    objects = [CountedObject("a/x", 1, 10), CountedObject("a/y", 2, 20), CountedObject("b/z", 3, 30)]
    assert directories(objects) == [("a", 2, 3, 30), ("b", 1, 3, 30)]


def test_dags_are_found() -> None:
    assert (dags_folder() / CONNECTOR_FILE).is_file()

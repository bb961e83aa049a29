"""When directories of time are over, against the partitioner itself: in and around every change of the clocks."""

from __future__ import annotations

import random
from datetime import datetime

import numpy as np
import pytest

from airflow_connect.errors import ConfigError
from airflow_connect.layout.late_records import LateRecords
from airflow_connect.layout.partitioners import TimeBasedPartitioner
from airflow_connect.layout.time.time_zones import DAY_MS, HOUR_MS, MINUTE_MS
from airflow_connect.layout.time_grid import NEVER_MS, TimeGrid
from airflow_connect.layout.timestamp_extractors import RecordTimestampExtractor

HOURS, HALVES, DAYS = (HOUR_MS, "YYYY/MM/dd/HH"), (30 * MINUTE_MS, "YYYY-MM-dd-HH-mm"), (DAY_MS, "YYYY/MM/dd")
DAYS_OF_HOURS, ODD, WEEKS = (HOUR_MS, "YYYY/MM/dd"), (7 * HOUR_MS, "YYYY/MM/dd/HH"), (HOUR_MS, "xxxx/ww")


def partitioner(duration_ms: int, path: str, zone: str) -> TimeBasedPartitioner:
    return TimeBasedPartitioner.from_texts(duration_ms, path, "en", zone, RecordTimestampExtractor())


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


@pytest.mark.parametrize(
    ("zone", "day"),
    [
        ("UTC", "2026-03-04"),
        ("UTC", "1969-12-31"),
        ("Europe/Berlin", "2023-03-25"),
        ("Europe/Berlin", "2023-10-28"),
        ("America/Sao_Paulo", "2018-11-03"),
        ("Australia/Lord_Howe", "2024-04-06"),
        ("Pacific/Apia", "2011-12-29"),
        ("+05:30", "2024-02-29"),
    ],
)
@pytest.mark.parametrize("layout", [HOURS, HALVES, DAYS, DAYS_OF_HOURS, ODD, WEEKS], ids=lambda layout: layout[1])
def test_bounds_are_the_first_and_last_instants_of_a_directory(zone: str, day: str, layout: tuple[int, str]) -> None:
    made, chance = partitioner(*layout, zone), random.Random(day)
    grid, start = TimeGrid(made), ms(f"{day}T00:00:00+00:00")
    for _ in range(8):
        time_ms = start + chance.randrange(3 * DAY_MS)
        name = made.directory_of_timestamp(time_ms)
        first, end = grid.bounds_ms(time_ms)
        assert grid.directory(time_ms) == name
        assert first <= time_ms < end
        assert made.directory_of_timestamp(first) == made.directory_of_timestamp(end - 1) == name
        for step in range(0, 2 * HOUR_MS, 5 * MINUTE_MS):
            assert made.directory_of_timestamp(end + step) != name
            assert made.directory_of_timestamp(first - 1 - step) != name
        around = [time_ms + chance.randrange(-2 * layout[0] - 3 * HOUR_MS, 3 * HOUR_MS) for _ in range(20)]
        expected = [grid.bounds_ms(other)[1] <= time_ms for other in around]
        last = grid.last_over(time_ms)
        assert [grid.is_over(other, last) for other in around] == expected
        assert grid.are_over(np.array(around), last).tolist() == expected


def test_day_of_the_change_to_winter_time_has_25_hours() -> None:
    grid = TimeGrid(partitioner(*DAYS, "Europe/Berlin"))
    first, end = grid.bounds_ms(ms("2023-10-29T12:00:00+01:00"))
    assert end - first == 25 * HOUR_MS


def test_hour_that_comes_twice_is_one_directory() -> None:
    grid = TimeGrid(partitioner(*HOURS, "Europe/Berlin"))
    bounds = grid.bounds_ms(ms("2023-10-29T02:30:00+02:00"))
    assert bounds == grid.bounds_ms(ms("2023-10-29T02:30:00+01:00"))
    assert bounds == (ms("2023-10-29T02:00:00+02:00"), ms("2023-10-29T03:00:00+01:00"))


def test_halves_of_an_hour_that_comes_twice_end_in_its_second_half() -> None:
    """At the boundary the first half is over, also for times that come before some of the second one."""
    grid = TimeGrid(partitioner(*HALVES, "Europe/Berlin"))
    last = grid.last_over(ms("2023-10-29T02:30:00+01:00"))
    assert grid.is_over(ms("2023-10-29T02:10:00+01:00"), last)
    assert not grid.is_over(ms("2023-10-29T02:35:00+02:00"), last)


@pytest.mark.parametrize(
    "path", ["'hour'=HH", "YYYY/HH", "MM/dd", "YYYY/dd", "YYYY/MM/dd/hh", "E", "ww", "YYYY/MM/dd/mm"]
)
def test_names_that_come_again_are_refused(path: str) -> None:
    with pytest.raises(ConfigError, match="repeat:") as caught:
        TimeGrid(partitioner(15 * MINUTE_MS, path, "UTC"))
    assert caught.value.config_path == "path.format"


@pytest.mark.parametrize("path", ["YYYY", "YYYY/MM", "YYYY/DDD", "xxxx/ww/e", "YYYY/MM/dd/hha", "yy-MM"])
def test_names_that_do_not_come_again_are_taken(path: str) -> None:
    first, end = TimeGrid(partitioner(15 * MINUTE_MS, path, "Europe/Berlin")).bounds_ms(ms("2024-02-29T11:00:00+00:00"))
    assert 0 < end - first <= 366 * DAY_MS


def test_directory_of_all_times_never_ends() -> None:
    assert TimeGrid(partitioner(HOUR_MS, "'all'", "UTC")).bounds_ms(0) == (-NEVER_MS, NEVER_MS)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_late_times_are_the_same_one_by_one_and_in_columns(zone: str) -> None:
    boundary, chance = ms("2023-10-29T02:30:00+01:00"), random.Random(zone)
    late = LateRecords(TimeGrid(partitioner(*HALVES, zone)), {"t": boundary})
    times = [boundary + chance.randrange(-4 * HOUR_MS, HOUR_MS) for _ in range(500)]
    times += [-(2**63), 2**63 - 1, 0, -1, boundary, boundary - 1]
    found = late.are_late("t", np.array(times))
    assert found is not None
    assert found.tolist() == [late.is_late("t", time_ms) for time_ms in times]
    assert late.are_late("u", np.array(times)) is None
    assert not late.is_late("u", 0)

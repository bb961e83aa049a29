"""Local times around the changes of clocks: a run that stops between two of them loses and repeats no row."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.copies.jdbc_source import Copies
from tests.support.servers.databases import Database

pytestmark = pytest.mark.integration
BOTH_PATHS = pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
SPRING = ["01:59:00", "01:59:59.5", "02:00:00", "02:10:00", "02:50:00", "03:00:00", "03:05:00", "03:10:00", "03:50:00"]
AUTUMN = ["01:59:00", "02:00:00", "02:30:00", "02:59:59.5", "03:00:00", "03:30:00"]
CHANGES = {"2025-03-30": SPRING, "2025-10-26": AUTUMN}


@pytest.fixture(params=["postgresql", "mariadb", "sqlite"])
def database(request: pytest.FixtureRequest) -> Database:
    made: Database = request.getfixturevalue(f"{request.param}_database")
    return made


def filled(database: Database, day: str) -> list[int]:
    kind = {"postgresql": "timestamp", "mysql": "datetime(6)", "sqlite": "timestamp"}[database.dialect]
    database.execute(f"CREATE TABLE orders (id int NOT NULL PRIMARY KEY, changed {kind} NOT NULL)")
    rows = ", ".join(f"({n}, '{day} {time}')" for n, time in enumerate(CHANGES[day]))
    database.execute(f"INSERT INTO orders VALUES {rows}")
    return list(range(len(CHANGES[day])))


def copies(database: Database, mode: str, columnar: bool, **more: str) -> Copies:
    config = {
        "connection.url": database.jdbc_url, "mode": mode, "timestamp.column.name": "changed",
        "db.timezone": "Europe/Berlin", "batch.max.rows": "1", **more,
    }  # fmt: skip
    if "+" in mode:
        config["incrementing.column.name"] = "id"
    return Copies(config, columnar=columnar)


def stopped_often(runs: Copies) -> list[int]:
    """The rows of runs that stop after each batch, until one finds nothing."""
    found: list[int] = []
    while ids := runs.run(batches=1).ids():
        found += ids
        assert len(found) < 50
    return found


@BOTH_PATHS
@pytest.mark.parametrize("day", CHANGES)
@pytest.mark.parametrize("mode", ["timestamp", "timestamp+incrementing"])
def test_run_that_stops_at_a_change_of_clocks_continues_exactly(
    database: Database, mode: str, day: str, columnar: bool
) -> None:
    expected = filled(database, day)
    assert stopped_often(copies(database, mode, columnar)) == expected


@BOTH_PATHS
def test_limit_never_cuts_a_group_at_a_change_of_clocks(database: Database, columnar: bool) -> None:
    expected = filled(database, "2025-03-30")
    runs = copies(database, "timestamp", columnar, **{"query.suffix": "LIMIT 1"})
    found: list[Any] = []
    while ids := runs.run().ids():
        found += ids
        assert len(found) < 50
    assert found == expected


def test_look_back_at_a_change_of_clocks_repeats_and_loses_nothing(database: Database) -> None:
    expected = filled(database, "2025-03-30")
    for window in ("1000", "7200000"):
        for stop in range(1, len(expected)):
            runs = copies(database, "timestamp", False, **{"timestamp.lookback.ms": window})
            assert runs.run(batches=stop).ids() + runs.run().ids() == expected, (window, stop)
            assert runs.run().ids() == []


def test_offset_has_the_instant_for_others_and_the_time_of_the_column(database: Database) -> None:
    filled(database, "2025-03-30")
    runs = copies(database, "timestamp+incrementing", False)
    runs.run(batches=5)
    [(_, offset)] = runs.committed()
    instant = datetime(2025, 3, 30, 1, 50, tzinfo=UTC).timestamp()
    local = datetime(2025, 3, 30, 2, 50, tzinfo=UTC).timestamp()
    assert offset == {
        "incrementing": 4, "timestamp": instant * 1000, "timestamp_nanos": 0, "timestamp_local_us": local * 1_000_000,
        "timestamp_before_us": local * 1_000_000 - 3_000_000_000 - 3_600_000_000 - 1,
    }  # fmt: skip


def test_ranges_of_a_first_load_that_stop_at_a_change_of_clocks_continue_exactly(postgresql_database: Database) -> None:
    expected = filled(postgresql_database, "2025-03-30")
    for stop in range(1, 9):
        runs = copies(postgresql_database, "timestamp", False, **{"table.split.min.rows": "3"})
        found: list[int] = []
        for _ in range(12):
            found += runs.run(tasks=3, batches=stop).ids()
        assert sorted(found) == expected, stop


def test_offset_that_was_set_by_hand_counts_although_a_skipped_time_is_left_in_it(database: Database) -> None:
    filled(database, "2025-03-30")
    runs = copies(database, "timestamp", False)
    runs.run(batches=5)
    [(partition, offset)] = runs.committed()
    moment = datetime(2025, 3, 30, 1, 5, tzinfo=UTC).timestamp()  # 03:05 in Berlin
    runs.commit(partition, {**offset, "timestamp": int(moment * 1000)})
    assert stopped_often(runs) == [7, 8]

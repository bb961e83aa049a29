"""A part of a backup: between offsets, and from one point in time to another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_connect.runtime.driver.kinds import kind_of
from tests.support.copies.backups import TIME_MS, record, write_file
from tests.support.copies.restore import LOCAL_SOURCE, Restore, stored

pytestmark = pytest.mark.integration


@pytest.fixture
def restore(kafka: Any, tmp_path: Path, unique_name: str) -> Restore:
    """A restore of a directory: two partitions, each with the offsets 0 to 29 in three files."""
    for partition in range(2):
        for first in (0, 10, 20):
            records = [
                record(n, b"%d" % n, partition=partition, timestamp=TIME_MS + n * 1000)
                for n in range(first, first + 10)
            ]
            write_file(tmp_path / "topics", records)
    config = {"connector.class": LOCAL_SOURCE, "store.url": str(tmp_path), "format.class": "ParquetFormat"}
    return Restore(kafka.bootstrap, "t", unique_name, config)


def numbers(restore: Restore, partition: int) -> list[int]:
    found = stored(restore.bootstrap, restore.target)
    return [int(one.value or b"-1") for one in found if one.partition == partition]


@pytest.mark.parametrize("columnar", [True, False])
def test_partitions_are_restored_between_offsets(restore: Restore, *, columnar: bool) -> None:
    between = {"restore.from.offsets": "t:0:7", "restore.until.offsets": "t:0:23,t:1:10"}
    report = restore.run(columnar=columnar, **between)
    assert numbers(restore, 0) == list(range(7, 23))
    assert numbers(restore, 1) == list(range(10))
    assert "t-0 of the backup begins at offset 0, and is restored from 7 on." in report.notes
    assert restore.try_run(columnar=columnar, **between).status == "empty"
    # Without the end it goes on; the beginning has no effect any more, and this is told.
    report = restore.run(columnar=columnar, **{"restore.from.offsets": "t:0:25"})
    assert numbers(restore, 0) == list(range(7, 30))
    assert numbers(restore, 1) == list(range(30))
    assert "t-0 was restored up to offset 23, so restore.from.offsets has no effect." in report.notes


@pytest.mark.parametrize("columnar", [True, False])
def test_partitions_are_restored_between_times(restore: Restore, *, columnar: bool) -> None:
    times = {"restore.from.timestamp": str(TIME_MS + 12_000), "restore.until.timestamp": str(TIME_MS + 25_000)}
    report = restore.run(columnar=columnar, **times, **{"run.max.records": "5"})
    restore.run(columnar=columnar, **times)
    for partition in range(2):
        assert numbers(restore, partition) == list(range(12, 25))
    told = "was restored from offset 12 on, whose record is the first one at restore.from.timestamp or later."
    assert [note for note in report.notes if told in note and note.endswith("Not restored: 12 records before it.")]
    assert not [note for note in report.notes if "no file of the backup holds" in note]


def test_time_after_all_records_restores_nothing_and_says_so(restore: Restore) -> None:
    report = restore.run(**{"restore.from.timestamp": str(TIME_MS + 60_000)})
    assert report.records == 0
    for partition in range(2):
        told = f"t-{partition} of the backup has no record at restore.from.timestamp or later: 30 records are"
        assert [note for note in report.notes if note.startswith(told)]
    restore.run()
    assert numbers(restore, 0) == list(range(30))


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"restore.from.offsets": "t:7:1"}, "names partitions that are not restored: t-7"),
        ({"restore.until.offsets": "other:0:1"}, "names partitions that are not restored: other-0"),
        ({"restore.from.offsets": "t:0:9", "restore.until.offsets": "t:0:9"}, "would begin at offset 9 and end at 9"),
        ({"restore.from.offsets": "t:0"}, "t:0 is not topic:partition:offset"),
        ({"restore.from.offsets": "t:0:1,t:0:2"}, "t-0 has two offsets"),
        ({"restore.from.timestamp": "9", "restore.until.timestamp": "8"}, "is not later than restore.from.timestamp"),
    ],
)
def test_ranges_that_cannot_be_meant_are_refused(restore: Restore, keys: dict[str, str], told: str) -> None:
    report = restore.try_run(**keys)
    assert report.status == "failed" and report.error is not None
    assert told in str(report.error["message"])


def test_old_records_that_are_not_restored_do_not_count_for_the_retention(restore: Restore, make_topic: Any) -> None:
    restore.target = make_topic(2, {"retention.ms": "3600000"})
    report = restore.try_run(**{"restore.from.offsets": "t:0:20,t:1:20"})
    assert report.error is not None and f"has the timestamp {TIME_MS + 20_000}" in str(report.error["message"])


def test_plan_knows_the_ranges(restore: Restore) -> None:
    spec = restore.spec(**{"restore.from.offsets": "t:0:25", "restore.until.offsets": "t:1:10"})
    notes = kind_of(spec).plan().notes
    assert any(note.startswith("To restore: 4 files of 2 partitions") for note in notes), notes


@pytest.mark.parametrize("columnar", [True, False])
def test_ranges_that_the_backup_does_not_have_are_told(restore: Restore, *, columnar: bool) -> None:
    # Partition 0 ends before the range, and so does partition 1.
    report = restore.run(columnar=columnar, **{"restore.from.offsets": "t:0:50", "restore.until.offsets": "t:1:50"})
    assert numbers(restore, 0) == []
    assert "t-0 of the backup has no record at restore.from.offsets or later, so none is restored." in report.notes
    assert "t-1 of the backup has no record in [30, 50), up to restore.until.offsets." in report.notes
    report = restore.run(columnar=columnar, **{"restore.until.timestamp": str(TIME_MS + 60_000)})
    told = (
        "t-0 of the backup has no record at restore.until.timestamp or later, and was restored to its end at offset 30."
    )
    assert told in report.notes


def test_beginnings_without_effect_are_told(restore: Restore, tmp_path: Path) -> None:
    write_file(tmp_path / "topics", [record(7, partition=2)])
    report = restore.run(**{"run.max.records": "1", "tasks.max": "1", "restore.until.offsets": "t:2:7"})
    assert "t-2 of the backup begins at offset 7, so nothing of it is before restore.until.offsets." in report.notes
    report = restore.run(**{"run.max.records": "1", "restore.from.offsets": "t:0:0,t:2:3"})
    assert "t-0 was restored up to offset 1, so restore.from.offsets has no effect." in report.notes
    assert "t-2 of the backup begins at offset 7, and not before." in report.notes
    report = restore.run(**{"restore.from.timestamp": str(TIME_MS + 12_000)})
    told = "restore.from.timestamp has no effect for partitions that were begun before: "
    assert [note for note in report.notes if note.startswith(told) and "t-0" in note]

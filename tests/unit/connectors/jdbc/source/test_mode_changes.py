"""The mode of a connector is changed: rows are sent again with a word, and never missed."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_connect.errors import OffsetError
from tests.support.copies.jdbc_source import Copies
from tests.support.servers.databases import Database, sqlite_in

BOTH = "timestamp+incrementing"


@pytest.fixture
def database(tmp_path: Path) -> Database:
    made = sqlite_in(tmp_path)
    rows = ", ".join(f"({(n + 4) % 12}, '2026-01-01 00:00:{n // 4:02d}')" for n in range(12))
    made.execute("CREATE TABLE t (id int NOT NULL, changed timestamp NOT NULL)", f"INSERT INTO t VALUES {rows}")
    return made


def copies(database: Database, mode: str, before: Copies | None = None, **more: str) -> Copies:
    config = {"connection.url": database.jdbc_url, "mode": mode, "batch.max.rows": "3", **more}
    if "timestamp" in mode:
        config["timestamp.column.name"] = "changed"
    if "incrementing" in mode:
        config["incrementing.column.name"] = "id"
    made = Copies(config)
    if before is not None:
        made.stored = before.stored
    return made


@pytest.mark.parametrize("mode", ["timestamp", "incrementing"])
@pytest.mark.parametrize("more", [{}, {"query.suffix": "LIMIT 5"}], ids=["killed", "limited"])
def test_offset_that_may_be_between_rows_of_the_new_mode_is_refused(
    database: Database, mode: str, more: dict[str, str]
) -> None:
    before = copies(database, BOTH, **more)
    assert len(before.run(batches=None if more else 2).ids()) < 12
    with pytest.raises(
        OffsetError, match=f"as mode timestamp.incrementing writes it, but the mode is {mode}"
    ) as caught:
        copies(database, mode, before).run()
    # What the error says to do.
    assert "copy all rows, then remove the key" in caught.value.suggestion
    while before.run().ids():
        pass
    ((partition, offset),) = before.committed()
    before.commit(partition, {key: offset[key] for key in offset if key.startswith(mode)})
    notes = copies(database, mode, before).run().notes
    # Row 0 was copied, but in mode incrementing it might have come later.
    assert [note for note in notes if "Whether earlier runs have copied it is not known" not in note] == []
    assert len(notes) == (1 if mode == "incrementing" else 0)


def test_rows_of_the_last_timestamp_are_sent_again(database: Database) -> None:
    before = copies(database, "timestamp")
    assert before.run(batches=1).ids() == [4, 5, 6, 7]
    run = copies(database, BOTH, before).run()
    assert run.ids() == [4, 5, 6, 7, 8, 9, 10, 11, 0, 1, 2, 3]
    (note,) = run.notes
    assert "a timestamp but no number, as mode timestamp writes it: rows with this timestamp are copied again" in note
    assert copies(database, BOTH, before).run().notes == []


@pytest.mark.parametrize(
    ("first", "second", "has"),
    [
        ("bulk", "incrementing", "neither a timestamp nor a number"),
        ("incrementing", "timestamp", "a number"),
        ("incrementing", BOTH, "a number"),
        ("timestamp", "incrementing", "a timestamp"),
    ],
)
def test_rows_that_are_copied_again_are_named(database: Database, first: str, second: str, has: str) -> None:
    before = copies(database, first)
    before.run()
    run = copies(database, second, before).run()
    assert len(run.ids()) == 12
    assert any(f"has {has}, so it is of another mode than {second}: all rows are copied" in n for n in run.notes)
    assert not any("of another mode" in note for note in copies(database, second, before).run().notes)


def test_connector_that_begins_at_the_end_says_nothing(database: Database) -> None:
    runs = copies(database, BOTH, **{"timestamp.initial": "-1"})
    assert runs.run().records == [] and len(runs.committed()) == 1
    assert runs.run().notes == []

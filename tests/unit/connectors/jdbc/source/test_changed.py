"""`bulk.changed.only` on a real SQLite file: which ranges of a table a run sends again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.connectors.jdbc.source.connector import JdbcSourceConnector
from airflow_connect.connectors.jdbc.source.read import changed, sent_ranges
from airflow_connect.connectors.jdbc.source.read.form import Form
from airflow_connect.errors import ConfigError, DataError, OffsetError
from tests.support.copies.jdbc_source import Copies
from tests.support.servers.databases import Database, sqlite_in
from tests.support.session.searching import examples

CONVERTERS = {"key.converter": "JsonConverter", "value.converter": "JsonConverter"}
RANGES = {"protocol": "1", "table": "orders", "ranges": "hashes"}


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return made_in(tmp_path)


def made_in(folder: Path) -> Database:
    database = sqlite_in(folder)
    database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, name TEXT)")
    return database


@pytest.fixture(autouse=True)
def _small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changed, "RANGE_ROWS", 10)


def insert(database: Database, *numbers: int, name: str = "a") -> None:
    with database.connected() as connection:
        for number in numbers:
            connection.exec_driver_sql("INSERT INTO orders VALUES (?, ?)", (number, name))


def copies(database: Database, columnar: bool = False, **more: str) -> Copies:
    config = {"connection.url": database.jdbc_url, "mode": "bulk", "bulk.changed.only": "true"}
    return Copies({**config, **{k.replace("_", "."): v for k, v in more.items()}}, columnar=columnar)


@pytest.mark.parametrize("columnar", [False, True])
@pytest.mark.parametrize("batch", ["3", "10", "1000"])
def test_only_changed_ranges_are_sent(database: Database, columnar: bool, batch: str) -> None:
    insert(database, *range(1, 36))
    runs = copies(database, columnar, batch_max_rows=batch)
    assert runs.run().ids() == list(range(1, 36))
    assert runs.run().ids() == []
    database.execute("UPDATE orders SET name = 'b' WHERE id = 12")
    assert runs.run().ids() == list(range(11, 21))
    assert runs.run().ids() == []
    assert len(changed.ranges_of(runs.offset(RANGES), "")) == 4


def test_new_rows_at_the_end_fill_the_last_range_first(database: Database) -> None:
    insert(database, *range(1, 14))
    runs = copies(database)
    runs.run()
    insert(database, 14)
    assert runs.run().ids() == [11, 12, 13, 14]
    insert(database, *range(15, 26))
    assert runs.run().ids() == list(range(11, 26))
    assert [one.last for one in changed.ranges_of(runs.offset(RANGES), "")] == [10, 20, 25]
    insert(database, 26)
    assert runs.run().ids() == list(range(21, 27))


def test_range_that_grows_is_cut(database: Database) -> None:
    insert(database, *range(0, 300, 10))
    runs = copies(database)
    runs.run()
    insert(database, *(n for n in range(90) if n % 10), name="new")
    assert runs.run().ids() == [*range(90), 90]
    kept = changed.ranges_of(runs.offset(RANGES), "")
    assert max(one.rows for one in kept) <= 20 and sum(one.rows for one in kept) == 30 + 81
    assert runs.run().ids() == []


def test_deletions_are_named_and_not_sent(database: Database) -> None:
    insert(database, *range(1, 31))
    runs = copies(database)
    runs.run()
    database.execute("DELETE FROM orders WHERE id IN (10, 11) OR id > 20")
    run = runs.run()
    assert run.ids() == [*range(1, 10), *range(12, 21)]
    assert " ".join(run.notes) == (
        "At least 12 rows of the table orders were deleted since the last run, in its ranges of id up to 10, up to 20,"
        " up to 30. Deletions are not sent."
    )
    again = runs.run()
    assert (again.ids(), again.notes) == ([], [])


def test_table_that_is_emptied_and_filled_again(database: Database) -> None:
    insert(database, *range(1, 21))
    runs = copies(database)
    runs.run()
    database.execute("DELETE FROM orders")
    emptied = runs.run()
    assert emptied.ids() == [] and "At least 20 rows" in emptied.notes[0]
    insert(database, 1)
    assert runs.run().ids() == [1]


@pytest.mark.parametrize("killed_after", [1, 2, 3, 4])
def test_run_that_dies_sends_every_change_again(database: Database, killed_after: int) -> None:
    insert(database, *range(1, 36))
    runs = copies(database)
    runs.run()
    database.execute("UPDATE orders SET name = 'b' WHERE id % 10 = 5")
    runs.run(batches=killed_after)
    sent = runs.run().ids()
    # All four ranges have a change, and the last range ends with the table.
    assert sent == list(range(1, 36))
    assert runs.run().ids() == []


def test_changed_columns_send_the_table_again(database: Database) -> None:
    insert(database, *range(1, 13))
    runs = copies(database)
    runs.run()
    database.execute("ALTER TABLE orders RENAME COLUMN name TO title")
    assert runs.run().ids() == list(range(1, 13))
    database.execute("ALTER TABLE orders ADD COLUMN more INTEGER")
    assert runs.run().ids() == list(range(1, 13))
    assert runs.run().ids() == []


@pytest.mark.parametrize("key", ["name TEXT PRIMARY KEY, id INTEGER", "id INTEGER, name TEXT",
                                 "id INTEGER, name TEXT, PRIMARY KEY (id, name)"])  # fmt: skip
def test_table_without_a_suitable_key_is_sent_as_a_whole(database: Database, key: str) -> None:
    database.execute("DROP TABLE orders", f"CREATE TABLE orders ({key})")
    database.execute("INSERT INTO orders (id, name) VALUES (1, 'a'), (2, 'b')")
    runs = copies(database)
    for _ in range(2):
        run = runs.run()
        assert sorted(run.ids()) == [1, 2]
        assert " ".join(run.notes) == (
            "All rows of the table orders are sent, because bulk.changed.only needs a primary key of one column with"
            " whole numbers."
        )


def test_table_that_vanishes_during_a_run_is_skipped(database: Database) -> None:
    insert(database, 1)
    database.execute("CREATE TABLE there (id INTEGER PRIMARY KEY)", "INSERT INTO there VALUES (2)")
    database.execute("CREATE TABLE vanishing (id INTEGER PRIMARY KEY)", "INSERT INTO vanishing VALUES (3)")

    def drop(done: int) -> None:
        if done == 2:
            database.execute("DROP TABLE vanishing")

    run = copies(database).run(meanwhile=drop)
    assert run.ids() == [1, 2] and run.notes == ["The table vanishing does not exist any more and is skipped."]


def test_key_that_is_no_number_is_named(database: Database) -> None:
    database.execute("DROP TABLE orders", "CREATE TABLE orders (id INT PRIMARY KEY NOT NULL, name TEXT)")
    database.execute("INSERT INTO orders VALUES ('x', 'a')")
    with pytest.raises(DataError, match="primary key id of the table orders has a value that is not a whole number"):
        copies(database).run()


def test_ranges_beyond_the_limit_are_always_sent(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changed, "MOST_RANGES", 2)
    insert(database, *range(1, 36))
    runs = copies(database)
    first = runs.run()
    assert first.ids() == list(range(1, 36))
    assert " ".join(first.notes) == (
        "The table orders has more than 2 ranges, for which there is no place in an offset: rows with id above 20 are"
        " sent by each run."
    )
    assert runs.run().ids() == list(range(21, 36))


def test_offset_of_the_largest_table_fits_into_a_record() -> None:
    kept = [changed.KeyRange(n, 20_000, bytes(16)) for n in range(changed.MOST_RANGES + 1)]
    offset = changed.ranges_offset(kept, Form("", ""))
    assert len(offset["hashes"]) < 600_000
    assert changed.ranges_of(offset, "") == kept[:-1]


@pytest.mark.parametrize("damaged", ["x", "AAAA", 7])
def test_damaged_ranges_are_refused(database: Database, damaged: object) -> None:
    insert(database, 1)
    runs = copies(database)
    runs.commit(RANGES, {"hashes": damaged})
    with pytest.raises(OffsetError, match=r"the table orders has ranges for bulk\.changed\.only that are damaged"):
        runs.run()
    partition = tuple(sorted(RANGES.items()))
    with pytest.raises(OffsetError, match="damaged"):
        JdbcSourceConnector().alter_offsets({}, {partition: {"hashes": damaged}})
    assert JdbcSourceConnector().alter_offsets({}, {partition: None})


@pytest.mark.parametrize("damaged", ["x", "AAAA", 7])
def test_damaged_marks_are_refused(database: Database, damaged: object) -> None:
    insert(database, 1)
    runs, marks = copies(database), {**RANGES, "ranges": "sent"}
    runs.commit(marks, {"sent": damaged})
    with pytest.raises(OffsetError, match=r"of the table orders with the ranges that were sent .* is damaged"):
        runs.run()
    with pytest.raises(OffsetError, match="damaged"):
        JdbcSourceConnector().alter_offsets({}, {tuple(sorted(marks.items())): {"sent": damaged}})


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"mode": "incrementing"}, "works only in mode bulk, not in incrementing"),
        ({"query": "SELECT 1 AS id"}, "needs tables with a primary key, which a query does not have"),
    ],
)
def test_other_modes_and_queries_are_refused(database: Database, more: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        copies(database, **more).run()


CHANGES = st.lists(
    st.tuples(st.sampled_from(["insert", "update", "delete"]), st.integers(-5, 60), st.integers(1, 12)), max_size=6
)


@settings(max_examples=examples(60), deadline=None)
@given(rounds=st.lists(CHANGES, min_size=1, max_size=5), batch=st.sampled_from(["1", "4", "1000"]))
def test_no_change_is_missed(tmp_path_factory: pytest.TempPathFactory, rounds: list[list[tuple[str, int, int]]],
                             batch: str) -> None:  # fmt: skip
    """Whatever happens to a table, a reader that takes what is sent has every row as it is."""
    database = made_in(tmp_path_factory.mktemp("changes"))
    runs, seen, value = copies(database, batch_max_rows=batch), {}, 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changed, "RANGE_ROWS", 3)
        for changes in rounds:
            with database.connected() as connection:
                for what, first, count in changes:
                    value += 1
                    for number in range(first, first + count):
                        if what == "insert":
                            sql = "INSERT OR IGNORE INTO orders VALUES (:id, :name)"
                        elif what == "update":
                            sql = "UPDATE orders SET name = :name WHERE id = :id"
                        else:
                            sql = "DELETE FROM orders WHERE id = :id AND :name <> ''"
                        connection.exec_driver_sql(sql, {"id": number, "name": str(value)})
            seen |= {row["id"]: row["name"] for row in runs.run().values}
            rows = dict(database.rows("SELECT id, name FROM orders"))
            assert {number: seen.get(number) for number in rows} == rows
            assert runs.run().records == []
            assert all(one.rows <= 6 for one in changed.ranges_of(runs.offset(RANGES), ""))


def altered(database: Database, runs: Copies, seen: dict[int, str], **how: Any) -> None:
    """A run, and what a reader of its topic has then."""
    seen |= {row["id"]: row["name"] for row in runs.run(**how).values}


SETS = st.tuples(st.integers(1, 30), st.integers(1, 8), st.sampled_from("ab"))


@settings(max_examples=examples(60), deadline=None)
@given(
    rounds=st.lists(st.tuples(st.lists(SETS, max_size=4), st.integers(1, 12) | st.none()), min_size=2, max_size=6),
    batch=st.sampled_from(["1", "4", "1000"]),
    ahead=st.sampled_from([1, 64]),
)
def test_no_change_is_missed_by_runs_that_die(
    tmp_path_factory: pytest.TempPathFactory,
    rounds: list[tuple[list[tuple[int, int, str]], int | None]],
    batch: str,
    ahead: int,
) -> None:
    """Rows change there and back, also when a run has sent what they were in between."""
    database = made_in(tmp_path_factory.mktemp("changes"))
    runs, seen = copies(database, batch_max_rows=batch), dict[int, str]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changed, "RANGE_ROWS", 3)
        patch.setattr(sent_ranges, "_MOST_AHEAD", ahead)
        for changes, dies_after in rounds:
            with database.connected() as connection:
                for first, count, name in changes:
                    for number in range(first, first + count):
                        sql = "INSERT INTO orders VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET name = excluded.name"
                        connection.exec_driver_sql(sql, (number, name))
            altered(database, runs, seen, batches=dies_after)
            if dies_after is None:
                assert seen == dict(database.rows("SELECT id, name FROM orders"))
        altered(database, runs, seen)
        assert seen == dict(database.rows("SELECT id, name FROM orders"))
        assert runs.run().records == []


@pytest.mark.parametrize("columnar", [False, True])
def test_row_that_changes_back_after_a_run_that_died_is_sent_again(database: Database, columnar: bool) -> None:
    """The hash of the last complete run fitted again, so the topic kept what the run had sent that died."""
    insert(database, *range(1, 36))
    runs, seen = copies(database, columnar), dict[int, str]()
    altered(database, runs, seen)
    database.execute("UPDATE orders SET name = 'b' WHERE id IN (5, 35)")
    altered(database, runs, seen, batches=2)  # The mark, and the first rows.
    assert (seen[5], seen[35]) == ("b", "a")
    database.execute("UPDATE orders SET name = 'a'")
    run = runs.run()
    assert run.ids() == list(range(1, 11)) and {row["name"] for row in run.values} == {"a"}
    assert runs.run().records == []


def test_mark_is_committed_before_the_rows_of_its_range(database: Database) -> None:
    """With at_least_once, offsets are written after rows: a run that dies in between would leave no mark."""
    insert(database, *range(1, 36))
    runs = copies(database)
    runs.run()
    database.execute("UPDATE orders SET name = 'b' WHERE id = 15")
    assert runs.run(batches=1).records == []
    assert sent_ranges.sent_of(runs.offset({**RANGES, "ranges": "sent"}), "") == [(20, 20)]
    assert runs.run().ids() == list(range(11, 21))
    assert sent_ranges.sent_of(runs.offset({**RANGES, "ranges": "sent"}), "") == []


@pytest.mark.parametrize("change", ["form", "key"])
def test_run_that_sends_all_rows_and_dies_leaves_no_hash_that_counts(database: Database, change: str) -> None:
    insert(database, 1)
    runs = copies(database, table_whitelist="orders")
    runs.run()
    database.execute("UPDATE orders SET name = 'b'")
    if change == "form":
        runs.config["timestamp.granularity"] = "micros_long"
    else:
        database.execute("ALTER TABLE orders RENAME TO before", "CREATE TABLE orders (id INTEGER, name TEXT)")
        database.execute("INSERT INTO orders SELECT * FROM before")
    assert [row["name"] for row in runs.run(batches=1).values] == ["b"]
    runs.config.pop("timestamp.granularity", None)
    if change == "key":
        database.execute("DROP TABLE orders", "ALTER TABLE before RENAME TO orders")
    database.execute("UPDATE orders SET name = 'a'")
    assert [row["name"] for row in runs.run().values] == ["a"]
    assert runs.run().records == []


def test_marks_are_few_if_all_ranges_have_changed(database: Database) -> None:
    insert(database, *range(1, 1001))
    runs = copies(database)
    runs.run()
    database.execute("UPDATE orders SET name = 'b'")
    written: list[int] = []
    runs.run(
        meanwhile=lambda _: written.append(len(sent_ranges.sent_of(runs.offset({**RANGES, "ranges": "sent"}), "")))
    )
    assert max(written) == 1 and len(written) < 112  # 100 batches of rows


def test_runs_that_send_all_rows_in_between_leave_no_hashes(database: Database) -> None:
    """The row goes back to what its hash stands for, but the topic has what was sent in between."""
    insert(database, 1)
    runs = copies(database)
    runs.run()
    database.execute("UPDATE orders SET name = 'b'")
    runs.config["bulk.changed.only"] = "false"
    assert [value["name"] for value in runs.run().values] == ["b"]
    database.execute("UPDATE orders SET name = 'a'")
    runs.config["bulk.changed.only"] = "true"
    assert [value["name"] for value in runs.run().values] == ["a"]


@pytest.mark.parametrize(
    "change",
    [
        {"topic.prefix": "other-"},
        {"db.timezone": "Europe/Berlin"},
        {"transforms": "mask", "transforms.mask.type": "org.apache.kafka.connect.transforms.MaskField$Value"},
        {"value.converter": "org.apache.kafka.connect.json.JsonConverter"},
        {"value.converter.decimal.format": "NUMERIC"},
        {"timestamp.granularity": "micros_long"},
    ],
    ids=str,
)
def test_rows_are_sent_again_if_they_become_something_else(database: Database, change: dict[str, str]) -> None:
    """A topic with another name had got the ranges that changed later, and nothing of the others."""
    insert(database, *range(1, 13))
    runs = copies(database)
    assert len(runs.run().records) == 12
    runs.config |= change
    run = runs.run()
    assert len(run.records) == 12
    (note,) = [note for note in run.notes if note.startswith("All rows of the table orders are sent")]
    assert "configuration" in note
    runs.config |= {"batch.max.rows": "7", "value.converter.basic.auth.user.info": "reader:new"}
    again = runs.run()
    assert again.records == [] and not any(note.startswith("All rows") for note in again.notes)


def test_what_becomes_of_zero_dates_is_part_of_the_form() -> None:
    null = Form.of({}, "null", {})
    assert null != Form.of({}, "round", {}) and null == Form.of({"tasks.max": "2"}, "null", {})


def test_rows_are_sent_again_if_a_converter_of_the_worker_was_changed(database: Database) -> None:
    """The usual place of converters: the topic kept rows in the old form beside those in the new one."""
    insert(database, *range(1, 13))
    runs = copies(database)
    runs.worker_converters = CONVERTERS
    assert len(runs.run().records) == 12
    for change in ({"value.converter.schemas.enable": "false"}, {"key.converter": "StringConverter"}):
        runs.worker_converters = {**runs.worker_converters, **change}
        changed_now = runs.run()
        assert len(changed_now.records) == 12
        (note,) = [note for note in changed_now.notes if note.startswith("All rows of the table orders are sent")]
        assert "a converter of the worker" in note
        assert runs.run().records == []
    runs.worker_converters = {**runs.worker_converters, "value.converter.basic.auth.user.info": "reader:new"}
    assert runs.run().records == []


def test_rows_are_not_sent_again_if_the_last_run_did_not_keep_the_converters_of_the_worker(database: Database) -> None:
    """It was one of an earlier release. This run keeps them."""
    insert(database, *range(1, 13))
    runs = copies(database)
    runs.run()
    kept = dict(runs.offset(RANGES) or {})
    assert kept.pop("worker_form")
    runs.commit(RANGES, kept)
    runs.worker_converters = CONVERTERS
    assert runs.run().records == []
    runs.worker_converters = {}
    assert len(runs.run().records) == 12

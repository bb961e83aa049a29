"""Whole runs with Kafka: what a limit ends, and what the configuration of the worker decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.documents.run import RunReport
from airflow_connect.runtime.spec import RunSpec
from airflow_connect.testing.runs import run_here
from tests.support.kafka_data import create_topic, delete_topic
from tests.support.servers.databases import Database

pytestmark = [pytest.mark.integration, pytest.mark.budget(20)]
Run = Callable[..., RunReport]


@pytest.fixture
def run(kafka: KafkaBroker, unique_name: str, sqlite_database: Database) -> Run:
    """One run of a source of the table `orders`, with `changed` keys of its worker; `_` in a key stands for `.`."""
    sqlite_database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    config = {
        "name": f"jdbc-{unique_name}",
        "connector.class": "JdbcSource",
        "connection.url": sqlite_database.jdbc_url,
        "mode": "incrementing",
        "incrementing.column.name": "id",
        "topic.prefix": f"{unique_name}-",
        "batch.max.rows": "2",
        "topic.creation.default.partitions": "1",
        "topic.creation.default.replication.factor": "1",
    }
    worker = {
        "bootstrap.servers": kafka.bootstrap,
        "group.id": "source-workers",
        **{f"{part}.converter": "org.apache.kafka.connect.json.JsonConverter" for part in ("key", "value")},
        **{f"{kind}.storage.replication.factor": "1" for kind in ("runs", "offset", "config")},
    }

    def once(changed: Mapping[str, str] = MappingProxyType({}), **more: str) -> RunReport:
        own = {**config, **{k.replace("_", "."): v for k, v in more.items()}}
        report, _ = run_here(RunSpec(own, {**worker, **changed}))
        assert report.status in ("done", "empty"), report.error
        return report

    return once


def test_gaps_of_a_run_that_a_limit_ends_are_those_of_the_next_run(run: Run, sqlite_database: Database) -> None:
    sqlite_database.execute("INSERT INTO orders VALUES (2), (4), (5), (7), (8)")
    assert run(run_max_records="2").records == 3  # A batch holds its last row back.
    sqlite_database.execute("INSERT INTO orders VALUES (1), (3)")
    report = run()
    (note,) = [note for note in report.notes if "that no row had when larger ones were copied" in note]
    assert report.records == 2 and note.startswith("2 rows of orders have a number in id") and "(1, 3)" in note
    sqlite_database.execute("INSERT INTO orders VALUES (6)")
    (note,) = [note for note in run().notes if "that no row had when larger ones were copied" in note]
    assert "(6)" in note
    assert run().notes == ()


@pytest.mark.parametrize("mode", ["incrementing", "bulk"])
def test_topic_that_was_created_again_is_named_unless_all_rows_are_copied(
    run: Run, sqlite_database: Database, kafka: KafkaBroker, unique_name: str, mode: str
) -> None:
    sqlite_database.execute("INSERT INTO orders VALUES (1), (2)")
    keys = {"mode": mode} if mode == "incrementing" else {"mode": mode, "incrementing.column.name": ""}
    assert run(**keys).records == 2
    delete_topic(kafka.bootstrap, f"{unique_name}-orders")
    create_topic(kafka.bootstrap, f"{unique_name}-orders", 1, {})
    report = run(**keys)
    named = [note for note in report.notes if note.startswith("1 topic was deleted and created again since the last")]
    assert (report.records, len(named)) == ((0, 1) if mode == "incrementing" else (2, 0))


@pytest.mark.parametrize("more", [{}, {"bulk.changed.only": "true"}, {"query": "SELECT * FROM orders"}])
def test_limit_after_which_mode_bulk_does_not_continue_is_named(
    run: Run, sqlite_database: Database, more: dict[str, str]
) -> None:
    """Each run was green, and copied the same first rows again."""
    sqlite_database.execute("CREATE TABLE others (id INTEGER PRIMARY KEY)", "INSERT INTO others VALUES (1)")
    sqlite_database.execute("INSERT INTO orders VALUES (1), (2), (3), (4), (5)")
    bulk = {"mode": "bulk", "incrementing.column.name": "", **more}
    named = "run.max.records ended the copy of " + ("the query" if "query" in more else "the table orders")
    for _ in range(2):
        report = run(**bulk, run_max_records="3")
        assert report.records == 4 and [note for note in report.notes if note.startswith(named)], report.notes
    assert not [note for note in run(**bulk, run_max_records="100").notes if "run.max.records" in note]


def test_limit_with_which_no_range_of_mode_bulk_is_ever_complete_is_named(run: Run, sqlite_database: Database) -> None:
    rows = ", ".join(f"({number})" for number in range(1, 41))
    sqlite_database.execute(f"INSERT INTO orders VALUES {rows}")
    bulk = {"mode": "bulk", "incrementing.column.name": "", "tasks.max": "2", "table.split.min.rows": "20"}
    ended = "run.max.records ended the run before"
    for limit, some in (("4", "any range"), ("30", "all ranges"), ("400", "")):
        notes = [note for note in run(**bulk, run_max_records=limit).notes if note.startswith(ended)]
        assert len(notes) == bool(some) and all(f"{some} of the table orders w" in note for note in notes)


def test_rows_that_were_compared_are_sent_again_if_the_worker_converts_otherwise(
    run: Run, sqlite_database: Database
) -> None:
    sqlite_database.execute("INSERT INTO orders VALUES (1), (2)")
    bulk = {"mode": "bulk", "incrementing.column.name": "", "bulk.changed.only": "true"}
    without = {"value.converter.schemas.enable": "false"}
    assert [run(changed, **bulk).records for changed in ({}, {}, without, without)] == [2, 0, 2, 0]


@pytest.mark.parametrize("tasks", ["1", "2"])
def test_next_run_begins_with_the_tables_that_a_limit_did_not_let_it_reach(
    run: Run, sqlite_database: Database, tasks: str
) -> None:
    """Each run began with the same table, which always had as many new rows as the limit: others were never copied."""
    sqlite_database.execute(*(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY)" for name in ("pages", "queues", "rules")))
    copied: Counter[str] = Counter()
    left = []
    for _ in range(4):
        for name in ("orders", "pages"):
            sqlite_database.execute(
                f"WITH RECURSIVE g(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < 20)"
                f" INSERT INTO {name} SELECT (SELECT coalesce(max(id), 0) FROM {name}) + n FROM g"
            )
        sqlite_database.execute("INSERT INTO queues DEFAULT VALUES", "INSERT INTO rules DEFAULT VALUES")
        report = run(run_max_records="6", tasks_max=tasks)
        assert report.source is not None
        copied.update({topic.rpartition("-")[2]: count for topic, count in report.source.topics.items()})
        left.append([note for note in report.notes if "before it had read anything of" in note])
    assert set(copied) == {"orders", "pages", "queues", "rules"}
    first = "pages, queues, rules, which have" if tasks == "1" else "pages, which has"
    assert f"of the table{'s' if tasks == '1' else ''} {first} new rows. The next run begins with" in left[0][0]
    assert "orders" not in left[0][0] and "orders" in left[1][0]


def test_ranges_of_a_large_table_get_their_turn(run: Run, sqlite_database: Database) -> None:
    """Only whole tables did: a table that is loaded in ranges waited as long as others had enough new rows."""
    sqlite_database.execute(*(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY)" for name in ("pages", "zones")))
    sqlite_database.execute(f"INSERT INTO zones VALUES {', '.join(f'({n})' for n in range(1, 61))}")
    copied: list[Mapping[str, int]] = []
    for _ in range(4):
        for name in ("orders", "pages"):
            sqlite_database.execute(
                f"WITH RECURSIVE g(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < 20)"
                f" INSERT INTO {name} SELECT (SELECT coalesce(max(id), 0) FROM {name}) + n FROM g"
            )
        report = run(run_max_records="6", tasks_max="2", table_split_min_rows="50")
        assert report.source is not None
        copied.append({topic.rpartition("-")[2]: count for topic, count in report.source.topics.items()})
        if copied[-1].get("zones"):
            assert not [note for note in report.notes if "anything of" in note and "zones" in note]
    assert [sorted(found) for found in copied] == [["orders", "pages"], ["zones"]] * 2


def test_table_with_no_limit_before_it_is_not_called_left(run: Run, sqlite_database: Database) -> None:
    sqlite_database.execute("CREATE TABLE pages (id INTEGER PRIMARY KEY)", "INSERT INTO pages VALUES (1)")
    sqlite_database.execute("INSERT INTO orders VALUES (1)")
    report = run(run_max_records="100")
    assert report.records == 2 and not [note for note in report.notes if "run.max.records" in note]

"""A run that fails after it has added a column: the next one says so, because the failed one could not."""

from __future__ import annotations

import json

import pytest

from tests.support.copies.jdbc_sink import JdbcSink, jdbc_sink

pytestmark = pytest.mark.integration


@pytest.fixture(params=["postgresql", "mariadb"])
def sink(request: pytest.FixtureRequest, kafka, make_topic) -> JdbcSink:
    return jdbc_sink(
        kafka, request.getfixturevalue(f"{request.param}_database"), make_topic(), auto_evolve="true",
        fields_whitelist="n,pad,more,other",
    )  # fmt: skip


def notes(report) -> list[str]:
    return [note for note in report.notes if "Rows that were written before have null there" in note]


def test_column_that_a_failed_run_has_added_is_named_by_the_next_one(sink, produce):
    def give(**value: object) -> None:
        produce(sink.topic, [(0, None, json.dumps(value))])

    give(n=1)
    assert notes(sink.run()) == []
    give(n=2, more="x")
    give(n=None, more="y")
    assert sink.try_run().status == "failed"
    sink.target.execute(f"ALTER TABLE {sink.table} ADD unused int")
    report = sink.run(errors_tolerance="all")
    (note,) = notes(report)
    assert f"added to the table {sink.bucket}, by auto.evolve in a run that failed, or by others: more, unused." in note
    give(n=4, other="z")
    (note,) = notes(sink.run(errors_tolerance="all"))
    assert note.startswith("auto.evolve has added")
    give(n=5, other="z")
    assert notes(sink.run(errors_tolerance="all")) == []


def test_table_that_a_failed_run_has_created_is_named_by_the_next_one(sink, produce):
    def give(*values: object) -> None:
        produce(sink.topic, [(0, None, json.dumps({"n": n})) for n in values])

    def created(report) -> list[str]:
        return [note for note in report.notes if "was missing and was created" in note]

    config = {"auto_create": "true", "pk_mode": "record_value", "pk_fields": "n"}
    give(1, 2)
    assert created(sink.run(**config)) == []
    sink.target.execute(f"DROP TABLE {sink.table}")
    give(3, None)
    for _ in range(2):
        assert sink.try_run(**config).status == "failed"
    (note,) = created(sink.run(errors_tolerance="all", **config))
    assert f"{sink.topic}-0 from offset 2 on" in note
    give(4)
    assert created(sink.run(**config)) == []
    sink.target.execute(f"DROP TABLE {sink.table}")
    give(5)
    (note,) = created(sink.run(**config))
    give(6)
    assert created(sink.run(**config)) == []
    assert sink.target.rows("SELECT COUNT(*) FROM airflow_connect_offsets WHERE kafka_partition = -2") == [(0,)]

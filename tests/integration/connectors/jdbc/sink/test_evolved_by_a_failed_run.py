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

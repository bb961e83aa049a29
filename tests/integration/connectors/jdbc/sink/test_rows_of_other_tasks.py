"""A task whose rows refer to rows of another task fails, and the other one writes its own: the next run succeeds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_connect.runtime.engine.in_process import InProcessEngine
from tests.support.copies.jdbc_sink import JdbcSink, jdbc_sink
from tests.support.servers.databases import Database

pytestmark = pytest.mark.integration


class Family:
    """Two topics whose tables refer to each other; the children are the larger topic, so their task comes first."""

    def __init__(self, kafka: Any, database: Database, topics: tuple[str, str], produce: Any) -> None:
        self.topics, self.database = topics, database
        parents, family = topics
        quote = "`" if database.dialect == "mysql" else '"'
        self.parents, self.children = (f"{quote}{topic}{quote}" for topic in topics)
        database.execute(
            f"CREATE TABLE {self.parents} (n BIGINT PRIMARY KEY)",
            f"CREATE TABLE {self.children} (n BIGINT PRIMARY KEY, parent BIGINT,"
            f" FOREIGN KEY (parent) REFERENCES {self.parents} (n))",
        )
        produce(family, [(0, None, json.dumps({"n": n, "parent": n % 5})) for n in range(20)])
        produce(parents, [(0, None, json.dumps({"n": n})) for n in range(5)])
        self.sink: JdbcSink = jdbc_sink(
            kafka, database, parents, topics=",".join(topics), **{"table.name.format": "${topic}"},
            fields_whitelist="n,parent",
        )  # fmt: skip

        self.sink.engine = InProcessEngine()

    def counts(self) -> tuple[int, int]:
        ((parents,),) = self.database.rows(f"SELECT COUNT(*) FROM {self.parents}")
        ((children,),) = self.database.rows(f"SELECT COUNT(*) FROM {self.children}")
        return parents, children


@pytest.fixture(params=["postgresql", "mariadb"])
def database(request: pytest.FixtureRequest) -> Database:
    made: Database = request.getfixturevalue(f"{request.param}_database")
    return made


def test_next_run_succeeds_because_the_other_task_has_written_its_rows(kafka, database, make_topic, produce):
    family = Family(kafka, database, (make_topic(), make_topic()), produce)
    failed = family.sink.try_run()
    assert failed.status == "failed"
    assert failed.error is not None
    assert failed.error["code"] == "database.constraint"
    assert "run again" in failed.error["suggestion"]
    assert family.counts() == (5, 0)
    assert family.sink.run().records == 20  # Those of the other task were written before.
    assert family.counts() == (5, 20)

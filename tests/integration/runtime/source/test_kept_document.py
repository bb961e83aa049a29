"""The document that a source keeps from run to run, in the state record of the connector."""

from __future__ import annotations

import json

from airflow_connect.runtime import crash_points
from airflow_connect.runtime.driver.kinds import kind_of
from airflow_connect.testing.topics import Topics
from tests.integration.runtime.source.conftest import Numbers
from tests.support.servers.databases import Database


def test_table_that_was_made_again_after_a_killed_run_is_noticed(
    numbers: Numbers, postgresql_database: Database
) -> None:
    make = ("CREATE TABLE orders (id int PRIMARY KEY)", "INSERT INTO orders VALUES (1), (2)")
    postgresql_database.execute(*make)
    numbers.config = {
        "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector", "mode": "incrementing",
        "connection.url": postgresql_database.jdbc_url, "incrementing.column.name": "id",
        "topic.prefix": f"{numbers.topic}-", "topic.creation.default.partitions": "1",
        "topic.creation.default.replication.factor": "1",
    }  # fmt: skip
    assert numbers.start(crash_points.SOURCE_RECONCILED).wait() is None
    postgresql_database.execute("DROP TABLE orders", *make, "INSERT INTO orders VALUES (3)")
    for _ in range(2):
        report = numbers.try_run()
        assert report.error is not None
        assert report.error["code"] == "database.recreated"
        assert "2 of its rows are at or below the offset" in report.error["message"]
    numbers.config["table.recreated"] = "continue"
    report = numbers.run()
    assert report.records == 1
    assert any("orders: 2 rows" in note for note in report.notes)
    del numbers.config["table.recreated"]
    assert numbers.run().status == "empty"
    read = Topics(numbers.bootstrap).read(f"{numbers.topic}-orders")
    assert [json.loads(m.value() or b"")["id"] for m in read] == [1, 2, 3]
    postgresql_database.execute("DROP TABLE orders", *make)
    numbers.config["table.recreated"] = "continue"
    plan = kind_of(numbers.spec()).plan()
    assert any("orders: 2 rows" in note for note in plan.notes)

"""Values that a source has changed because no field holds them: the report of the run has their number."""

from __future__ import annotations

import json
from pathlib import Path

from airflow_connect.testing.topics import Topics
from tests.integration.runtime.source.conftest import Numbers
from tests.support.servers.databases import sqlite_in


def test_report_has_the_number_of_values_that_were_written_as_null(numbers: Numbers, tmp_path: Path) -> None:
    database = sqlite_in(tmp_path)
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n DECIMAL(9,2))")
    database.execute("INSERT INTO t VALUES (1, 'NaN'), (2, 2), (3, 'Infinity')")
    prefix = f"{numbers.topic}-"
    numbers.config = {
        "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector", "mode": "incrementing",
        "connection.url": database.jdbc_url, "topic.prefix": prefix, "values.out.of.range": "null",
        "batch.max.rows": "1", "topic.creation.default.partitions": "1",
        "topic.creation.default.replication.factor": "1",
    }  # fmt: skip
    report = numbers.run()
    assert report.records == 3
    assert (
        "Values out of range in the column n (DECIMAL(9,2)) of the table t that were written as null"
        " (values.out.of.range): 2." in report.notes
    )
    written = [json.loads(m.value() or b"") for m in Topics(numbers.bootstrap).read(prefix + "t")]
    assert [value["n"] is None for value in written] == [True, False, True]

"""Many tables of one database, with one task: what a connection keeps of a table must not grow with their number."""

from __future__ import annotations

import pytest

from tests.support.copies.jdbc_source import Copies
from tests.support.servers.databases import Database
from tests.support.session.searching import IS_SOAK

pytestmark = pytest.mark.integration
TABLES = 2_000 if IS_SOAK else 40
TABLE = """
CREATE TABLE small_{0} (id int PRIMARY KEY, changed timestamptz NOT NULL);
INSERT INTO small_{0} VALUES ({0}, timestamptz '2026-01-01')
"""
MODE = {
    "mode": "timestamp+incrementing", "timestamp.column.name": "changed", "incrementing.column.name": "id",
    "tasks.max": "1",
}  # fmt: skip


@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
def test_every_table_is_copied_once_and_new_rows_of_some_are_found(postgresql_database: Database, columnar: bool):
    database = postgresql_database
    database.execute(*(TABLE.format(number) for number in range(TABLES)))
    runs = Copies({"connection.url": database.jdbc_url, **MODE}, columnar=columnar)

    assert sorted(runs.run().ids()) == list(range(TABLES))
    assert runs.run().ids() == []

    database.execute("INSERT INTO small_7 VALUES (-1, now() - interval '1 minute')")
    assert runs.run().ids() == [-1]

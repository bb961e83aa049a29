"""Tables of a catalog in which records name the tables, and other tables are there, too."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import ForbiddenError
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import LongType, NestedField

from airflow_connect.connectors.iceberg.maintenance import Keeping
from tests.unit.connectors.iceberg.lakes import Lake

NUMBERS = Schema(NestedField(1, "n", LongType(), required=False))
LATER_MS = 1 << 42


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Two runs, of which the second has only staged its file."""
    made = Lake(tmp_path / "lake")
    made.set(iceberg_tables=None, **{"iceberg_tables_dynamic-enabled": "true", "iceberg_tables_route-field": "to"})
    made.put([{"n": 1, "to": "a.b.t"}])
    made.put([{"n": 2, "to": "a.b.t"}], publishes=False)
    return made


def test_what_a_dead_run_has_left_in_a_nested_namespace_is_deleted(lake: Lake) -> None:
    publisher = lake.publisher()
    left = list(publisher.list_staged(["*#run-2"]))

    assert [one.token["table"] for one in left] == ["a.b.t"]
    assert publisher.abort(left) == 1
    assert list(publisher.list_staged(["*#run-2"])) == []


def test_snapshots_of_tables_in_nested_namespaces_expire(lake: Lake) -> None:
    (found,) = lake.publisher().expire(Keeping(LATER_MS, age_ms=0), dry_run=True)

    assert (found.table, found.snapshots) == ("a.b.t", 1)


def test_tables_of_others_that_cannot_be_written_or_loaded_are_no_obstacle(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lake.create(NUMBERS, "others.old", properties={"format-version": "1"})
    lake.create(NUMBERS, "others.secret")
    real = SqlCatalog.load_table

    def load(self: SqlCatalog, identifier: str) -> Table:
        if identifier == "others.secret":
            raise ForbiddenError("not yours")
        return real(self, identifier)

    monkeypatch.setattr(SqlCatalog, "load_table", load)
    publisher = lake.publisher()

    assert publisher.abort(publisher.list_staged(["*#run-2"])) == 1
    assert [one.table for one in publisher.expire(Keeping(LATER_MS, age_ms=0), dry_run=True)] == ["a.b.t"]
    assert "Table others.secret was left out, because it cannot be loaded: Access was denied" in caplog.text
    assert "others.old" not in caplog.text

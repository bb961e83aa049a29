"""The store that docs/how-to/write-a-store.md shows, under the conformance suite that it shows."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.testing import StoreConformance

pytestmark = pytest.mark.integration

EXAMPLE = Path(__file__).parents[3] / "examples" / "stores"


@pytest.fixture(scope="module", autouse=True)
def example_is_importable() -> Iterator[None]:
    """Also in the process that the suite kills."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(EXAMPLE), before)))
    sys.path.insert(0, str(EXAMPLE))
    yield
    sys.path.remove(str(EXAMPLE))
    sys.modules.pop("sqlite_store", None)
    if before is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = before


class TestSqliteStore(StoreConformance):
    # A row is written anew with every piece that is added to it.
    large_bytes = 4 << 20
    many_files = 50

    def open_store(self, target: Path) -> Any:
        from sqlite_store import SqliteStore

        return SqliteStore(str(target / "files.sqlite"))

    def visible(self, target: Path) -> dict[str, bytes]:
        if not (target / "files.sqlite").exists():
            return {}
        with closing(sqlite3.connect(target / "files.sqlite")) as database:
            query = "SELECT name, content FROM files WHERE name IS NOT NULL"
            return dict(database.execute(query).fetchall())

    def put_foreign(self, target: Path, key: str, data: bytes) -> None:
        with closing(sqlite3.connect(target / "files.sqlite")) as database, database:
            database.execute("INSERT OR REPLACE INTO files VALUES (?, ?, NULL, NULL)", (key, data))

    def unusable_stores(self, target: Path) -> Iterator[Any]:
        from sqlite_store import SqliteStore

        yield SqliteStore(str(target / "no such folder" / "files.sqlite"))

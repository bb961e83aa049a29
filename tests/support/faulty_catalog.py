"""A catalog whose commits go wrong in every way: requests and answers are lost, repeated, late, or others come first.

`faults` is the share of commits that are spoilt, from 0 to 1.
"""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    CommitStateUnknownException,
    ServerError,
    ServiceUnavailableError,
)
from pyiceberg.table import CommitTableResponse, Table

FOREIGN = -1
"""The number in rows that another writer appends."""
ERRORS = (
    BadRequestError,
    CommitFailedException,
    CommitStateUnknownException,
    ServerError,
    ServiceUnavailableError,
    OSError,
)
LONGEST_DELAY_S = 1.5


class FaultyCatalog(SqlCatalog):
    """A SQL catalog with faults."""

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        """Commit, or seem to."""
        if not any(type(update).__name__ == "AddSnapshotUpdate" for update in updates):
            return super().commit_table(table, requirements, updates)
        chance = random.SystemRandom()
        if chance.random() >= float(self.properties["faults"]):
            return super().commit_table(table, requirements, updates)
        fault = chance.choice([self._lose_request, self._lose_answer, self._repeat, self._delay, self._let_others])
        return fault(table, requirements, updates)

    def _lose_request(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        raise random.choice(ERRORS)("the request was lost")

    def _lose_answer(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        super().commit_table(table, requirements, updates)
        raise random.choice(ERRORS)("the answer was lost")

    def _repeat(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        super().commit_table(table, requirements, updates)
        return super().commit_table(table, requirements, updates)

    def _delay(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        def later() -> None:
            time.sleep(random.uniform(0, LONGEST_DELAY_S))
            try:
                SqlCatalog.commit_table(self, table, requirements, updates)
            except Exception as error:  # noqa: BLE001 (nobody waits for it: the request is late)
                print(f"late: {type(error).__name__}")

        threading.Thread(target=later, daemon=True).start()
        raise random.choice(ERRORS)("the request is late")

    def _let_others(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        """Another writer appends a row first, and removes old snapshots."""
        others = SqlCatalog(self.name, **{k: v for k, v in self.properties.items() if k != "py-catalog-impl"})
        theirs = others.load_table(table.name())
        columns = {field.name: [FOREIGN if field.name == "n" else None] for field in theirs.schema().fields}
        theirs.append(pa.Table.from_pydict(columns, theirs.schema().as_arrow()))
        if random.random() < 0.5:
            from datetime import UTC, datetime

            theirs.maintenance.expire_snapshots().older_than(datetime.now(UTC)).commit()
        others.close()
        return super().commit_table(table, requirements, updates)

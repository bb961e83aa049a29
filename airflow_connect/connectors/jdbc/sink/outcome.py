"""What the database did not write although it refused nothing: it is counted and named in the report.

PostgreSQL tells how many rows a statement has changed. A trigger, a rule or a policy may leave out a row without an
error, and an UPDATE may find none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_connect.converters import placeholders
from airflow_connect.databases.failures import Failure

if TYPE_CHECKING:
    from airflow_connect.api.record import SinkRecord


class RowRefusedError(Exception):
    """A row was not written, for a reason that the database does not call an error.

    Attributes:
        kind: of the reason.
    """

    def __init__(self, reason: str, kind: Failure = Failure.CONSTRAINT) -> None:
        """`reason`: the end of a sentence."""
        super().__init__(reason)
        self.kind = kind


SKIPPED = "it reported no error, but did not insert the row: a trigger or a rule of the table leaves it out"
ANOTHER_ROW = (
    "another row has the same value in another unique index of the table, and MySQL would change that row instead"
)


@dataclass(slots=True)
class Outcome:
    """Of the statements of a transaction.

    Attributes:
        unmatched: records whose UPDATE has found no row.
        several: table -> how many UPDATEs of one record have changed more than one row.
        skipped: table -> how many rows an upsert has neither inserted nor changed.
        undeleted: table -> how many deletes have found no row.
        deleted_several: table -> how many deletes of one record have deleted more than one row.
        without_key: table -> how many upserts have null in a column of the key.
        without_table: table -> how many deletes were about a table that does not exist.
        unavailable: table and field -> how many values are Debezium's placeholder.
    """

    unmatched: list[tuple[str, SinkRecord]] = field(default_factory=list)
    several: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    undeleted: Counter[str] = field(default_factory=Counter)
    deleted_several: Counter[str] = field(default_factory=Counter)
    without_key: Counter[str] = field(default_factory=Counter)
    without_table: Counter[str] = field(default_factory=Counter)
    unavailable: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add_unavailable(self, table: str, found: Counter[str]) -> None:
        """Count values of a table, by field, that are Debezium's placeholder."""
        self.unavailable.update({(table, name): count for name, count in found.items()})

    def add(self, other: Outcome) -> None:
        """Add what other statements did not write."""
        self.unmatched += other.unmatched
        self.several += other.several
        self.skipped += other.skipped
        self.undeleted += other.undeleted
        self.deleted_several += other.deleted_several
        self.without_key += other.without_key
        self.without_table += other.without_table
        self.unavailable += other.unavailable

    def sentences(self) -> Iterator[str]:
        """A note for each table."""
        for table in dict.fromkeys(table for table, _ in self.unavailable):
            of_table = {name: count for (of, name), count in self.unavailable.items() if of == table}
            yield placeholders.sentence(table, of_table)
        first: dict[str, SinkRecord] = {}
        for table, record in self.unmatched:
            first.setdefault(table, record)
        counts = Counter(table for table, _ in self.unmatched)
        for table, count in counts.items():
            yield (
                f"{_records(count)} NOT written, because insert.mode=update changed no row of {table}: there is none"
                f" with the key, or a trigger has left it as it is. The first is {first[table].where}. Such records"
                " count as filtered. insert.mode=upsert inserts missing rows."
            )
        for table, count in self.several.items():
            yield (
                f"{_records(count)} written to more than one row of {table} by insert.mode=update: pk.fields are no"
                " unique key of the table. Each of these rows has the values of the record now. If only one was meant,"
                " name the columns of a unique key in pk.fields."
            )
        for table, count in self.skipped.items():
            yield (
                f"{_records(count)} neither inserted into {table} nor used to change a row there, without an error of"
                " the database: a trigger leaves such rows out, or writes them elsewhere, or a constraint of SQLite is"
                " declared with ON CONFLICT IGNORE. They count as written."
            )
        for table, count in self.deleted_several.items():
            yield (
                f"{_records(count)} without value, and deleted more than one row of {table}: pk.fields are no unique"
                " key of the table. They count as written. If only one row was meant, name the columns of a unique key"
                " in pk.fields."
            )
        for table, count in self.undeleted.items():
            yield (
                f"{_records(count)} without value, and deleted no row of {table}: there is none with the key, or a"
                " trigger or a policy keeps it. They count as written."
            )
        for table, count in self.without_table.items():
            yield (
                f"{_records(count)} without value, and deleted no row of {table}, because the table did not exist. They"
                " count as written. The table is created by the first record with a value."
            )
        for table, count in self.without_key.items():
            yield (
                f"{_records(count)} written to {table} with null in a column of pk.fields: a unique index takes no two"
                " nulls for equal, unless it is declared with NULLS NOT DISTINCT, so each such record may have inserted"
                " a row instead of changing one."
            )


def _records(count: int) -> str:
    return "1 record was" if count == 1 else f"{count:,} records were"

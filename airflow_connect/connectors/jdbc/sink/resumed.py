"""What an earlier run, or another attempt of the task, has written of a partition, and the errant records in it.

Errant records are tried again: their dead letters died with who has reported them. But a later record of the same row
may have been written since, and an older one must not replace it. So an errant record waits until all records are seen
that are in the database already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from airflow_connect.connectors.jdbc.sink.batches import Row, RowPlan, row_key
from airflow_connect.errors import DataError

if TYPE_CHECKING:
    from airflow_connect.api.record import SinkRecord
    from airflow_connect.connectors.jdbc.sink.offsets import Position


class Made(NamedTuple):
    """A record as a row; `deletes`: the row is deleted, and has its key only."""

    plan: RowPlan
    row: Row
    record: SinkRecord
    deletes: bool


class Resumed:
    """A partition of which records are in the database before the task has written any.

    Attributes:
        next_offset, errant: see `Position`.
    """

    def __init__(self, position: Position) -> None:
        """Nothing was seen yet."""
        self.next_offset = position.next_offset
        self.errant = position.errant
        self._waiting: dict[tuple[object, ...], list[Made]] = {}
        self._seen = 0

    def see(self, offset: int) -> None:
        """A record of the partition has come."""
        self._seen = offset + 1

    @property
    def is_seen(self) -> bool:
        """Whether the last record before `next_offset` has come."""
        return self._seen >= self.next_offset

    @property
    def waits(self) -> bool:
        """Whether errant records wait."""
        return bool(self._waiting)

    def wait(self, errant: Made) -> None:
        """An errant record waits for all others before `next_offset`."""
        self._waiting.setdefault(row_key(errant.plan, errant.row), []).append(errant)

    def superseded_by(self, written: Made) -> list[Made]:
        """The waiting records whose row a later record has changed; they do not wait any more."""
        return self._waiting.pop(row_key(written.plan, written.row), [])

    def take_waiting(self) -> list[Made]:
        """The waiting records, in their order; none waits any more."""
        taken, self._waiting = self._waiting, {}
        return sorted((made for several in taken.values() for made in several), key=lambda made: made.record.offset)


def superseded(record: SinkRecord) -> DataError:
    """Why an errant record is not tried again."""
    return DataError(
        f"The record at {record.where} could not be written by a run that ended before its commit, or by another"
        " attempt of this task. Later records were written since, and one of them has changed the same row, or may"
        " have, because this run does not read all of them: the older record must not replace it.",
        code="jdbc.superseded",
        suggestion="errors.tolerance=all makes it a dead letter. If its row lacks something, produce the record again.",
    )

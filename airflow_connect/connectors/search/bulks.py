"""Documents on their way: what a bulk request consists of, from records or from columns, and parts of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from airflow_connect.api.record import SinkRecord
from airflow_connect.connectors.search.conflicts import Place

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from airflow_connect.api.columns import RecordColumns
    from airflow_connect.connectors.search.documents import Action
    from airflow_connect.connectors.search.targets import Target


class Documents(Protocol):
    """Actions in the order of the log. Never changed."""

    @property
    def ids(self) -> Sequence[str]:
        """Id of each action whose order matters, "" for others; empty if that is so for all."""

    def __len__(self) -> int:
        """Number of actions."""

    def body(self) -> bytes:
        """The body of the request."""

    def select(self, positions: Sequence[int]) -> Documents:
        """Some of them."""

    def record(self, position: int) -> SinkRecord:
        """The record of an action."""

    def place(self, position: int) -> Place:
        """Where the record of an action was consumed."""


@dataclass(frozen=True, slots=True)
class ListedDocuments:
    """Actions of single records."""

    actions: Sequence[Action]
    records: Sequence[SinkRecord]

    @property
    def ids(self) -> Sequence[str]:
        """See `Documents`."""
        return [action.id for action in self.actions] if any(action.id for action in self.actions) else ()

    def __len__(self) -> int:
        """Number of actions."""
        return len(self.actions)

    def body(self) -> bytes:
        """See `Documents`."""
        return b"".join([action.lines for action in self.actions])

    def select(self, positions: Sequence[int]) -> ListedDocuments:
        """See `Documents`."""
        return ListedDocuments([self.actions[n] for n in positions], [self.records[n] for n in positions])

    def record(self, position: int) -> SinkRecord:
        """See `Documents`."""
        return self.records[position]

    def place(self, position: int) -> Place:
        """See `Documents`."""
        record = self.records[position]
        return Place(record.original_topic, record.original_partition, record.offset, record.topic)


@dataclass(frozen=True, slots=True)
class ColumnDocuments:
    """Actions of records in columns.

    Attributes:
        lines: binary[n], the actions.
        batch: the records that some of the lines are from.
        places: int64[n], positions of these records in the batch.
    """

    lines: Any
    batch: RecordColumns
    places: NDArray[np.int64]
    ids: Sequence[str] = ()

    def __len__(self) -> int:
        """Number of actions."""
        return len(self.lines)

    def body(self) -> bytes:
        """See `Documents`."""
        bounds = _bounds(self.lines)
        return memoryview(self.lines.buffers()[2])[int(bounds[0]) : int(bounds[-1])].tobytes()

    def select(self, positions: Sequence[int]) -> ColumnDocuments:
        """See `Documents`."""
        chosen = np.asarray(positions, dtype=np.int64)
        return ColumnDocuments(self.lines.take(chosen), self.batch, self.places[chosen])

    def record(self, position: int) -> SinkRecord:
        """The record as far as a dead letter queue needs it: as it was consumed."""
        place = int(self.places[position])
        (consumed,) = self.batch.read_records(self.batch.indexes[place : place + 1])
        return SinkRecord(
            topic=self.batch.topic,
            partition=self.batch.original_partition,
            offset=int(self.batch.offsets[place]),
            timestamp=consumed.timestamp,
            timestamp_type=consumed.timestamp_type,
            original_topic=self.batch.original_topic,
            original_partition=self.batch.original_partition,
            consumed=consumed,
        )

    def place(self, position: int) -> Place:
        """See `Documents`."""
        batch, offset = self.batch, int(self.batch.offsets[int(self.places[position])])
        return Place(batch.original_topic, batch.original_partition, offset, batch.topic)


@dataclass(frozen=True, slots=True)
class Bulk:
    """A request.

    Attributes:
        target, documents: what is written, and where.
        is_repeated: whether the server may have executed it before, without an answer.
        index_before: where documents of the target went before that; "" if no answer had said so.
        races: how often these documents were sent again because some met a mapping in the making.
    """

    target: Target
    documents: Documents
    is_repeated: bool = False
    index_before: str = ""
    races: int = 0

    def part(self, positions: Sequence[int]) -> Bulk:
        """A request with some of the documents."""
        return replace(self, documents=self.documents.select(positions))

    def repeated(self, index_before: str) -> Bulk:
        """The same request, sent again."""
        return self if self.is_repeated else replace(self, is_repeated=True, index_before=index_before)

    def raced(self) -> Bulk:
        """The same request, after some of its documents met a mapping in the making."""
        return replace(self, races=self.races + 1)

    def halves(self) -> list[Bulk]:
        """Two requests, the earlier documents first; the same one if there is one document only."""
        count = len(self.documents)
        if count < 2:
            return [self]
        return [self.part(range(count // 2)), self.part(range(count // 2, count))]


@dataclass(slots=True)
class Waiting:
    """Actions for one target that wait to be sent."""

    target: Target
    since_s: float
    size_bytes: int = 0
    actions: list[Action] = field(default_factory=list)
    records: list[SinkRecord] = field(default_factory=list)

    def add(self, action: Action, record: SinkRecord) -> None:
        """Add the action of a record."""
        self.actions.append(action)
        self.records.append(record)
        self.size_bytes += len(action.lines)

    def sealed(self) -> Bulk:
        """All of them as a request."""
        return Bulk(self.target, ListedDocuments(self.actions, self.records))


def column_bulks(
    target: Target, lines: Any, batch: RecordColumns, limits: Callable[[], tuple[int, int | None]]
) -> Iterator[Bulk]:
    """The actions of a batch as requests within two limits; a larger action is alone.

    Args:
        target: of all.
        lines: binary[n], the actions.
        batch: their records.
        limits: maximum number of actions, and of bytes (None: any), asked before each request: answers change them.
    """
    bounds = _bounds(lines).astype(np.int64)
    start = 0
    while start < len(lines):
        most, most_bytes = limits()
        stop = min(start + most, len(lines))
        if most_bytes is not None:
            fitting = int(np.searchsorted(bounds, bounds[start] + most_bytes, side="right")) - 1
            stop = max(start + 1, min(stop, fitting))
        places = np.arange(start, stop, dtype=np.int64)
        yield Bulk(target, ColumnDocuments(lines.slice(start, stop - start), batch, places))
        start = stop


def _bounds(lines: Any) -> Any:
    return np.frombuffer(lines.buffers()[1], dtype=np.int32)[lines.offset : lines.offset + len(lines) + 1]

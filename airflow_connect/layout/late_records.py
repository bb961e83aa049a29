"""Records for time directories that were announced as complete: they get a separate directory, or are refused.

The boundary is frozen for a run (`late_before`), so that all attempts of a task, and a copy repeated from a
manifest, agree.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from airflow_connect.api.record import SinkRecord
from airflow_connect.errors import LateRecordError
from airflow_connect.layout.partitioners import Partitioner, WrappingPartitioner
from airflow_connect.layout.time_grid import TimeGrid

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class LateRecords:
    """Which records are late."""

    def __init__(self, grid: TimeGrid, late_before: Mapping[str, int]) -> None:
        """`late_before`: by consumed topic; records for directories that end at that time or earlier are late."""
        self.grid = grid
        # A record after the boundary is on time whatever its directory is: the usual case costs one comparison.
        self._over = {topic: (ms, grid.last_over(ms)) for topic, ms in late_before.items()}

    def is_late(self, topic: str, time_ms: int) -> bool:
        """Whether a record of the consumed topic `topic` with this time is late."""
        found = self._over.get(topic)
        return found is not None and time_ms < found[0] and self.grid.is_over(time_ms, found[1])

    def are_late(self, topic: str, times_ms: NDArray[np.int64]) -> NDArray[np.bool_] | None:
        """`is_late` of many records; None: none of them is."""
        import numpy as np

        found = self._over.get(topic)
        if found is None or not len(times_ms) or int(np.min(times_ms)) >= found[0]:
            return None
        late = self.grid.are_over(times_ms, found[1]) & (times_ms < found[0])
        return late if late.any() else None


class LatePartitioner(WrappingPartitioner):
    """Puts late records below a separate directory, or refuses them."""

    def __init__(self, inner: Partitioner, late: LateRecords, directory: str, delimiter: str = "/") -> None:
        """Wrap `inner`; `directory` is `late.records.directory`, or "" to refuse late records."""
        super().__init__(inner, delimiter)
        self.late = late
        self.late_directory = directory

    def directory(self, record: SinkRecord, now_ms: int) -> str:
        """Directory of the record.

        Raises:
            LateRecordError: the record is late, and late records are refused.
        """
        directory = self.inner.directory(record, now_ms)
        time_ms = self.inner.timestamp_ms(record, now_ms)
        if time_ms is None or not self.late.is_late(record.original_topic, time_ms):
            return directory
        if not self.late_directory:
            raise late_error(record, time_ms, directory)
        return self.directory_of_late(directory)

    def directory_of_late(self, directory: str) -> str:
        """Where late records of a directory go."""
        return f"{self.late_directory}{self.delimiter}{directory}"

    def directory_regex(self) -> str:
        """The wrapped partitioner's pattern, with and without the directory of late records."""
        inner = self.inner.directory_regex()
        above = re.escape(self.late_directory + self.delimiter)
        return f"(?:{above})?(?:{inner})" if self.late_directory else inner


def late_error(record: SinkRecord, time_ms: int, directory: str) -> LateRecordError:
    """The reason of a dead letter."""
    try:
        shown = (_EPOCH + timedelta(milliseconds=time_ms)).isoformat(timespec="milliseconds")
    except OverflowError:
        shown = f"{time_ms} ms after 1970-01-01"
    return LateRecordError(
        f"The record at {record.where} is late: its time is {shown}, and directory {directory} was announced as"
        " complete before this run.",
        suggestion="Raise complete.delay.ms if records are often this late; replay the dead letter queue with"
        " late.records=append to have them written.",
        config_path="late.records",
    )

"""Whole records in columns: what is checked of every file, whatever its format is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.whole_record import WHOLE_RECORD
from airflow_connect.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

NO_BACKUP = "restore.no_backup"
MISSING = "Offsets that no file of the backup holds, as transactions and compaction leave them:"
TOLD_HOLE = 10
"""Offsets of a hole that is named: each transaction leaves one or two."""
FIELDS = tuple(field.name for field in WHOLE_RECORD.fields)
"""Names of the columns, in order."""


@dataclass(frozen=True, slots=True)
class Records:
    """Consecutive records of a file.

    Attributes:
        offsets: ascending.
        columns: by name: `timestamp`, `key`, `value`, `headers`; each as long as `offsets`.
    """

    offsets: NDArray[np.int64]
    columns: dict[str, pa.Array[Any]]

    def __len__(self) -> int:
        """How many."""
        return len(self.offsets)

    def slice(self, start: int, end: int) -> Records:
        """Records `[start, end)`, without copying."""
        return Records(self.offsets[start:end], {name: part[start:end] for name, part in self.columns.items()})

    @classmethod
    def merged(cls, parts: Sequence[Records]) -> Records:
        """Records of several files, in the order of their offsets."""
        import numpy as np
        import pyarrow as pa

        offsets = np.concatenate([part.offsets for part in parts])
        order = np.argsort(offsets, kind="stable")
        taken: Any = pa.array(order)
        columns: dict[str, Any] = {
            name: pa.concat_arrays([part.columns[name] for part in parts]).take(taken) for name in parts[0].columns
        }
        return cls(offsets[order], columns)


def holes(position: int, offsets: NDArray[np.int64]) -> tuple[int, tuple[int, int]]:
    """Offsets from `position` to the last record that no record has: how many, and the largest range `[start, end)`.

    Args:
        position: of the first record, if nothing is missing.
        offsets: ascending; at least one.
    """
    import numpy as np

    before = np.concatenate([[position - 1], offsets[:-1]])
    sizes = offsets - before - 1
    at = int(sizes.argmax())
    return int(sizes.sum()), (int(before[at]) + 1, int(offsets[at]))


def damaged(name: str, version: str, reason: object) -> DataError:
    """The error for a file that cannot be read as its format says."""
    return DataError(
        f"{name} ({version}) cannot be read: {str(reason).strip().rstrip('.')}.",
        code="restore.damaged",
        suggestion="Put an intact copy back, and run again. If a part of the file was restored, the next run refuses"
        " the copy: then restore the partition once more, to an empty topic.",
    )


def no_backup(name: str, columns: Sequence[str]) -> DataError:
    """The error for a file that holds something other than whole records."""
    return DataError(
        f"{name} does not hold whole records: its fields are {', '.join(columns) or 'none'}.",
        code="restore.no_backup",
        suggestion="If the files hold values, set store.kafka.records=false and the converters that write them to"
        " Kafka. Otherwise choose other topics, or another topics.dir.",
    )


def checked(batch: Any, tp: TopicPartition, name: str, version: str) -> Records:
    """The records of a batch of columns of WHOLE_RECORD.

    Raises:
        DataError: they are not of this partition, or not in order.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from airflow_connect.kafka.reading.message_headers import HEADERS

    columns = {field: batch.column(field) for field in FIELDS}
    for field, expected in (("topic", tp.topic), ("partition", tp.partition)):
        wanted: Any = pa.scalar(expected, columns[field].type)
        same: Any = pc.all(pc.equal(columns[field], wanted), skip_nulls=False)
        if len(batch) and same.as_py() is not True:
            raise damaged(name, version, f"it holds records of another {field} than {expected}, unlike its name says")
    if columns["offset"].null_count:
        raise damaged(name, version, "it has a record without an offset")
    offsets: Any = columns["offset"].to_numpy(zero_copy_only=False)
    wrong = np.flatnonzero(np.diff(offsets) <= 0)
    if len(wrong):
        at = int(wrong[0])
        raise damaged(name, version, f"offset {offsets[at + 1]} comes after {offsets[at]}")
    kept = {field: columns[field] for field in ("timestamp", "key", "value")}
    headers = columns["headers"]
    return Records(offsets, {**kept, "headers": headers if headers.type == HEADERS else headers.cast(HEADERS)})

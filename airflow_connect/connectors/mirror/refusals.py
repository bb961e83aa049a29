"""Which record of the source cluster the target cluster has refused, and by which of its settings.

Kafka says neither. A refused record ends the run, unless errors are tolerated and delivery is not exactly once, and it
would end each following one. So the task keeps, for each partition, the records of the open transaction that come
nearest to a limit.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_connect.api.record import TIMESTAMP_NOT_AVAILABLE
from airflow_connect.errors import ConnectError
from airflow_connect.kafka.admin.copied_settings import topic_settings
from airflow_connect.kafka.clients.short_lived import Admin

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from airflow_connect.api.offsets import TopicPartition
    from airflow_connect.kafka.reading.column_batch import ColumnBatch

log = logging.getLogger(__name__)

REFUSED, TOO_LARGE = "data.refused_by_kafka", "kafka.too_large"
SIZE, BEFORE, AFTER = "max.message.bytes", "message.timestamp.before.max.ms", "message.timestamp.after.max.ms"
CLEANUP = "cleanup.policy"
_CLOCKS_MS = 60_000
"""How far the clocks of this machine and of a broker may be apart."""
_SKIP = (
    "To go on without such records, let one run deliver at least once and skip them: delivery.guarantee=at_least_once"
    " and errors.tolerance=all. It counts and names them."
)


@dataclass(slots=True)
class _Extreme:
    """The record of a partition that has the largest value of something."""

    offset: int = -1
    value: int = -(1 << 62)

    def see(self, offsets: NDArray[np.int64], values: NDArray[np.int64]) -> None:
        """Look at the next records; the first one of equals counts."""
        number = int(values.argmax())
        if int(values[number]) > self.value:
            self.offset, self.value = int(offsets[number]), int(values[number])


class _Seen:
    """The records of a partition: the largest, the latest, the oldest, and the first without a key."""

    def __init__(self) -> None:
        self.size, self.latest, self.oldest, self.keyless = _Extreme(), _Extreme(), _Extreme(), _Extreme()


class _Suspect(NamedTuple):
    """A record that Kafka may have refused.

    Attributes:
        excess: how far it is beyond the limit.
        sentence: what is wrong with it.
        setting: the topic's setting that it violates.
        remote: topic of the target cluster.
    """

    excess: int
    sentence: str
    setting: str
    remote: str


class OpenRecords:
    """The records that were returned since the last commit."""

    def __init__(self, remote_topics: Mapping[TopicPartition, str]) -> None:
        """`remote_topics`: by partition of the source cluster."""
        self._remote_topics = remote_topics
        self._seen: dict[TopicPartition, _Seen] = {}

    def returned(self, batch: ColumnBatch, headers: pa.ListArray[Any] | None) -> None:
        """Look at a batch that is returned next; `headers`: its `headers()`."""
        seen = self._seen.setdefault(batch.topic_partition, _Seen())
        seen.size.see(batch.offsets, _sizes(batch, headers))
        if batch.timestamp_type != TIMESTAMP_NOT_AVAILABLE:
            seen.latest.see(batch.offsets, batch.timestamps)
            seen.oldest.see(batch.offsets, -batch.timestamps)
        if batch.keys.null_count:
            seen.keyless.see(batch.offsets, batch.keys.is_null().to_numpy(zero_copy_only=False).astype(int))

    def committed(self) -> None:
        """All of them are in the target cluster."""
        self._seen.clear()

    def explained(self, error: ConnectError, target: Admin) -> ConnectError:
        """The error of a refused record with its place, the setting, and what to do; any other error as it is."""
        if error.code not in (REFUSED, TOO_LARGE) or not self._seen:
            return error
        try:
            found = topic_settings(target, sorted({self._remote_topics[tp] for tp in self._seen}))
        except ConnectError as problem:
            log.warning("The settings of the target's topics could not be read: %s", problem.message)
            return error
        settings = {topic: {one.name: one.value or "" for one in its} for topic, its in found.items()}
        find = _too_large if error.code == TOO_LARGE else _invalid
        places = ((tp, seen, self._remote_topics[tp]) for tp, seen in self._seen.items())
        suspects = [one for tp, seen, remote in places for one in find(tp, seen, remote, settings[remote])]
        if not suspects:
            return error
        worst = max(suspects)
        explained = type(error)(
            f"{error.message} {worst.sentence}",
            code=error.code,
            suggestion=f"{_way_out(worst)} {_SKIP}",
            config_path=error.config_path,
        )
        explained.retriable = error.retriable
        return explained


def _too_large(tp: TopicPartition, seen: _Seen, remote: str, settings: Mapping[str, str]) -> Iterator[_Suspect]:
    limit, size = int(settings.get(SIZE) or 0), seen.size
    sentence = (
        f"The largest record that was copied is {tp}@{size.offset} of the source cluster. Its key, value and headers"
        f" have {size.value} bytes, and {remote} has {SIZE}={limit}, which counts after compression."
    )
    yield _Suspect(size.value - limit, sentence, SIZE, remote)


def _invalid(tp: TopicPartition, seen: _Seen, remote: str, settings: Mapping[str, str]) -> Iterator[_Suspect]:
    if seen.keyless.offset >= 0 and "compact" in settings.get(CLEANUP, ""):
        sentence = f"{tp}@{seen.keyless.offset} of the source cluster has no key, but {remote} is compacted."
        yield _Suspect(sys.maxsize, sentence, CLEANUP, remote)
    now = int(time.time() * 1000)
    latest, oldest = seen.latest.value, -seen.oldest.value
    for setting, record, stamp, distance in (
        (AFTER, seen.latest, latest, latest - now),
        (BEFORE, seen.oldest, oldest, now - oldest),
    ):
        limit = settings.get(setting)
        if limit and record.offset >= 0 and distance - int(limit) > -_CLOCKS_MS:
            sentence = (
                f"{tp}@{record.offset} of the source cluster has the timestamp {stamp} ({_shown(stamp)}), which"
                f" {remote} does not take: it has {setting}={limit}."
            )
            yield _Suspect(distance - int(limit), sentence, setting, remote)


def _way_out(suspect: _Suspect) -> str:
    more = ", and producer.override.max.request.size of this connector" if suspect.setting == SIZE else ""
    return (
        f"Change {suspect.setting} of the original topic, whose settings are copied{more}. Or name {suspect.setting} in"
        f" config.properties.exclude, and change it for {suspect.remote}."
    )


def _shown(stamp: int) -> str:
    """A timestamp in words, as far as a calendar has it."""
    try:
        return datetime.fromtimestamp(stamp / 1000, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return "beyond the calendar"


def _sizes(batch: ColumnBatch, headers: pa.ListArray[Any] | None) -> NDArray[np.int64]:
    """Bytes of key, value and headers of each record."""
    import numpy as np

    sizes = _lengths(batch.keys) + _lengths(batch.values)
    if headers is not None:
        parts: Any = headers.flatten()
        names, values = parts.flatten()
        before = np.concatenate([[0], np.cumsum(_lengths(names) + _lengths(values))])
        bounds: Any = headers.offsets.to_numpy()
        sizes += np.diff(before[bounds - bounds[0]])
    return sizes


def _lengths(column: Any) -> NDArray[np.int64]:
    import numpy as np
    import pyarrow.compute as pc

    lengths: Any = pc.binary_length(column)
    found: NDArray[np.int64] = lengths.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return found

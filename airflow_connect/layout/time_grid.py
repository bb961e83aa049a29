"""When a time directory ends: the buckets of a `TimeBasedPartitioner` as instants.

A directory ends with the last instant whose record would go into it, in the partitioner's time zone: the day on which
clocks go back has 25 hours, and both hours with the same name are one directory. If `path.format` is coarser than
`partition.duration.ms`, several buckets share a directory, which ends with the last of them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from airflow_connect.errors import ConfigError
from airflow_connect.layout.partitioners import TimeBasedPartitioner
from airflow_connect.layout.time.time_zones import DAY_MS, HOUR_MS, MINUTE_MS, Zone

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NEVER_MS = 1 << 62
"""End of a directory whose name never changes; later than any realistic time."""
_FARTHEST_MS = 200 * 366 * DAY_MS
_PROBED_MS = 1_686_825_045_000  # 2023-06-15T10:30:45Z, an arbitrary time in the middle
_PROBES_MS = (
    *(MINUTE_MS, HOUR_MS, 12 * HOUR_MS, DAY_MS, 7 * DAY_MS, 364 * DAY_MS, 365 * DAY_MS, 366 * DAY_MS),
    *(days * DAY_MS for days in (28, 29, 30, 31, 61, 62)),
)


class TimeGrid:
    """Directories of a time based partitioner, with their first and last instants.

    Times are milliseconds since the epoch. A bucket is named by its local start, as in the partitioner.
    """

    def __init__(self, partitioner: TimeBasedPartitioner) -> None:
        """`partitioner`: its `path.format` must give each time span a unique name.

        Raises:
            ConfigError: the name of a directory repeats, as with `'hour'=HH`; it would never be complete.
        """
        self._zone: Zone = partitioner.zone
        self._duration_ms = partitioner.duration_ms
        self._pattern = partitioner.pattern
        self._bounds = lru_cache(maxsize=100_000)(self._find_bounds)
        self._refuse_repeated_names()

    def directory(self, time_ms: int) -> str:
        """Name of the directory that a record of this time goes into."""
        return self._name(self._bucket(time_ms))

    def bounds_ms(self, time_ms: int) -> tuple[int, int]:
        """First instant of the directory of `time_ms`, and the end: from then on no record goes into it."""
        return self._bounds(self._bucket(time_ms))

    def last_over(self, boundary_ms: int) -> int:
        """The last bucket that is over at `boundary_ms`, with its whole directory, for `is_over`."""
        bucket = self._bucket(boundary_ms)
        # Right after a repeated hour begins, the wall clock shows an earlier time than before.
        while self._bounds(bucket + self._duration_ms)[1] <= boundary_ms:
            bucket += self._duration_ms
        while self._bounds(bucket)[1] > boundary_ms:
            bucket = self._bucket(self._bounds(bucket)[0] - 1)
        return bucket

    def is_over(self, time_ms: int, last_over: int) -> bool:
        """Whether a record of this time belongs in a directory that has ended."""
        return self._bucket(time_ms) <= last_over

    def are_over(self, times_ms: NDArray[np.int64], last_over: int) -> NDArray[np.bool_]:
        """`is_over` of many records: bool[n]."""
        import numpy as np

        near = np.clip(times_ms, -NEVER_MS, NEVER_MS)
        local = near + self._zone.offsets_of(near)
        # Towards zero, as Java divides.
        starts = np.sign(local) * (np.abs(local) // self._duration_ms) * self._duration_ms
        over: NDArray[np.bool_] = starts <= last_over
        return over

    def _bucket(self, time_ms: int) -> int:
        local_ms = self._zone.local_ms(min(max(time_ms, -NEVER_MS), NEVER_MS))
        start = abs(local_ms) // self._duration_ms * self._duration_ms
        return -start if local_ms < 0 else start

    def _name(self, bucket: int) -> str:
        return self._pattern(self._zone.instant_ms(bucket))

    def _find_bounds(self, bucket: int) -> tuple[int, int]:
        first, last = self._same_name(bucket, -1), self._same_name(bucket, 1)
        start = -NEVER_MS if first is None else self._first_instant(first)
        return start, NEVER_MS if last is None else self._last_instant(last) + 1

    def _same_name(self, bucket: int, direction: int) -> int | None:
        """The farthest bucket in a direction with the name of `bucket`; None: they never end."""
        name, step = self._name(bucket), self._duration_ms * direction
        reach = 1
        while self._name(bucket + reach * step) == name:
            if reach * self._duration_ms > _FARTHEST_MS:
                return None
            reach *= 2
        near, far = reach // 2, reach
        while far - near > 1:
            middle = (near + far) // 2
            near, far = (middle, far) if self._name(bucket + middle * step) == name else (near, middle)
        return bucket + near * step

    def _first_instant(self, bucket: int) -> int:
        local_ms = bucket if bucket > 0 else bucket - self._duration_ms + 1
        instants = self._instants(local_ms)
        return min(instants) if instants else self._transition_ms(local_ms)

    def _last_instant(self, bucket: int) -> int:
        local_ms = bucket + self._duration_ms - 1 if bucket >= 0 else bucket
        instants = self._instants(local_ms)
        return max(instants) if instants else self._transition_ms(local_ms) - 1

    def _instants(self, local_ms: int) -> list[int]:
        """Every instant at which the wall clock shows `local_ms`: none in a gap, two in an overlap."""
        offsets = {self._zone.offset_ms(local_ms + hours * HOUR_MS) for hours in (-26, 0, 26)}
        return [local_ms - offset for offset in offsets if self._zone.local_ms(local_ms - offset) == local_ms]

    def _transition_ms(self, local_ms: int) -> int:
        """The instant at which the wall clock jumps over `local_ms`."""
        low, high = local_ms - 26 * HOUR_MS, local_ms + 26 * HOUR_MS
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._zone.local_ms(middle) >= local_ms else (middle + 1, high)
        return low

    def _refuse_repeated_names(self) -> None:
        here = self._bucket(_PROBED_MS)
        for probe_ms in _PROBES_MS:
            buckets = -(-probe_ms // self._duration_ms)
            if self._name(here + buckets * self._duration_ms) != self._name(here):
                continue
            between = {here + buckets * part // 12 * self._duration_ms for part in range(1, 12)}
            between |= {here + n * self._duration_ms for n in (1, 2) if n < buckets}
            if any(self._name(bucket) != self._name(here) for bucket in between):
                raise ConfigError(
                    f"Directory names of path.format={self._pattern.pattern!r} repeat: {self._name(here)!r} is the name"
                    " of many time spans, so the directory is never complete.",
                    code="layout.recurring_directories",
                    suggestion="Include the year, and every unit from the month down to the smallest unit in the name.",
                    config_path="path.format",
                )

"""Time zones with Joda-Time's names and rules: offsets of instants, instants of local times.

All times are milliseconds since 1970-01-01T00:00:00 (UTC for instants, the zone's wall clock for local
times), as integers of any size: Python's datetime ends in the year 9999, record timestamps given in
microseconds do not. Zone data comes from the system's tz database, else from the `tzdata` package.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from airflow_connect.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS = 1_000, 60_000, 3_600_000, 86_400_000
# The Gregorian calendar, weekdays included, repeats after 400 years: far instants have the offset of a near
# one.
_CYCLE_MS = 146_097 * DAY_MS
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_MS = (datetime(2, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
_LAST_MS = (datetime(9000, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
# No zone has ever changed its offset twice within this time.
SLOT_MS = 6 * HOUR_MS

_FIXED = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d\d)(?:(:?)([0-5]\d)(?:\3([0-5]\d)(?:\.?(\d{3}))?)?)?")
# Names in a tz database folder that Joda-Time does not have.
_NOT_ZONES = re.compile(r"posixrules|localtime|Factory|(posix|right|SystemV)/.*|.*\.\w+|leapseconds|\+VERSION")


class Zone:
    """A time zone.

    Attributes:
        id: Joda's id, `Europe/Berlin` or `+05:30`.
    """

    def __init__(self, zone_id: str, zone: tzinfo | int) -> None:
        """Use `Zone.of`; `zone` is a tzinfo or a fixed offset in milliseconds."""
        self.id = zone_id
        self.tzinfo = None if isinstance(zone, int) else zone
        self._fixed_ms = zone if isinstance(zone, int) else None
        # Slot number -> (offset before, instant of the change, offset after).
        self._slots: dict[int, tuple[int, int, int]] = {}

    @classmethod
    def of(cls, zone_id: str, config_path: str = "timezone") -> Zone:
        """The zone with Joda-Time's id `zone_id`.

        Raises:
            ConfigError: no such zone. Ids are case-sensitive.
        """
        return _zone(zone_id, config_path)

    @property
    def is_fixed(self) -> bool:
        """Whether the zone is a constant offset given as such (`+05:30`, `UTC`)."""
        return self._fixed_ms is not None

    def offset_ms(self, instant_ms: int) -> int:
        """What to add to the instant to get the zone's wall clock."""
        if self._fixed_ms is not None:
            return self._fixed_ms
        before, change, after = self._slot(instant_ms // SLOT_MS)
        return before if instant_ms < change else after

    def local_ms(self, instant_ms: int) -> int:
        """Wall clock of the instant."""
        return instant_ms + self.offset_ms(instant_ms)

    def instant_ms(self, local_ms: int) -> int:
        """Instant of a wall clock time: Joda's `convertLocalToUTC(local, strict=false)`.

        In a gap, the offset before the gap applies, so the wall clock of the result is later than `local_ms`. In an
        overlap, the result is the earlier instant west of Greenwich, the later one elsewhere.
        """
        estimate = self.offset_ms(local_ms)
        offset = self.offset_ms(local_ms - estimate)
        if offset != estimate and estimate < 0 and self.offset_ms(local_ms - offset) != offset:
            offset = estimate
        return local_ms - offset

    def start_of_day_ms(self, local_day: int) -> int:
        """First instant of a local day (days since 1970-01-01), also where midnight is skipped."""
        midnight = local_day * DAY_MS
        candidates = {midnight - self.offset_ms(midnight + hours * HOUR_MS) for hours in (-26, 0, 26)}
        valid = [instant for instant in candidates if self.local_ms(instant) == midnight]
        return min(valid) if valid else self._change_in(min(candidates) - DAY_MS, max(candidates) + DAY_MS, midnight)

    def offsets_of(self, instants_ms: NDArray[np.int64]) -> NDArray[np.int64] | int:
        """Offsets of many instants, in milliseconds; one integer where all are equal."""
        import numpy as np

        from airflow_connect.layout.dense_codes import dense_codes

        if self._fixed_ms is not None:
            return self._fixed_ms
        codes, numbers = dense_codes(instants_ms // SLOT_MS)
        slots = [self._slot(int(number)) for number in numbers]
        before = np.array([slot[0] for slot in slots], dtype=np.int64)
        after = np.array([slot[2] for slot in slots], dtype=np.int64)
        if (before == before[:1]).all() and (after == before[:1]).all():
            return int(before[0]) if slots else 0
        offsets: NDArray[np.int64] = before[codes]
        if (before != after).any():
            change = np.array([slot[1] for slot in slots], dtype=np.int64)
            offsets = np.where(instants_ms < change[codes], offsets, after[codes])
        return offsets

    def abbreviation(self, instant_ms: int) -> str:
        """The tz database's short name at the instant (`CET`), or "" if it has only a number."""
        name = "" if self.tzinfo is None else _near(instant_ms).astimezone(self.tzinfo).tzname() or ""
        return name if name[:1].isalpha() else ""

    def _slot(self, number: int) -> tuple[int, int, int]:
        slot = self._slots.get(number)
        if slot is None:
            if len(self._slots) > 100_000:  # bounds memory when timestamps are garbage
                self._slots.clear()
            start, end = number * SLOT_MS, (number + 1) * SLOT_MS
            before, after = self._offset(start), self._offset(end - 1)
            change = _first(start, end, lambda instant: self._offset(instant) != before) if before != after else end
            slot = self._slots[number] = (before, change, after)
        return slot

    def _offset(self, instant_ms: int) -> int:
        offset = _near(instant_ms).astimezone(self.tzinfo).utcoffset()
        if offset is None:
            raise ValueError(f"{self.id} has no offset at {instant_ms}")
        return offset // timedelta(milliseconds=1)

    def _change_in(self, start_ms: int, end_ms: int, local_ms: int) -> int:
        """The instant in `[start_ms, end_ms)` at which the wall clock jumps over `local_ms`."""
        return _first(start_ms, end_ms, lambda instant: self.local_ms(instant) >= local_ms)


def _near(instant_ms: int) -> datetime:
    if instant_ms > _LAST_MS:
        instant_ms = _LAST_MS - _CYCLE_MS + (instant_ms - _LAST_MS) % _CYCLE_MS
    return _EPOCH + timedelta(milliseconds=max(instant_ms, _FIRST_MS))


def _first(start: int, end: int, holds: Callable[[int], bool]) -> int:
    """Smallest number in `[start, end]` for which `holds`, which must stay true once it is."""
    while start < end:
        middle = (start + end) // 2
        if holds(middle):
            end = middle
        else:
            start = middle + 1
    return start


@lru_cache(maxsize=64)
def _zone(zone_id: str, config_path: str) -> Zone:
    if zone_id in ("UTC", "UT", "Z"):
        return Zone("UTC", 0)
    match = _FIXED.fullmatch(zone_id)
    if match:
        return _fixed(match, zone_id, config_path)
    try:
        if _NOT_ZONES.fullmatch(zone_id):
            raise ValueError(zone_id)
        return Zone(zone_id, ZoneInfo(zone_id))
    except (
        ValueError,
        OSError,
        KeyError,
    ) as error:  # ZoneInfoNotFoundError is a KeyError; a folder gives OSError
        raise _unknown(zone_id, config_path) from error


def _fixed(match: re.Match[str], zone_id: str, config_path: str) -> Zone:
    sign, hours, _, minutes, seconds, millis = match.groups()
    if int(hours) > 23:
        raise _unknown(zone_id, config_path)
    offset = int(hours) * HOUR_MS + int(minutes or 0) * MINUTE_MS + int(seconds or 0) * SECOND_MS + int(millis or 0)
    if offset == 0:
        return Zone("UTC", 0)
    name = f"{sign}{hours}:{minutes or '00'}"
    if offset % MINUTE_MS:
        name += f":{seconds}"
    if offset % SECOND_MS:
        name += f".{millis}"
    return Zone(name, -offset if sign == "-" else offset)


def _unknown(zone_id: str, config_path: str) -> ConfigError:
    return ConfigError(
        f"The datetime zone id '{zone_id}' is not recognised.",
        code="layout.unknown_zone",
        suggestion="Use an id of the tz database (Europe/Berlin, case matters), UTC, or an offset (+05:30).",
        config_path=config_path,
    )

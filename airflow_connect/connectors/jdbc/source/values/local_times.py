"""Times with and without a zone, as microseconds since 1970-01-01T00:00:00Z.

A column without a zone holds times of `db.timezone`. When clocks are set back, an hour occurs twice there. Such a time
counts as the second one, and a time that clocks skip as what clocks showed instead, as java.util.GregorianCalendar
does.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SECOND_US = 1_000_000
DAY_US = 86_400 * SECOND_US
_HOUR_US = 3_600 * SECOND_US
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 (a local time)
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_MICROSECOND = timedelta(microseconds=1)


def micros_of(difference: timedelta) -> int:
    """A duration in microseconds."""
    return (difference.days * 86_400 + difference.seconds) * SECOND_US + difference.microseconds


def days_of(value: date) -> int:
    """Days since the epoch."""
    return value.toordinal() - _EPOCH_ORDINAL


class LocalTimes:
    """Conversion between local times of a zone and instants."""

    def __init__(self, zone: tzinfo) -> None:
        """`zone`: of the local times."""
        self._zone = zone
        self._is_utc = zone is UTC

    def instant_us(self, value: datetime) -> int:
        """The instant of a time; one without a zone is local."""
        if value.tzinfo is not None:
            return micros_of(value - _EPOCH_UTC)
        local = micros_of(value - _EPOCH)
        return local if self._is_utc else local - self._offset_us(value)

    def instants_us(self, local_us: NDArray[np.int64]) -> NDArray[np.int64]:
        """`instant_us` of many local times, given as microseconds since 1970-01-01T00:00 on the local clock.

        A zone's offset is looked up once for each hour of local time, and for each value of an hour in which it
        changes.
        """
        import numpy as np

        if self._is_utc or not len(local_us):
            return local_us
        hours, place = np.unique(local_us // _HOUR_US, return_inverse=True)
        first = np.array([self._offset_at(hour * _HOUR_US) for hour in hours.tolist()], np.int64)
        last = np.array([self._offset_at(hour * _HOUR_US + _HOUR_US - 1) for hour in hours.tolist()], np.int64)
        offsets = first[place]
        for index in np.flatnonzero((first != last)[place]).tolist():
            offsets[index] = self._offset_at(int(local_us[index]))
        found: NDArray[np.int64] = local_us - offsets
        return found

    def in_order_us(self, local_us: NDArray[np.int64]) -> NDArray[np.int64]:
        """`instants_us`, but the first instant after a change of clocks for times that this one skips.

        So they are in the order of the local times.
        """
        import numpy as np

        found = self.instants_us(local_us)
        if self._is_utc or not len(local_us):
            return found
        hours, place = np.unique(local_us // _HOUR_US, return_inverse=True)
        may_skip = np.array([self._may_skip(hour * _HOUR_US) for hour in hours.tolist()])
        places = np.flatnonzero(may_skip[place])
        if len(places):
            found = found.copy()
        for index in places.tolist():
            own_us = int(local_us[index])
            if self.skipped_us(self.from_clock(own_us)) is not None:
                found[index] = self.before_skipped_us(own_us) + 1
        return found

    def _may_skip(self, hour_us: int) -> bool:
        """Whether clocks skip a time of an hour of local time, which begins at `hour_us`."""
        last_us = hour_us + _HOUR_US - 1
        if self._offset_at(hour_us) != self._offset_at(last_us):
            return True
        return any(self.skipped_us(self.from_clock(us)) is not None for us in (hour_us, last_us))

    def _offset_at(self, local_us: int) -> int:
        return self._offset_us(_EPOCH + timedelta(microseconds=local_us))

    def local(self, instant_us: int) -> datetime:
        """The local time of an instant, without a zone."""
        if self._is_utc:
            return _EPOCH + timedelta(microseconds=instant_us)
        try:
            return self.aware(instant_us).astimezone(self._zone).replace(tzinfo=None, fold=0)
        except OverflowError:
            # The year is 0 or 10000 in UTC, but not on the local clock. No zone changes its offset on that day.
            day_us = DAY_US if instant_us < 0 else -DAY_US
            local = self.aware(instant_us + day_us).astimezone(self._zone).replace(tzinfo=None, fold=0)
            return local - timedelta(microseconds=day_us)

    def skipped_us(self, value: datetime) -> int | None:
        """A time without a zone that clocks skip, as microseconds since 1970-01-01T00:00 on the local clock.

        Returns:
            None for any other time: `local` of its instant is the time itself.
        """
        if self._is_utc or value.tzinfo is not None:
            return None
        if self.local(self.instant_us(value)) == value.replace(fold=0):
            return None
        return micros_of(value - _EPOCH)

    def own_time(self, instant_us: int, local_us: int | None) -> datetime:
        """The time of a column without a zone that has an instant, and if clocks skip it, `local_us`.

        An offset that was set by hand may still have another `local_us`: then the instant counts.
        """
        if local_us is not None:
            own = _EPOCH + timedelta(microseconds=local_us)
            if self.instant_us(own) == instant_us:
                return own
        return self.local(instant_us)

    def from_clock(self, local_us: int) -> datetime:
        """The time without a zone that is some microseconds after 1970-01-01T00:00 on the local clock."""
        return _EPOCH + timedelta(microseconds=local_us)

    def before_skipped_us(self, local_us: int) -> int:
        """The last instant before clocks skip a time: rows with skipped times come after it, and all others too."""
        own = self.from_clock(local_us)
        low = self.instant_us(own) - DAY_US
        high = self.instant_us(own)
        # The change is in (low, high]: before it, local times are smaller than the skipped one.
        while high - low > 1:
            middle = (low + high) // 2
            if self.local(middle) < own:
                low = middle
            else:
                high = middle
        return low

    def aware(self, instant_us: int) -> datetime:
        """An instant as a time in UTC."""
        return _EPOCH_UTC + timedelta(microseconds=instant_us)

    def closed_before(self, instant_us: int) -> datetime:
        """The local time before which no more local times come at `instant_us`.

        That is the current local time, except in the first pass through an hour that occurs twice: there it is the
        beginning of that hour, because all of it comes again.
        """
        local = self.local(instant_us)
        if self._is_utc:
            return local
        moment = self.aware(instant_us).astimezone(self._zone)
        first, second = (self._utc_offset(local.replace(fold=fold)) for fold in (0, 1))
        if first <= second or moment.fold == 1:
            return local
        low, high = instant_us, instant_us + micros_of(first - second)
        # The change is in (low, high]: offsets are `first` at low and `second` at high.
        while high - low > 1:
            middle = (low + high) // 2
            if self._utc_offset(self.aware(middle).astimezone(self._zone)) == first:
                low = middle
            else:
                high = middle
        return self.local(high)

    def _offset_us(self, local: datetime) -> int:
        """Offset of a local time: the smaller of both where clocks change, which is Java's rule."""
        offsets = (self._utc_offset(local.replace(fold=fold)) for fold in (0, 1))
        return micros_of(min(offsets))

    def _utc_offset(self, value: datetime) -> timedelta:
        moment = value if value.tzinfo is not None else value.replace(tzinfo=self._zone)
        return moment.utcoffset() or timedelta(0)

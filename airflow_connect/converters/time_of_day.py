"""Times of day: Connect's Time, in milliseconds since midnight.

Kafka Connect allows 0 to 86400000. The last of them is 24:00, which Avro, Parquet and ORC do not have: readers refuse
it, or take it for the next day. So converters read it, as Kafka Connect does, but it is not written in these formats.
Source: org.apache.kafka.connect.data.Time; Avro specification 1.12, "Time (millisecond precision)".
"""

from __future__ import annotations

from typing import Any

from airflow_connect.converters.java_text import MS_PER_DAY
from airflow_connect.errors import DataError

LAST_MS = MS_PER_DAY - 1


def read_time(value: int) -> int:
    """The value, as Connect reads a Time.

    Raises:
        DataError: not in 0 to 86400000.
    """
    if not 0 <= value <= MS_PER_DAY:
        raise DataError(
            "Time values must use number of milliseconds greater than 0 and less than 86400000.",
            suggestion="Use Timestamp for instants.",
        )
    return value


def is_time_of_day(milliseconds: int) -> bool:
    """Whether a time is from 00:00:00.000 to 23:59:59.999."""
    return 0 <= milliseconds <= LAST_MS


def written_time(value: int) -> int:
    """The value, for a format that has times of day.

    Raises:
        ValueError: outside of the day.
    """
    if not is_time_of_day(value):
        raise ValueError(f"{value} milliseconds are outside of the day")
    return value


def is_beyond(column: Any, last: int) -> bool:
    """Whether a time of a column is outside of 0 to `last`; `column` is an Arrow array of integers."""
    import pyarrow.compute as pc

    bounds: Any = pc.min_max(column)
    least, most = bounds["min"].as_py(), bounds["max"].as_py()
    return least is not None and (least < 0 or most > last)

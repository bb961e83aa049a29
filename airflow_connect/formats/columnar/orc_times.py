"""Dates and times that readers of ORC do not read as they were written."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# 1582-10-15, the first day of the Gregorian calendar.
_FIRST_DAY = -141_427
_FIRST_MS = _FIRST_DAY * 86_400_000


class RefusedTime(NamedTuple):
    """`field`: its path; `problem`: a clause that begins with the value; `readers`: a sentence about them."""

    field: str
    problem: str
    readers: str


def find_refused_time(array: Any, path: str = "") -> RefusedTime | None:
    """The first field with a value that readers of ORC refuse or read as another one.

    pyarrow's ORC writer (26.0.1) stores the fraction of a second before 1970 as a negative number of nanoseconds, at
    which Spark and Hive refuse the whole file. ORC itself cannot hold the last second before 1970 (ORC-763).

    The writer does not store either which calendar its dates follow (`calendar` in the footer). Spark and Hive then
    assume the Julian calendar for days before 1582-10-15 and read other days; pyarrow does not.
    """
    kind = array.type
    if pa.types.is_date32(kind) or pa.types.is_timestamp(kind):
        return _refused(array, path or "the value")
    if pa.types.is_struct(kind):
        inner = [(part, f"{path}.{field.name}".lstrip(".")) for part, field in zip(array.flatten(), kind, strict=True)]
    elif pa.types.is_map(kind):
        inner = [(part, path) for part in (array.keys, array.items)]
    elif pa.types.is_list(kind):
        inner = [(array.flatten(), path)]
    else:
        return None
    return next((found for part, where in inner if (found := find_refused_time(part, where))), None)


def _refused(array: Any, path: str) -> RefusedTime | None:
    is_date = pa.types.is_date32(array.type)
    numbers = array.cast(pa.int32() if is_date else pa.int64())
    least = pc.min(numbers).as_py()
    if least is None or least >= 0:
        return None
    if least < (_FIRST_DAY if is_date else _FIRST_MS):
        readers = "Spark and Hive read another day from an ORC file, because they assume the Julian calendar."
        return RefusedTime(path, "a day before 1582-10-15", readers)
    times = numbers.drop_null().to_numpy()
    if not is_date and bool(np.any((times < 0) & (times % 1000 != 0))):
        readers = "Spark and Hive refuse an ORC file with such a time."
        return RefusedTime(path, "a time before 1970 with a fraction of a second", readers)
    return None

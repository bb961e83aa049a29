"""Debezium's placeholder for a large value that an update did not change (TOAST of PostgreSQL, LOBs of Oracle).

Its connectors do not have such a value, and send this text, or its bytes, in its place. A sink that finds rows or
documents by their keys writes what the record has, so the value that was there is lost.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

PLACEHOLDER = "__debezium_unavailable_value"
"""The default of Debezium's `unavailable.value.placeholder`."""
QUOTED = f'"{PLACEHOLDER}"'.encode()
"""In JSON."""
_BYTES = PLACEHOLDER.encode()
_FOUND = re.compile(re.escape(_BYTES))


def in_rows(rows: Sequence[tuple[Any, ...]], fields: Sequence[str]) -> Counter[str]:
    """How many values of each field are the placeholder.

    Args:
        rows: values.
        fields: name of the field of each value.
    """
    found: Counter[str] = Counter()
    for row in rows:
        if PLACEHOLDER in row or _BYTES in row:
            found.update(name for name, value in zip(fields, row, strict=True) if value in (PLACEHOLDER, _BYTES))
    return found


def in_columns(columns: Sequence[Any], fields: Sequence[str]) -> Counter[str]:
    """The same for columns of Arrow."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found: Counter[str] = Counter()
    for name, column in zip(fields, columns, strict=True):
        if (pa.types.is_string(column.type) or pa.types.is_binary(column.type)) and _may_be_in(column):
            found[name] += pc.equal(column.cast(pa.binary()), pa.scalar(_BYTES)).true_count
    return +found


def in_lines(lines: Any) -> int:
    """How many lines of JSON have the placeholder as a value; `lines`: Arrow array of binary."""
    import pyarrow.compute as pc

    return int(pc.match_substring(lines, QUOTED.decode()).true_count) if _may_be_in(lines) else 0


def _may_be_in(column: Any) -> bool:
    data = column.buffers()[2]
    return data is not None and _FOUND.search(data) is not None


def sentence(target: str, counts: Mapping[str, int]) -> str:
    """For the report. `counts`: field -> number of values."""
    listed = ", ".join(f"{name} ({count:,})" for name, count in sorted(counts.items()))
    return (
        f"Records have {PLACEHOLDER} in place of a value, and it was written to {target}: {listed}. Debezium sends it"
        " for a large value that an update did not change, and the value that was there is lost. Let the source send"
        " whole rows (REPLICA IDENTITY FULL in PostgreSQL, or Debezium's ReselectColumnsPostProcessor), and write the"
        " records again."
    )

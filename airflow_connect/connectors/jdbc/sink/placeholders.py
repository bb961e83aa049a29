"""Debezium's placeholder for a large value that an update did not change (TOAST of PostgreSQL, LOBs of Oracle).

Its connectors do not have such a value, and send this text, or its bytes, in its place: `unavailable.value.placeholder`.
A sink writes what the record has, so the column loses the value that it had.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

PLACEHOLDER = "__debezium_unavailable_value"
_BYTES = PLACEHOLDER.encode()
_FOUND = re.compile(re.escape(_BYTES))


def in_rows(rows: Sequence[tuple[Any, ...]], fields: Sequence[str]) -> Counter[str]:
    """How many values of each field are the placeholder.

    Args:
        rows: bound values.
        fields: name of the field of each value.
    """
    found: Counter[str] = Counter()
    for row in rows:
        if PLACEHOLDER in row or _BYTES in row:
            found.update(name for name, value in zip(fields, row, strict=True) if value in (PLACEHOLDER, _BYTES))
    return found


def in_columns(columns: Sequence[Any], fields: Sequence[str]) -> Counter[str]:
    """The same for bound columns of Arrow."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found: Counter[str] = Counter()
    for name, column in zip(fields, columns, strict=True):
        if not (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
            continue
        data = column.buffers()[2]
        if data is not None and _FOUND.search(data):
            found[name] += pc.equal(column.cast(pa.binary()), pa.scalar(_BYTES)).true_count
    return +found


def sentence(table: str, counts: Mapping[str, int]) -> str:
    """For the report. `counts`: field -> number of values."""
    listed = ", ".join(f"{name} ({count:,})" for name, count in sorted(counts.items()))
    return (
        f"Records have {PLACEHOLDER} in place of a value, and it was written to {table}; fields, with the number of"
        f" records: {listed}. Debezium sends it for a large value that an update did not change, so these rows no"
        " longer have theirs. Let the source send whole rows (REPLICA IDENTITY FULL in PostgreSQL, or Debezium's"
        " ReselectColumnsPostProcessor), and write the rows again."
    )

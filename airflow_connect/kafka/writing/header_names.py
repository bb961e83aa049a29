"""Names of headers that Kafka's client cannot write.

librdkafka takes names of headers as C strings: a name would end at its first zero byte, and its copy would be another
header. Kafka itself allows such names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def first_unwritable(headers: pa.ListArray[Any] | None) -> tuple[int, str] | None:
    """Number of the first record with a zero byte in the name of a header, and the name; None: there is none.

    Args:
        headers: see `SourceColumns.headers`.
    """
    import numpy as np
    import pyarrow.compute as pc

    if headers is None:
        return None
    parts: Any = headers.flatten()
    names = parts.flatten()[0]
    wrong = np.flatnonzero(pc.match_substring(names, "\0").to_numpy(zero_copy_only=False))
    if not len(wrong):
        return None
    lengths: Any = pc.list_value_length(headers)
    record = int(np.searchsorted(np.cumsum(lengths.to_numpy()), wrong[0], side="right"))
    return record, names[int(wrong[0])].as_py().decode(errors="replace")

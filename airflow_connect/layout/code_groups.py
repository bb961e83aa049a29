"""Records of a batch grouped by directory, in stable order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class CodeGroup(NamedTuple):
    """Records with one code: the positions `[low, high)` of the order; `first` and `last` are record indexes."""

    code: int
    low: int
    high: int
    first: int
    last: int


def group_by_code(codes: NDArray[np.int32]) -> tuple[NDArray[np.intp] | None, list[CodeGroup]]:
    """Group indexes by code.

    Args:
        codes: int32[n], n > 0, not negative.

    Returns:
        order intp[n] that groups equal codes, None if all are equal; the groups, ordered by the first appearance of
        their code.
    """
    count = len(codes)
    if bool((codes == codes[0]).all()):
        return None, [CodeGroup(int(codes[0]), 0, count, 0, count - 1)]
    # numpy uses radix sort for 16 bits, which is five times as fast.
    small = codes.astype(np.uint16) if int(np.max(codes)) < 1 << 16 else codes
    order = np.argsort(small, kind="stable")
    bounds = np.flatnonzero(np.diff(codes[order])) + 1
    lows, highs = np.concatenate(([0], bounds)), np.concatenate((bounds, [count]))
    firsts = order[lows]
    columns = (codes[firsts], lows, highs, firsts, order[highs - 1])
    by_appearance = np.argsort(firsts)
    return order, [CodeGroup(*row) for row in zip(*(c[by_appearance].tolist() for c in columns), strict=True)]

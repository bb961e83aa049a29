"""Names of test cases: the same in every process, so that several can share one list of tests."""

from __future__ import annotations

import re


def shown(value: object) -> str:
    """`repr` without addresses in memory."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))

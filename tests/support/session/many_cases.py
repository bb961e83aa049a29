"""One test for many short cases of one kind.

A test of its own costs a case five milliseconds in all the processes of a session, more than most cases take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest

Case = TypeVar("Case")


def check_each(cases: Iterable[Case], name_of: Callable[[Case], str], check: Callable[[Case], None]) -> None:
    """Check every case.

    Raises:
        BaseExceptionGroup: the failures of all cases, each with the name of its case.
    """
    failures: list[BaseException] = []
    count = 0
    for case in cases:
        count += 1
        try:
            check(case)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 (raised below, with those of other cases)
            error.add_note(f"case: {name_of(case)}")
            failures.append(error)
    assert count, "there is no case"
    if failures:
        raise BaseExceptionGroup(f"{len(failures)} of {count} cases", failures)

"""Internal errors: exceptions that say that this package itself is wrong, and how they are reported."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable

from airflow_connect.api.errors import InternalError
from airflow_connect.runtime.raised import words_for

_DEFECTS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    NotImplementedError,
    RecursionError,
    TypeError,
    ValueError,
)
_SURROUNDINGS = (MemoryError, OSError)
"""What a later attempt may not meet again; some of them are ValueErrors too."""

_OWN_MODULES = frozenset({"airflow_connect", *sys.stdlib_module_names})


def is_defect(error: BaseException) -> bool:
    """Whether the same code would fail in the same way again: a mistake in a program, not in what surrounds it."""
    return isinstance(error, _DEFECTS) and not isinstance(error, _SURROUNDINGS)


def is_own_defect(error: BaseException) -> bool:
    """Whether it is a defect that no plugin had a part in: every frame of its traceback is this package or Python's."""
    return is_defect(error) and all(
        str(frame.f_globals.get("__name__")).partition(".")[0] in _OWN_MODULES
        for frame, _ in traceback.walk_tb(error.__traceback__)
    )


def internal_error(error: BaseException, redact: Callable[[str], str]) -> InternalError:
    """The error that is reported for a defect; `redact` takes secrets out of its text."""
    return InternalError(
        f"Internal error, please report it: {redact(words_for(error))}.",
        suggestion="Add the traceback, which is in the log. Running again would fail in the same way.",
    )


def traceback_of(error: BaseException, redact: Callable[[str], str]) -> str:
    """The traceback for the log, without secrets."""
    return redact("".join(traceback.format_exception(error)).rstrip())

"""Internal errors: exceptions that indicate a bug in this package, and how they are reported."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable

from airflow_connect.errors import InternalError
from airflow_connect.runtime.reporting.exception_text import describe_exception

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
"""Errors that a later attempt may not have; some of them are also ValueErrors."""

_CONNECTOR = "Connector: "
_OWN_MODULES = frozenset({"airflow_connect", *sys.stdlib_module_names})


def is_defect(error: BaseException) -> bool:
    """Whether the same code would fail in the same way again: a mistake in a program, not in its environment."""
    return isinstance(error, _DEFECTS) and not isinstance(error, _SURROUNDINGS)


def is_own_defect(error: BaseException) -> bool:
    """Whether it is a bug without any plugin involved: every frame of its traceback is in this package or in Python."""
    return is_defect(error) and all(
        str(frame.f_globals.get("__name__")).partition(".")[0] in _OWN_MODULES
        for frame, _ in traceback.walk_tb(error.__traceback__)
    )


def name_connector(error: BaseException, name: str) -> None:
    """Let the report of a bug, and its traceback, say in which connector it was met; the first name stays."""
    if name and not _connector_of(error):
        error.add_note(f"{_CONNECTOR}{name}")


def _connector_of(error: BaseException) -> str:
    notes = getattr(error, "__notes__", ())
    return next((note.removeprefix(_CONNECTOR) for note in notes if note.startswith(_CONNECTOR)), "")


def internal_error(error: BaseException, redact: Callable[[str], str]) -> InternalError:
    """The error that is reported for a bug; `redact` removes secrets from its text."""
    name = _connector_of(error)
    where = f" in connector {name}" if name else ""
    return InternalError(
        f"Internal error{where}, please report it: {redact(describe_exception(error))}.",
        suggestion="Add the traceback, which is in the log. Running again would fail in the same way.",
    )


def traceback_of(error: BaseException, redact: Callable[[str], str]) -> str:
    """The traceback for the log, without secrets."""
    return redact("".join(traceback.format_exception(error)).rstrip())

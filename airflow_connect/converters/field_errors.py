"""Errors of values inside structs name the field."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import length_hint
from typing import Any

from airflow_connect.errors import DataError, FatalDataError


class FieldError(DataError):
    """A field of a struct cannot be converted.

    Attributes:
        path: names of the field and of those around it, from the outside, with dots.
        reason: the message without the path.
    """

    path = ""
    reason = ""


def in_field(error: DataError, members: Sequence[tuple[Any, ...]], rest: Iterator[Any]) -> DataError:
    """`error` with the name of the member that it comes from.

    Args:
        error: what converting a member raised.
        members: those of the struct, each with its name first.
        rest: the iterator over them, as the error left it: the member is the last one that it gave. So naming fields
            costs nothing as long as there is no error.
    """
    if isinstance(error, FatalDataError):
        return error
    name = members[-1 - length_hint(rest)][0]
    path, reason = (f"{name}.{error.path}", error.reason) if isinstance(error, FieldError) else (name, error.message)
    found = FieldError(f"{reason.rstrip('.')} (field {path}).", code=error.code, suggestion=error.suggestion)
    found.path, found.reason = path, reason
    return found

"""Words that PostgreSQL takes for the moment at which a row is written, such as `now` and `today`.

A text with one of them becomes another date or time with each try and each run, without an error.
Source: "Date/Time Types", section "Special Values", of the documentation of PostgreSQL.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from airflow_connect.api.schema import Type
from airflow_connect.errors import DataError

if TYPE_CHECKING:
    from airflow_connect.api.schema import Schema

_TIME = re.compile(r"(?:date|time|timestamp|(?:date|ts|tstz)(?:multi)?range)\b")
_WORD = re.compile(r"(?<![a-z])(?:now|today|tomorrow|yesterday)(?![a-z])", re.IGNORECASE)


def are_read(declared: str, schema: Schema) -> bool:
    """Whether a column reads such words in the texts of a field; `declared`: its type, a list of it included."""
    element = schema.value_schema if schema.type is Type.ARRAY else schema
    return element is not None and element.type is Type.STRING and _TIME.match(declared) is not None


class TimeWords:
    """The texts that such a column does not take for another moment."""

    def has(self, value: Any) -> bool:
        """Whether a text, or each text of a list, is one of them."""
        texts = value if isinstance(value, list) else [value]
        return not any(isinstance(text, str) and _WORD.search(text) for text in texts)

    def error(self, field: str, where: str) -> DataError:
        """Why a text is refused. `field`, `where`: of the record."""
        return DataError(
            f"The field {field} of {where} has a word that PostgreSQL takes for the time at which the row is written"
            " (now, today, tomorrow or yesterday): each try would write another value.",
            code="database.value",
            suggestion="Write a date or a time, or give the column a type of texts.",
        )

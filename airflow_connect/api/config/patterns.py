"""The check of keys that contain a Java regular expression."""

from __future__ import annotations

from typing import Any

from airflow_connect.api.config.values import invalid
from airflow_connect.java.patterns.compiled import compile_java_pattern
from airflow_connect.java.patterns.nodes import PatternError


def check_java_pattern(name: str, value: Any) -> None:
    """Validator of keys that contain a pattern; the message is Connect's up to the reason.

    Raises:
        InvalidValueError: it is not a valid pattern.
    """
    if not value:
        return
    try:
        compile_java_pattern(value)
    except PatternError as error:
        raise invalid(name, value, f"Invalid regex: {error}") from None

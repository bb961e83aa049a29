"""Maps that are written as lists of entries: a key that comes twice is an error, because a map would lose a value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from airflow_connect.errors import DataError


def map_of_entries(entries: Iterable[tuple[Any, Any]], what: str) -> dict[Any, Any]:
    """A map with these keys and values, in their order.

    Args:
        entries: keys and values.
        what: where they are, for the message, such as "the field headers".

    Raises:
        DataError: a key occurs twice, or is an array, a map or a struct.
    """
    found: dict[Any, Any] = {}
    count = 0
    try:
        for key, value in entries:
            found[key] = value
            count += 1
    except TypeError as error:
        raise DataError(
            "A map with arrays, maps or structs as keys cannot be held in memory.",
            code="data.map_key",
            suggestion="Such maps are not supported; use a primitive type for the keys.",
        ) from error
    if len(found) == count:
        return found
    raise DataError(
        f"The {count} entries of {what} are read as a map, but have only {len(found)} different keys. A map keeps one "
        "value of each key, so the other values would be lost.",
        code="data.map_key_twice",
        suggestion="Correct the producer, or copy the topic with ByteArrayConverter. Kafka Connect keeps the last "
        "value of each key.",
    )

"""Lists of names in configurations of transformations."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_connect.api.config.validators import ValidList


class Names:
    """A list of names without blanks; a name may occur in it twice.

    Where Connect configures a plugin it takes duplicates out of such lists, with a warning in its log (Kafka 4.1 and
    later, recorded); where it validates connectors it refuses them (`ValidList`).
    """

    def __init__(self, *, empty_allowed: bool = True) -> None:
        """Keep what is allowed."""
        self._list = ValidList(empty_allowed=empty_allowed)

    def check(self, name: str, value: Sequence[str] | None) -> None:
        """Checks for null, empty and blank, in this order."""
        self._list.check(name, value and list(dict.fromkeys(value)))

    def __str__(self) -> str:
        """Any name is valid."""
        return ""

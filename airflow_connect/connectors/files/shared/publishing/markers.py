"""Markers of complete directories: an empty file in each, like the `_SUCCESS` file that Hadoop's jobs write."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_connect.documents.run import PublishedRun
    from airflow_connect.stores.store import FilePublisher


class Markers:
    """The step after publishing that creates them."""

    def __init__(self, name: str, delimiter: str) -> None:
        """`name`: `complete.marker`; `delimiter`: between directories."""
        self._name = name
        self._delimiter = delimiter

    def __call__(self, run: PublishedRun, publisher: FilePublisher) -> None:
        """Create a marker in each complete directory.

        Raises:
            AccessError, UnavailableError: the store refused, or did not respond.
        """
        if run.complete:
            publisher.mark([f"{directory['directory']}{self._delimiter}{self._name}" for directory in run.complete])

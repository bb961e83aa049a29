"""Markers of complete directories: an empty file in each, such as the `_SUCCESS` that Hadoop's jobs leave behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_connect.api.run import PublishedRun
    from airflow_connect.stores.store import FilePublisher


class Markers:
    """The step after publishing that puts them."""

    def __init__(self, name: str, delimiter: str) -> None:
        """`name`: `complete.marker`; `delimiter`: between directories."""
        self._name = name
        self._delimiter = delimiter

    def __call__(self, run: PublishedRun, publisher: FilePublisher) -> None:
        """Put a marker into each directory that is complete.

        Raises:
            AccessError, UnavailableError: the store refused, or did not answer.
        """
        if run.complete:
            publisher.mark([f"{directory.directory}{self._delimiter}{self._name}" for directory in run.complete])

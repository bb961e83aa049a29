"""Publishing: what makes staged files visible, and how a sweep recognises those that were never published."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from airflow_connect.api.json_document import JsonDocument, from_plain
from airflow_connect.api.offsets import OffsetRange

if TYPE_CHECKING:
    from airflow_connect.api.sink import StagingSinkConnector
    from airflow_connect.api.staging import LeftOver, Outcome, StagedFile

ALL_LISTED = r"(?s).*"
"""Pattern of a connector that lists only its own staged files: every listed file is a leftover."""

SWEEPS = 3
"""How many later runs look for the leftovers of a run."""


@dataclass(frozen=True, slots=True)
class LeftoverPattern(JsonDocument):
    """How to recognise files that runs of this connector staged and never published (invariant 8).

    Attributes:
        store: where they are, e.g. a bucket name; a sweep elsewhere would be wrong.
        prefixes: key prefixes to list.
        pattern: regular expression that matches a whole key, with the groups `topic`, `partition` and `start`. Without
            groups: the publisher lists only files of this connector.
        ranges: ranges of the runs that may have left something.
        probe_prefix: prefix of the keys of the store's own trial uploads, or "". They are empty, so discarding one that
            another connector has just begun does no harm.
        sweeps: how many later runs look for such files, the next one included: requests of a dead process, a lost
            executor or a copy of a slow task may arrive after the first sweep.
    """

    MAY_LACK = frozenset()

    store: str
    prefixes: tuple[str, ...]
    pattern: str
    ranges: tuple[OffsetRange, ...]
    probe_prefix: str = ""
    sweeps: int = SWEEPS

    def matches(self, key: str) -> bool:
        """Whether such a run could have staged a file named `key`."""
        if self.probe_prefix and key.startswith(self.probe_prefix):
            return True
        found = re.fullmatch(self.pattern, key)
        if found is None or not found.re.groups:
            return found is not None
        topic, partition, start = found["topic"], int(found["partition"]), int(found["start"])
        return any(r.topic == topic and r.partition == partition and r.start <= start < r.end for r in self.ranges)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LeftoverPattern:
        """Inverse of `to_json`; earlier releases, which swept once, did not write `sweeps`."""
        return from_plain(cls, {"sweeps": 1, **data})


class Publisher(Protocol):
    """Makes staged files visible, on the driver only."""

    @property
    def possible_duplicates(self) -> bool:
        """Whether this publisher may itself have staged something that only a listing finds."""

    def preflight(self) -> None:
        """Check reachability, bucket or directory, region and permissions before anything is copied.

        Raises:
            AccessError, UnavailableError, ConfigError: with what is missing.
        """

    def publish(self, files: Sequence[StagedFile], progress: Callable[[int], None]) -> dict[str, Outcome]:
        """Make files visible, in parallel and idempotently; returns key -> outcome. `progress` gets the number done.

        Raises:
            PublishConflictError: a key holds an object other than the one in the manifest.
            UnavailableError: after all retries; publishing again continues.
        """

    def abort(self, files: Iterable[StagedFile | LeftOver]) -> int:
        """Discard staged files; idempotent; returns how many existed."""

    def list_staged(self, prefixes: Iterable[str]) -> Iterable[LeftOver]:
        """Everything staged and unpublished whose final key starts with one of the prefixes, whoever staged it.

        `LeftOver.key` is `FileIdentity.key` of the file, whether or not it was closed.
        """

    def close(self) -> None:
        """Release connections; idempotent."""


class ConnectorPublisher:
    """The publisher of a connector that has `publish`, `abort` and `list_staged` itself."""

    possible_duplicates = True
    """It is unknown how the connector stages files, so every run looks for leftovers."""

    def __init__(self, connector: StagingSinkConnector) -> None:
        """`connector`: started."""
        self._connector = connector

    def preflight(self) -> None:
        """Let the connector check whether it can write."""
        self._connector.preflight()

    def publish(self, files: Sequence[StagedFile], progress: Callable[[int], None]) -> dict[str, Outcome]:
        """Let the connector make files visible."""
        if not files:
            return {}
        outcomes = dict(self._connector.publish(files))
        progress(len(files))
        return outcomes

    def abort(self, files: Iterable[StagedFile | LeftOver]) -> int:
        """Let the connector discard staged files."""
        discarded = list(files)
        return int(self._connector.abort(discarded)) if discarded else 0

    def list_staged(self, prefixes: Iterable[str]) -> Iterable[LeftOver]:
        """What the connector finds of its own; it needs no prefixes."""
        return list(self._connector.list_staged())

    def close(self) -> None:
        """The connector's own `stop` releases what it opened."""

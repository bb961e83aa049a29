"""The connector's journal: state, open manifest, run history. Every write is one fenced transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.exactly_once.manifest import Manifest
from airflow_connect.exactly_once.state import ConnectorState


@dataclass(frozen=True, slots=True)
class JournalView:
    """What the journal holds when a run starts."""

    state: ConnectorState | None = None
    manifest: Manifest | None = None


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """A record that `commit` writes to another topic in its transaction: a dead letter.

    Attributes:
        timestamp: milliseconds since the epoch, or None for now.
        partition: -1 to derive it from the key.
        origin: of what it is a copy, `topic-partition@offset`, for messages.
    """

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int | None = None
    partition: int = -1
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Commit:
    """What one commit transaction writes, all or nothing (invariant 5).

    Attributes:
        offsets: next offset to read per topic-partition, for the group `connect-<name>`.
        state: the connector's new state.
        summary: the run's entry in the history, or None.
        dead_letters: records for the dead letter queue.
        closes_manifest: whether the open manifest ends with this commit.
    """

    offsets: Mapping[TopicPartition, int]
    state: ConnectorState
    summary: Mapping[str, Any] | None = None
    dead_letters: Sequence[TopicRecord] = field(default_factory=tuple)
    closes_manifest: bool = False


class Journal(Protocol):
    """Where a connector's state is kept. `KafkaJournal` is the real one; tests also run the protocol on a model."""

    def fence(self) -> None:
        """Make every earlier run of the connector unable to write (invariant 2).

        Raises:
            UnavailableError, AccessError: Kafka does not answer, or refuses.
        """

    def read(self) -> JournalView:
        """Latest committed state and open manifest."""

    def begin(self, state: ConnectorState) -> None:
        """Record which run copies from now on, and what its leftovers would look like.

        A run calls it before it copies what it planned, and before it publishes the manifest of an earlier run, some of
        whose files it may have to copy again. From then on, a fenced run discards no files that it finds in a listing.

        Raises:
            FencedError: a newer run has taken over.
        """

    def write_manifest(self, manifest: Manifest) -> None:
        """Write or replace the open manifest in one transaction: the point of no return (invariant 3).

        Raises:
            FencedError: a newer run has taken over; nothing was written.
            UnavailableError: it was not written, or the outcome is unknown; the next run finds out.
        """

    def commit(self, commit: Commit) -> None:
        """Carry out a `Commit` in one transaction (invariant 5).

        Raises:
            FencedError, UnavailableError: as above.
        """

    def close(self) -> None:
        """Release the producer."""

"""The committed offsets of a source, as connector and tasks may request them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_connect.api.source import SourceOffset, SourcePartition
    from airflow_connect.kafka.state.offsets.offsets_topic import SourceOffsets


class CommittedOffsets:
    """`api.source.OffsetReader`."""

    def __init__(self, read: Callable[[], SourceOffsets]) -> None:
        """`read`: returns the offsets; called once, at the first request."""
        self._read = read

    def offset(self, partition: SourcePartition) -> SourceOffset | None:
        """The committed offset of a source partition."""
        return self._stored.get(partition)

    def offsets(self, partitions: Iterable[SourcePartition]) -> list[SourceOffset | None]:
        """The committed offsets, in the order of `partitions`."""
        return [self._stored.get(partition) for partition in partitions]

    def committed(self) -> Iterable[tuple[SourcePartition, SourceOffset]]:
        """Every source partition of the connector that has an offset."""
        return self._stored.items()

    @cached_property
    def _stored(self) -> SourceOffsets:
        return self._read()


__all__ = ["CommittedOffsets"]

"""Partitions that no run has committed yet, but that another connector may have copied in part.

A sink whose files tell their offsets can say where they end: its class has `takes_over = True`, as that of the HDFS
sink, and its driver role the method of `TakesOver`. What it says wins over the group's offset. It is asked for
partitions without a committed offset in the connector's state: once in the life of a connector, and again only for
partitions that are new.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from airflow_connect.api import plugins
from airflow_connect.api.offsets import TopicPartition
from airflow_connect.planning.planner import LogState, Memory, Positions

if TYPE_CHECKING:
    from airflow_connect.runtime.driver.configuration import RunConfiguration


class TakesOver(Protocol):
    """What the driver role of such a sink has beside a `SinkDriver`."""

    @property
    def store_name(self) -> str:
        """Where files go."""

    def taken_over(self, partitions: Iterable[TopicPartition], *, apply: bool) -> Mapping[TopicPartition, int]:
        """First offset that is not in files yet, for those of `partitions` that have any.

        Args:
            partitions: what no run of this connector has committed.
            apply: whether what the other connector had begun is finished; false where somebody only looks.

        Raises:
            ConnectError: the store refused, or did not answer.
        """


class Beginning(NamedTuple):
    """What taking over found: offsets by partition, and sentences for people."""

    offsets: Mapping[TopicPartition, int]
    notes: tuple[str, ...]

    def in_log(self, log: LogState) -> LogState:
        """The same log, with these offsets as if the group had them."""
        return replace(log, committed={**log.committed, **self.offsets})

    def in_positions(self, positions: Positions) -> Positions:
        """The same positions; these offsets are committed even where there is nothing to copy."""
        starts = {r.topic_partition: r.start for r in positions.ranges}
        to_commit = {**positions.to_commit, **{tp: starts[tp] for tp in self.offsets if tp in starts}}
        return replace(positions, to_commit=to_commit, notes=(*self.notes, *positions.notes))


NOTHING = Beginning({}, ())


def beginning(config: RunConfiguration, log: LogState, memory: Memory, *, apply: bool) -> Beginning:
    """Ask the sink about partitions that the connector's state does not know.

    Raises:
        ConnectError: the store refused, or did not answer.
    """
    unknown = sorted(tp for tp in log.earliest if tp not in memory.committed)
    # The class is asked first: a run without anything to copy opens no driver role.
    if not unknown or not getattr(plugins.load(config.resolved.connector.connector), "takes_over", False):
        return NOTHING
    opened: Any = config.open_driver()
    driver: TakesOver = opened
    found = driver.taken_over(unknown, apply=apply)
    notes = tuple(_note(tp, found[tp], log.committed.get(tp), driver.store_name) for tp in sorted(found))
    return Beginning(found, notes)


def _note(tp: TopicPartition, offset: int, committed: int | None, store: str) -> str:
    if committed is None or committed == offset:
        return f"{tp} goes on at {offset}, where the files of an earlier connector in {store} end."
    return (
        f"{tp} goes on at {offset}, where the files of an earlier connector in {store} end; the group's offset"
        f" {committed} does not count."
    )

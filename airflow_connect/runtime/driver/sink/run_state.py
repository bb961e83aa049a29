"""What one step of a sink's run passes to the next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_connect.api.offsets import TopicPartition
    from airflow_connect.api.publishing import LeftoverPattern
    from airflow_connect.documents.run_lag import RunLag
    from airflow_connect.documents.run_tables import TableCommit
    from airflow_connect.exactly_once.manifest import Manifest
    from airflow_connect.exactly_once.state import ConnectorState

_COUNTS = ("records", "files", "size_bytes")


@dataclass(frozen=True, slots=True)
class SinkRunState:
    """What one step of a run passes to the next; a step that changes something returns a new one.

    Attributes:
        connector: the connector's state record, as the journal has it or is to have it.
        resweep: leftovers that later runs must sweep again.
        is_stale: the journal's record must be replaced, even if there is nothing to copy.
        complete: documents of what this run announces as complete.
        tables: snapshots of tables that this run tells of.
        recovered: the manifest of an earlier run that this run has published and committed; None: there was none.
        lag: as the plan found it; None: there is no plan yet.
        must_sweep: this run has staged files that its manifest does not name.
        notes: for the report, about what was recovered.
    """

    connector: ConnectorState
    resweep: tuple[LeftoverPattern, ...] = ()
    is_stale: bool = False
    complete: tuple[Mapping[str, Any], ...] = ()
    tables: tuple[TableCommit, ...] = ()
    recovered: Manifest | None = None
    lag: RunLag | None = None
    must_sweep: bool = False
    notes: tuple[str, ...] = ()

    @property
    def recovered_run_id(self) -> str:
        """The run whose manifest it was, or ""."""
        return "" if self.recovered is None else self.recovered.run_id

    @property
    def recovered_counts(self) -> dict[str, int]:
        """See `RunReport.recovered`."""
        if self.recovered is None:
            return {}
        return {name: self.recovered.counts.get(name, 0) for name in _COUNTS}

    @property
    def recovered_offsets(self) -> Mapping[TopicPartition, int]:
        """The offsets that were committed with it."""
        return {} if self.recovered is None else self.recovered.offsets

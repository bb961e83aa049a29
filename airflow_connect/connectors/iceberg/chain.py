"""The chain: a property of a table that says which runs of a connector have been published there, newest first.

It moves in the commit that adds a run's snapshot, so it is as exact as the snapshot. It outlives the snapshot, which
somebody may expire. Counters would not do: they start again if the topic of runs is deleted, and then every run would
look published.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from airflow_connect.errors import StateError

RUNS_KEPT = 16
"""More than the later runs that sweep what a run has left (`api.publishing.SWEEPS`)."""
PREFIX = "airflow-connect."


def property_name(connector: str, branch: str) -> str:
    """The property of one connector and branch."""
    return f"{PREFIX}{connector}.{branch}.published"


def snapshot_id(run_id: str, table_uuid: str, branch: str) -> int:
    """The id of a run's snapshot: positive, 63 bits. All attempts to publish it use the same id."""
    digest = hashlib.sha256(f"{run_id} {table_uuid} {branch}".encode()).digest()
    return (int.from_bytes(digest[:8], "big") >> 1) or 1


@dataclass(frozen=True, slots=True)
class Chain:
    """The runs that have been published; `runs`: newest first."""

    runs: tuple[str, ...] = ()

    @classmethod
    def of(cls, properties: Mapping[str, str], connector: str, branch: str) -> Chain:
        """Read the property of a table; empty if there is none.

        Raises:
            StateError: it is not what this sink has written.
        """
        name = property_name(connector, branch)
        text = properties.get(name)
        if text is None:
            return cls()
        try:
            return cls(tuple(msgspec.json.decode(text, type=dict[str, list[str]])["runs"]))
        except (msgspec.MsgspecError, KeyError) as error:
            raise StateError(
                f"The property {name} of the table cannot be read.",
                suggestion="Only this connector may write it. Restore its value from an earlier version of the table's"
                " metadata.",
            ) from error

    @property
    def last(self) -> str:
        """The run that was published last, or ""."""
        return self.runs[0] if self.runs else ""

    def after(self, run_id: str) -> str:
        """The value of the property once `run_id` is published."""
        return msgspec.json.encode({"runs": [run_id, *self.runs][:RUNS_KEPT]}).decode()

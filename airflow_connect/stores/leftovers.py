"""How files look that a run staged and never published: the only files that a sweep may touch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_connect.api.offsets import OffsetRange

PROBE_NAME = ".airflow-connect-preflight"
"""First part of the names under which a preflight starts an upload, to see whether it may."""

SWEEPS = 3
"""How many later runs look for what a run has left behind."""


@dataclass(frozen=True, slots=True)
class LeftoverPattern:
    """How to recognise files that runs of this connector staged and never published (invariant 8).

    Attributes:
        store: where they are, e.g. a bucket name; a sweep elsewhere would be wrong.
        prefixes: key prefixes to list.
        pattern: regular expression that a whole key matches, with the groups `topic`, `partition` and `start`. Without
            groups: the publisher lists nothing but what is this connector's own.
        ranges: ranges of the runs that may have left something.
        probe_prefix: what the keys of the store's own trial uploads start with, or "". They hold nothing, so
            discarding one that another connector has just begun harms nobody.
        sweeps: how many later runs look for such files, the next one included: requests of a dead process, a lost
            executor or a copy of a slow task may arrive after the first sweep.
    """

    store: str
    prefixes: tuple[str, ...]
    pattern: str
    ranges: tuple[OffsetRange, ...]
    probe_prefix: str = ""
    sweeps: int = SWEEPS

    def matches(self, key: str) -> bool:
        """Whether `key` is the name of a file that such a run would have staged."""
        if self.probe_prefix and key.startswith(self.probe_prefix):
            return True
        found = re.fullmatch(self.pattern, key)
        if found is None or not found.re.groups:
            return found is not None
        topic, partition, start = found["topic"], int(found["partition"]), int(found["start"])
        return any(r.topic == topic and r.partition == partition and r.start <= start < r.end for r in self.ranges)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON form."""
        return {
            "store": self.store,
            "prefixes": list(self.prefixes),
            "pattern": self.pattern,
            "ranges": [r.to_json() for r in self.ranges],
            "probe_prefix": self.probe_prefix,
            "sweeps": self.sweeps,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LeftoverPattern:
        """Inverse of `to_json`."""
        ranges = tuple(OffsetRange.from_json(r) for r in data["ranges"])
        return cls(
            data["store"],
            tuple(data["prefixes"]),
            data["pattern"],
            ranges,
            data["probe_prefix"],
            data.get("sweeps", 1),  # Earlier releases did not write it.
        )

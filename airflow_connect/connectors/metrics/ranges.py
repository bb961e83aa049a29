"""Ranges of host names: how hosts are divided among tasks without listing them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

FROM, TO = "task.hosts.from", "task.hosts.to"


class HostRange(NamedTuple):
    """Names `[start, end)` in character order; "" means unbounded."""

    start: str = ""
    end: str = ""

    def __contains__(self, host: object) -> bool:
        """Whether a host is in the range."""
        return isinstance(host, str) and self.start <= host and (not self.end or host < self.end)

    def config(self) -> dict[str, str]:
        """The range as keys of a task's configuration."""
        return {FROM: self.start, TO: self.end}

    @classmethod
    def of(cls, config: Mapping[str, str]) -> HostRange:
        """The inverse of `config`."""
        return cls(config.get(FROM, ""), config.get(TO, ""))


def ranges_of(hosts: Sequence[str], count: int) -> list[HostRange]:
    """Between 1 and `count` ranges with about the same number of hosts each.

    Together they cover every possible name, so a host that appears between planning and sampling is in one of them.

    Args:
        hosts: sorted, distinct.
        count: > 0.
    """
    parts = max(1, min(count, len(hosts)))
    bounds = ["", *(hosts[len(hosts) * part // parts] for part in range(1, parts)), ""]
    return [HostRange(start, end) for start, end in pairwise(bounds)]

"""When a run of a Java source is complete.

An empty `poll` alone tells nothing: Debezium reads in threads of its own, and returns nothing until they have found
something. So a run ends only if the plugin is ready, has returned nothing in several polls, and has done so for a while
since it became ready. Otherwise a slow start would be an empty run, again and again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_connect.errors import JavaBlockedError, JavaNotReadyError

_FIRST_GRACE_MS, _LATER_GRACE_MS = 30_000, 5_000


@dataclass(slots=True)
class EndRule:
    """The rule of one task.

    Attributes:
        name: of the connector's class, for messages.
        idle_ms, idle_polls, start_timeout_ms, block_timeout_ms: see the keys.
        grace_ms: how long to wait for the first record if the plugin does not tell whether it is ready.
        has_records: whether the plugin has returned anything in this run.
    """

    name: str
    idle_ms: int
    idle_polls: int
    start_timeout_ms: int
    block_timeout_ms: int
    grace_ms: int
    has_records: bool = False
    _waited_from: float | None = field(default=None, init=False)

    @staticmethod
    def grace_of(given: int | None, *, has_offsets: bool) -> int:
        """`airflow.java.start.grace.ms`, or its default."""
        if given is not None:
            return given
        return _LATER_GRACE_MS if has_offsets else _FIRST_GRACE_MS

    def saw_records(self) -> None:
        """The plugin has returned something."""
        self.has_records = True
        self._waited_from = None

    def is_over(self, state: Mapping[str, Any], now: float) -> bool:
        """Whether the run is complete.

        Args:
            state: what the host tells after polls that returned nothing (`SourceHost.java`).
            now: seconds of a monotonic clock.

        Raises:
            JavaNotReadyError: the plugin is not ready for too long.
            JavaBlockedError: a poll has not returned for too long.
        """
        if self._waited_from is None:
            self._waited_from = now
        if state["blocked_ms"] >= self.block_timeout_ms:
            raise JavaBlockedError(
                f"A poll of {self.name} has not returned for {state['blocked_ms'] / 1000:.0f} s.{_stack(state)}",
                suggestion="The next run continues after the last committed offset. If the plugin waits there for new"
                " input, it cannot tell a run that it has none; otherwise raise airflow.java.block.timeout.ms.",
            )
        if not state["ready"]:
            waited_ms = (now - self._waited_from) * 1000
            if waited_ms >= self.start_timeout_ms:
                raise JavaNotReadyError(
                    f"{self.name} was not ready after {waited_ms / 1000:.0f} s: {state['why']}.",
                    suggestion="Nothing is lost: the next run continues after the last committed offset. See the log"
                    " of the task for what the plugin says, or raise airflow.java.start.timeout.ms.",
                )
            return False
        least_ms = self.idle_ms
        if not self.has_records and not state.get("gated", False):
            least_ms = max(least_ms, self.grace_ms)
        return bool(state["empty_polls"] >= self.idle_polls and state["idle_ms"] >= least_ms)


def _stack(state: Mapping[str, Any]) -> str:
    return f" It is at: {state['stack'].strip()}" if state.get("stack") else ""

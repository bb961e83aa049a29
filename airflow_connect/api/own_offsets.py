"""Sinks whose tasks move the offsets of the consumer group themselves: what a run asks of their connector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_connect.api.offsets import TopicPartition
    from airflow_connect.api.sink_state import PlannedRun

MEMBER_CLIENT = "airflow-connect-member"
"""`client.id` of a task that is a member of the group of its connector."""
SESSION_TIMEOUT, SESSION_TIMEOUT_MS = "session.timeout.ms", "20000"
"""How long such a task stays a member after it was killed, unless the connector sets the key: the next run waits."""


class OwnOffsets:
    """A part of `SinkConnector`. By default only the run commits offsets."""

    @classmethod
    def commits_offsets(cls, config: Mapping[str, str]) -> bool:
        """Whether tasks move the offsets of the consumer group themselves, together with their output.

        A run then expects that offsets of its partitions have moved, up to the end of its plan. It commits the ends of
        the plan as always, once the tasks are done.
        """
        return False

    def unjudged(self, kept: Mapping[str, Any]) -> Mapping[TopicPartition, int]:
        """Where the last run began, if it has ended without a commit: it knew which records had failed, and is gone.

        Only for a connector that commits offsets itself, and only asked with `errors.tolerance=all`. The records from
        there on are read again, and failures among them counted and kept as dead letters. Tasks must not write again
        what the group has as written. Called before `start`, also for a plan that is only shown.

        Args:
            kept: the connector's document, as `plan_state` of that run returned it, or `state_after` of a complete one.
        """
        return {}

    def unfinished(self, run: PlannedRun) -> Sequence[str]:
        """Finish what an earlier run has left that was killed; called if a run has nothing to copy.

        Only for a connector that commits offsets itself: the offsets of such a run may be committed, although its
        output is not visible yet. A run with records finishes it by itself.

        Returns:
            Sentences for the report; empty if nothing was left.

        Raises:
            ConnectError: it could not be finished.
        """
        return ()

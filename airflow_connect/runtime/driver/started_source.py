"""The connector object of a source while the driver needs it. Also its context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_connect.api.errors import TaskFailedError
from airflow_connect.api.source import SourceConnector
from airflow_connect.runtime.committed_offsets import CommittedOffsets
from airflow_connect.runtime.driver.plugin_driver import Started

if TYPE_CHECKING:
    from airflow_connect.api.sink_roles import RoleContext
    from airflow_connect.api.source import OffsetChanges, SourceOffset, SourcePartition
    from airflow_connect.kafka.offsets_topic import SourceOffsets
    from airflow_connect.runtime.notes import Notes


class StartedSource(Started):
    """A source connector that is started on first use and stopped once."""

    def __init__(
        self,
        connector: type[SourceConnector],
        role: RoleContext,
        offsets: SourceOffsets,
        notes: Notes,
        *,
        only_plans: bool = False,
    ) -> None:
        """`offsets`: what the connector may ask for; `notes`: takes its sentences."""
        super().__init__(connector, role)
        self.aws = role.aws
        self.only_plans = only_plans
        self._notes = notes
        self.offset_reader = CommittedOffsets(lambda: offsets)
        self._name = connector.__name__

    def __enter__(self) -> StartedSource:
        """Nothing yet."""
        return self

    def note(self, sentence: str) -> None:
        """Put a sentence into the report of the run."""
        self._notes.add(sentence)

    @staticmethod
    def settles(connector: type[SourceConnector]) -> bool:
        """Whether the class rewrites offsets between tasks."""
        return connector.settle_offsets is not SourceConnector.settle_offsets

    def task_configs(self, max_tasks: int) -> list[Mapping[str, str]]:
        """What the connector says each task is to be configured with.

        Raises:
            ConnectError: it says too much, or fails. None at all means that there is nothing to read.
        """
        found: list[Mapping[str, str]] = self.call(
            "task_configs", lambda connector: [dict(config) for config in connector.task_configs(max_tasks)]
        )
        if len(found) > max_tasks:
            raise TaskFailedError(
                f"The connector has generated {len(found)} task configurations and was asked for up to {max_tasks} "
                f"({self._name}.task_configs).",
                code="plugin.task_configs",
                suggestion="It must not return more than tasks.max.",
            )
        return found

    def settle_offsets(self) -> OffsetChanges:
        """Offsets that the connector wants to have rewritten."""

        def settle(connector: Any) -> list[tuple[SourcePartition, SourceOffset | None]]:
            return list(connector.settle_offsets(list(self.offset_reader.committed())))

        return self.call("settle_offsets", settle)

"""The connector object of a source in the driver. Also its context."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_connect.api.source import SourceConnector
from airflow_connect.errors import TaskFailedError
from airflow_connect.kafka.state.offsets.offsets_topic import identity
from airflow_connect.runtime.committed_offsets import CommittedOffsets
from airflow_connect.runtime.driver.started import Started
from airflow_connect.runtime.left_out import LeftOut

if TYPE_CHECKING:
    from airflow_connect.api.source import OffsetChanges, SourceOffset, SourcePartition
    from airflow_connect.errors import ConnectError
    from airflow_connect.kafka.state.offsets.offsets_topic import SourceOffsets
    from airflow_connect.runtime.driver.started import ConnectorRun
    from airflow_connect.runtime.reporting.notes import Notes


class StartedSource(Started):
    """A source connector that is started on first use and stopped once.

    Attributes:
        keeps: its document for the next run.
        keeps_at_once: whether the document takes effect before tasks run.
        expected: parts that the tasks have to copy, and what they are; (0, ""): it does not tell.
    """

    def __init__(
        self,
        connector: type[SourceConnector],
        run: ConnectorRun,
        offsets: SourceOffsets,
        notes: Notes,
        *,
        only_plans: bool = False,
        ended_by: Collection[str] | None = None,
    ) -> None:
        """Nothing is called yet.

        Args:
            connector: its class.
            run: what it gets.
            offsets: what the connector may read.
            notes: receives its sentences.
            only_plans: whether no task will run.
            ended_by: why the tasks of the run have ended; None: they have not.
        """
        super().__init__(connector, run)
        self.only_plans, self.tasks_ended = only_plans, ended_by is not None
        self.limits_reached = frozenset(reason for reason in ended_by or () if reason.startswith("run.max."))
        self._notes = notes
        self.left_out = LeftOut()
        self.offset_reader = CommittedOffsets(lambda: offsets)
        self._name = connector.__name__
        self.keeps = run.kept
        self.keeps_at_once = False
        self.expected = (0, "")

    @property
    def cluster_id(self) -> str:
        """Kafka's id of the cluster that records go to."""
        return self._run.cluster_id

    @property
    def admin_settings(self) -> Mapping[str, Any]:
        """Settings of an admin client of that cluster."""
        return self._run.admin_settings()

    @property
    def kept(self) -> Mapping[str, Any]:
        """The document that the last run kept."""
        return self._run.kept

    def keep(self, document: Mapping[str, Any], *, at_once: bool = False) -> None:
        """Keep a document for the next run."""
        self.keeps, self.keeps_at_once = dict(document), at_once

    def expect_parts(self, number: int, what: str) -> None:
        """Tell pages what the tasks have to copy."""
        self.expected = (number, what)

    def note(self, sentence: str) -> None:
        """Put a sentence into the report of the run."""
        self._notes.add(sentence)

    def leave_out(self, part: str, error: ConnectError) -> None:
        """Fail the run because of a part of the source, when the others are committed."""
        self.left_out.add(part, error)

    @staticmethod
    def reconciles(connector: type[SourceConnector]) -> bool:
        """Whether the class rewrites offsets between tasks."""
        return connector.reconcile_offsets is not SourceConnector.reconcile_offsets

    def task_configs(self, max_tasks: int) -> list[Mapping[str, str]]:
        """The configuration of each task, from the connector.

        Raises:
            ConnectError: it returns too many, or fails. An empty list means that there is nothing to read.
        """
        found: list[Mapping[str, str]] = self.call(
            "task_configs", lambda connector: [dict(config) for config in connector.task_configs(max_tasks)]
        )
        if len(found) > max_tasks:
            raise TaskFailedError(
                f"The connector returned {len(found)} task configurations, but at most {max_tasks} were requested "
                f"({self._name}.task_configs).",
                code="plugin.task_configs",
                suggestion="It must not return more than tasks.max.",
            )
        return found

    def source_partitions(self, task_configs: Sequence[Mapping[str, str]]) -> list[frozenset[str] | None]:
        """Identities of the source partitions whose offsets each task needs; None: the connector does not know.

        Raises:
            ConnectError: it fails.
        """
        if self._class.source_partitions is SourceConnector.source_partitions:
            return [None] * len(task_configs)

        def ask(connector: Any, config: Mapping[str, str]) -> frozenset[str] | None:
            found = connector.source_partitions(dict(config))
            return None if found is None else frozenset(identity(dict(partition)) for partition in found)

        return [self.call("source_partitions", partial(ask, config=config)) for config in task_configs]

    def reconcile_offsets(self) -> OffsetChanges:
        """Offsets that the connector wants to rewrite."""

        def reconcile(connector: Any) -> list[tuple[SourcePartition, SourceOffset | None]]:
            return list(connector.reconcile_offsets(list(self.offset_reader.committed())))

        return self.call("reconcile_offsets", reconcile)

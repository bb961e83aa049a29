"""The connector object of a sink in the driver: one per configuration of a run. Also its context."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow_connect.api.cluster_facts import TopicChange
from airflow_connect.api.columns import ColumnarSinkConnector
from airflow_connect.api.publishing import LeftoverPattern
from airflow_connect.api.sink import SinkConnector, Splitting, StagingSinkConnector
from airflow_connect.api.sink_state import PlannedState, StateAfter
from airflow_connect.config.keys import sink as keys
from airflow_connect.counting import plural
from airflow_connect.documents.run_tables import kept_in_report, notes_on_left_out
from airflow_connect.errors import TaskFailedError
from airflow_connect.runtime.driver.checks.sinks import overrides
from airflow_connect.runtime.driver.sink.publishers import NoPublisher, SinkPublisher
from airflow_connect.runtime.driver.started import ConnectorRun, Started
from airflow_connect.runtime.plain_documents import plain_document

if TYPE_CHECKING:
    from airflow_connect.api.cluster_facts import ClusterFacts
    from airflow_connect.api.offsets import OffsetRange, TopicPartition
    from airflow_connect.api.publishing import Publisher
    from airflow_connect.api.schema import Schema
    from airflow_connect.api.sink_roles import Jvm, SinkGroup
    from airflow_connect.api.sink_state import CopiedRun, PlannedRun
    from airflow_connect.api.staging import StagedFile
    from airflow_connect.documents.run import PublishedRun
    from airflow_connect.documents.run_tables import TableCommit

NOTHING_STAGED = r"(?!)"
"""Pattern of a sink that does not stage."""
COUNTS_OF_CONNECTORS = ("late",)
"""Counts of `StateAfter` that a report has."""


class StartedSink(Started):
    """Calls a sink connector for what the run needs; see `SinkConnector` and `StagingSinkConnector`.

    A method that the class does not override is answered without starting the object. All errors become ours.
    """

    def __init__(self, connector: type[SinkConnector], run: ConnectorRun, *, overwrite: bool = False) -> None:
        """`connector`: the class, checked; `overwrite`: see `SinkConnectorContext`."""
        super().__init__(connector, run)
        self.overwrite = overwrite
        self._stages = issubclass(connector, StagingSinkConnector)
        # A defect of a built-in sink is an internal error to report; the user must not look for it in the connector.
        self._raises_defects = connector.__module__.startswith("airflow_connect.")

    @cached_property
    def cluster(self) -> ClusterFacts:
        """See `SinkConnectorContext`."""
        from airflow_connect.kafka.admin.cluster_facts import AskedCluster

        return AskedCluster(self._run.admin_settings())

    @cached_property
    def group(self) -> SinkGroup:
        """See `SinkConnectorContext`."""
        return self._run.group()

    @staticmethod
    def start_jvm(folders: Sequence[str], options: Sequence[str]) -> Jvm:
        """See `SinkConnectorContext`."""
        from airflow_connect.runtime.engine.hadoop_jvm import start_hadoop_jvm

        return start_hadoop_jvm(folders, options)

    def check(self) -> None:
        """Find what is wrong with the configuration, offline.

        Raises:
            ConnectError: the connector refuses it.
        """
        if self._overrides("check_config"):
            self.call_unstarted("check_config", lambda connector: connector.check_config(dict(self._run.config)))

    def stop(self) -> None:
        """Close the publisher and stop the connector, as far as they were used."""
        self.publisher.close()
        super().stop()

    # --- before and after the copy --------------------------------------------------------------------------------

    def first_offsets(self, partitions: Collection[TopicPartition], *, apply: bool) -> Mapping[TopicPartition, int]:
        """Where an earlier connector has ended."""
        if not partitions or not self._overrides("first_offsets"):
            return {}
        return self.call("first_offsets", lambda connector: dict(connector.first_offsets(partitions, apply=apply)))

    @property
    def keeps_offsets(self) -> bool:
        """Whether the target may have offsets of its own."""
        return self._overrides("kept_offsets")

    def kept_offsets(
        self, topic_ids: Mapping[TopicPartition, str], last_run_id: str, kept: Mapping[str, Any]
    ) -> Mapping[TopicPartition, int]:
        """The offsets in a target that was set back."""
        if not self._overrides("kept_offsets"):
            return {}
        return self.call("kept_offsets", lambda connector: dict(connector.kept_offsets(topic_ids, last_run_id, kept)))

    def notes_on_changes(self, changes: Sequence[TopicChange]) -> tuple[str, ...]:
        """What changed topics mean for the target."""
        if not changes or not self._overrides("notes_on_changes"):
            return ()
        return self.call("notes_on_changes", lambda connector: tuple(connector.notes_on_changes(changes)))

    def stage_without_columns(self) -> str:
        """What of the connector makes its tasks take all records one by one; "": nothing, or the class does not say."""
        task = self._class.task_class
        if isinstance(task, type) and not hasattr(task, "put_columns"):
            return f"the connector ({self._class.__name__})"
        if not issubclass(self._class, ColumnarSinkConnector):
            return ""
        return self.call("stage_without_columns", lambda connector: str(connector.stage_without_columns()))

    def stage_without_columns_of(self, schema: Schema | None) -> str:
        """The same for values of one schema."""
        if not hasattr(self._class, "stage_without_columns_of"):
            return ""
        return self.call("stage_without_columns_of", lambda sink: str(sink.stage_without_columns_of(schema)))

    def takes_whole_records(self) -> bool:
        """Whether no converter and no transformation touches the messages."""
        if not issubclass(self._class, ColumnarSinkConnector):
            return False
        return self.call("takes_whole_records", lambda connector: bool(connector.takes_whole_records()))

    def needs_headers(self) -> bool:
        """Whether the tasks use headers in columns; a class that does not say uses none."""
        if not hasattr(self._class, "needs_headers"):
            return False
        return self.call("needs_headers", lambda connector: bool(connector.needs_headers()))

    @property
    def keeps_document(self) -> bool:
        """Whether the class has a document of its own. A state record may also have that of another class."""
        return self._overrides("plan_state")

    def unfinished(self, run: PlannedRun) -> tuple[str, ...]:
        """Finish what a killed run has left; sentences about it."""
        if not self._overrides("unfinished"):
            return ()
        return self.call("unfinished", lambda connector: tuple(connector.unfinished(run)))

    def unjudged(self, kept: Mapping[str, Any]) -> Mapping[TopicPartition, int]:
        """Where a run began that has ended without a commit."""
        if not self._overrides("unjudged"):
            return {}
        return self.call_unstarted("unjudged", lambda connector: dict(connector.unjudged(kept)))

    def plan_state(self, run: PlannedRun) -> PlannedState:
        """What tasks are to know of earlier runs."""
        if not self.keeps_document:
            return PlannedState()
        found: PlannedState = self.call("plan_state", lambda connector: connector.plan_state(run))
        name = f"{self._class.__name__}.plan_state"
        kept = None if found.kept is None else plain_document(found.kept, name)
        return replace(found, for_tasks=plain_document(found.for_tasks, name), kept=kept, notes=tuple(found.notes))

    def state_after(self, run: CopiedRun) -> StateAfter:
        """What is kept for the next run.

        Raises:
            ConnectError: the connector fails, or returns something else.
        """
        if not self._overrides("state_after"):
            return StateAfter(run.planned.kept)
        found: StateAfter = self.call("state_after", lambda connector: connector.state_after(run))
        name = f"{self._class.__name__}.state_after"
        unknown = sorted(found.counts.keys() - COUNTS_OF_CONNECTORS)
        if unknown:
            raise TaskFailedError(
                f"{name} returned the counts {', '.join(unknown)}, but a report only has {COUNTS_OF_CONNECTORS[0]}.",
                code="plugin.document",
                suggestion="Tell other counts in a note.",
            )
        complete = tuple(plain_document(one, name) for one in found.complete)
        return replace(found, kept=plain_document(found.kept, name), complete=complete, notes=tuple(found.notes))

    def uses_current(self, key: str, staged: Mapping[str, str]) -> bool:
        """Whether staged files do not depend on a key."""
        if not self._stages or not self._overrides("uses_current"):
            return False
        return self._guarded("uses_current", lambda: bool(self._class.uses_current(key, staged)))

    @property
    def deletes_by_null(self) -> bool:
        """Whether tombstones delete what the sink has written."""
        return self._overrides("deletes_by_null") and self.call("deletes_by_null", lambda c: bool(c.deletes_by_null()))

    def splitting(self) -> Splitting:
        """Whether several tasks may copy one partition."""
        if not self._overrides("splitting"):
            return Splitting(f"{self._class.__name__} does not allow it")
        found: Splitting = self.call("splitting", lambda connector: connector.splitting())
        return found

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """The configuration of each task, from the connector; () if all use the connector's own.

        Raises:
            ConnectError: it returns none or too many, or fails.
        """
        config = dict(self._run.config)
        found = self.call("task_configs", lambda connector: list(connector.task_configs(max_tasks)))
        if not 1 <= len(found) <= max_tasks:
            name = self._class.__name__
            raise TaskFailedError(
                f"{name}.task_configs returned {plural(len(found), 'configuration')}, but at most {max_tasks} were"
                " requested.",
                code="plugin.task_configs",
                suggestion="It must return at least one, and not more than requested.",
            )
        if found == [config] * max_tasks:
            return ()
        # As in Kafka Connect, so that a task knows the topics of its connector.
        always = {key: config[key] for key in (keys.TOPICS, keys.TOPICS_REGEX) if key in config}
        return [{**always, **own} for own in found]

    # --- staged files ---------------------------------------------------------------------------------------------

    @cached_property
    def store_name(self) -> str:
        """Where output goes."""
        if not self._stages:
            return self._class.__name__
        found: str = self.call_unstarted("store_name", lambda connector: connector.store_name(dict(self._run.config)))
        return found

    @property
    def counted_role(self) -> str | None:
        """Role of the files that the audit counts; None if nothing is staged."""
        return self.call("counted_role", lambda connector: connector.counted_role) if self._stages else None

    @cached_property
    def publisher(self) -> SinkPublisher | NoPublisher:
        """What makes staged files visible; opened on first use, and closed by `stop`."""
        return SinkPublisher(self) if self._stages else NoPublisher()

    def leftovers(self, ranges: Sequence[OffsetRange]) -> LeftoverPattern:
        """How to find what a run over `ranges` staged."""
        if not self._stages:
            return LeftoverPattern(self.store_name, (), NOTHING_STAGED, tuple(ranges))
        found: LeftoverPattern = self.call("leftovers", lambda connector: connector.leftovers(ranges))
        return found

    def prepare(self, files: Sequence[StagedFile]) -> tuple[StagedFile, ...]:
        """What the manifest holds of staged files.

        Raises:
            ConnectError: the connector fails, or returns other files.
        """
        if not files or not self._overrides("prepare"):
            return tuple(files)
        found: tuple[StagedFile, ...] = self.call("prepare", lambda connector: tuple(connector.prepare(files)))
        if [file.key for file in found] != [file.key for file in files]:
            raise TaskFailedError(
                f"{self._class.__name__}.prepare returned other files than it got.",
                code="plugin.prepare",
                suggestion="It must return each of them, in their order, with the same key.",
            )
        return found

    def published(self, run: PublishedRun, publisher: Publisher) -> tuple[str, ...]:
        """What follows publishing; returns notes for the report."""
        left_out = notes_on_left_out(self._table_commits(run))
        if not isinstance(publisher, SinkPublisher) or not self._overrides("published"):
            return left_out
        notes = self.call("published", lambda connector: tuple(connector.published(run, publisher.opened()) or ()))
        return (*notes, *left_out)

    def table_commits(self, run: PublishedRun) -> tuple[TableCommit, ...]:
        """The snapshots that a run has added to tables, as far as its report keeps them."""
        return kept_in_report(self._table_commits(run))

    def _table_commits(self, run: PublishedRun) -> tuple[TableCommit, ...]:
        if not self._stages or not self._overrides("table_commits"):
            return ()
        return self.call("table_commits", lambda connector: tuple(connector.table_commits(run)))

    def _overrides(self, method: str) -> bool:
        base = StagingSinkConnector if self._stages else SinkConnector
        return overrides(self._class, base, method)

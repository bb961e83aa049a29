"""Java sink connectors, on the driver."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.sink import Delivery, SinkConnector
from airflow_connect.api.sink_state import PlannedState, StateAfter
from airflow_connect.connectors.java.connector import JavaConnector
from airflow_connect.connectors.java.group import (
    GROUP,
    JOIN_TIMEOUT_S,
    PARTITIONS,
    group_json,
    group_request,
    is_member,
)
from airflow_connect.connectors.java.hosts import TASK, TASK_CLASS, close_host, java_config, start_host
from airflow_connect.connectors.java.iceberg_names import (
    COMMIT_INTERVAL_MS,
    COMMIT_TIMEOUT_MS,
    CONTROL,
    EVOLVES,
    ICEBERG_SINK,
    check_group,
    control_topic,
    interval_s,
    tables_of_each_record,
    with_defaults,
)
from airflow_connect.connectors.java.keys import IDEMPOTENT, PLUGIN, JavaSinkKeys
from airflow_connect.errors import TaskFailedError

if TYPE_CHECKING:
    from airflow_connect.api.sink_state import CopiedRun, PlannedRun
    from airflow_connect.connectors.java.iceberg_runs import ControlRun
    from airflow_connect.jvm.host import PluginHost

log = logging.getLogger(__name__)

VERSION = 1
CLASS = "java_class"
"""In the connector's document: the plugin that it is of."""
STARTS = "starts"
"""In the connector's document: where a run began, by topic and partition, until it has ended with a commit."""
_QUICK_MS = "1000"
_PAUSE_S = 0.25


class JavaSinkConnector(JavaConnector, SinkConnector):
    """The base of generated sink connectors."""

    delivery = Delivery.AT_LEAST_ONCE
    _control: ControlRun | None = None
    _said: tuple[str, ...] = ()

    @classmethod
    def delivery_for(cls, config: Mapping[str, str]) -> Delivery:
        """`airflow.java.delivery`: nothing in a Java class tells it, except for one that is known."""
        if cls._is_iceberg(config):
            return Delivery.TRANSACTIONAL
        given = JavaSinkKeys.from_config(config).delivery
        return Delivery.IDEMPOTENT if given == IDEMPOTENT else Delivery.AT_LEAST_ONCE

    @classmethod
    def commits_offsets(cls, config: Mapping[str, str]) -> bool:
        """See `SinkConnector`: if its tasks are members of the group."""
        return is_member(cls.plugin.class_name, config)

    @classmethod
    def notes_on_config(cls, config: Mapping[str, str]) -> Sequence[str]:
        """Offsets that a plugin keeps itself are not checked; how long a run takes that a plugin ends."""
        name, notes = cls.plugin.class_name, list[str]()
        if JavaSinkKeys.from_config(config).offsets == PLUGIN:
            notes.append(
                f"{name} keeps offsets of its own, so the run does not know whether it has written everything."
            )
        if cls._is_iceberg(config):
            notes.append(
                f"{name} commits every {interval_s(config):g} s ({COMMIT_INTERVAL_MS}), and a run waits for its last"
                " commit. Records without a value, and records that go to no table, are dropped by the plugin: they"
                " count as copied, and the report says how many there were."
            )
            notes.append(
                f"{name} makes numbers fit their columns, and they are not counted: 2.75 becomes 2 in a column of whole"
                " numbers."
            )
            if config.get(EVOLVES, "").strip().lower() != "true":
                notes.append(
                    f"{name} drops fields for which a table has no column, and they are not counted, because"
                    f" {EVOLVES} is not true."
                )
        return tuple(notes)

    def check_config(self, config: Mapping[str, str]) -> None:
        """See `SinkConnector`: the plugin must use the group of the run."""
        if self._is_iceberg(config):
            check_group(config, self.context.group.name)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """What the Java connector returns, in configurations that a task here understands."""
        if not self.commits_offsets(self.config):
            return self.planned(max_tasks, [])
        group = group_json(self.context.group)
        return [{**task, GROUP: group} for task in self.planned(max_tasks, [])]

    def config_for_java(self) -> Mapping[str, str]:
        """See `JavaConnector`."""
        return with_defaults(self.config, self.context.group) if self._is_iceberg(self.config) else self.config

    # --- a plugin that commits offsets itself ---------------------------------------------------------------------

    def plan_state(self, run: PlannedRun) -> PlannedState:
        """See `SinkConnector`: what tasks must know of each other, and of the plugin's control topic."""
        if not self.commits_offsets(self.config):
            return PlannedState()
        partitions = sorted({r.topic_partition for r in run.ranges})
        for_tasks: dict[str, Any] = {PARTITIONS: [list(tp) for tp in partitions]}
        kept = self._beginning(run)
        back, moved = self._group_set_back(run)
        if not self._is_iceberg(self.config):
            return PlannedState(for_tasks, kept, leaves_nothing=True, notes=moved, group_offsets=back)
        from airflow_connect.connectors.java.iceberg import ControlTopic
        from airflow_connect.connectors.java.iceberg_runs import ControlRun

        group = self.context.group
        own = replace(run, kept=self._own(run.kept))
        self._control = ControlRun.planned(ControlTopic(group.client, control_topic(self.config), group.name), own)
        for_tasks[CONTROL] = self._control.for_tasks()
        notes = (*moved, *self._control.notes)
        return PlannedState(for_tasks, kept, leaves_nothing=True, notes=notes, group_offsets=back)

    def _group_set_back(self, run: PlannedRun) -> tuple[Mapping[TopicPartition, int], tuple[str, ...]]:
        """Let the group begin where the run does: offsets to commit, and a sentence about each.

        Tasks pass nothing to the plugin that the group has as written. If the run begins before the group's offset, for
        example because of `offsets.out.of.range`, these records would be left out. Only what a task has committed whose
        run has ended without a commit stays (`unjudged`).
        """
        if not run.ranges:
            return {}, ()
        from airflow_connect.kafka.admin.consumer_group import read_committed_offsets
        from airflow_connect.kafka.clients.short_lived import admin_client

        group, unjudged = self.context.group, self.unjudged(run.kept)
        starts = {r.topic_partition: r.start for r in run.ranges}
        with closing(admin_client(group.client)) as admin:
            found = read_committed_offsets(admin, group.name, sorted(starts))
            back = {
                tp: start
                for tp, start in starts.items()
                if start < found.get(tp, start) and (unjudged.get(tp) != start or tp.topic in run.gone)
            }
        return back, tuple(
            f"The offset of the group {group.name} was set from {tp}@{found[tp]} back to {start}, where the run begins."
            for tp, start in sorted(back.items())
        )

    def _beginning(self, run: PlannedRun) -> Mapping[str, Any] | None:
        """The document with where this run begins: its tasks may move offsets behind records that have failed."""
        if not run.ranges or self.config.get("errors.tolerance") != "all":
            return None
        starts = {str(r.topic_partition): r.start for r in run.ranges}
        return {**self._own(run.kept), "version": VERSION, CLASS: self.plugin.class_name, STARTS: starts}

    def unjudged(self, kept: Mapping[str, Any]) -> Mapping[TopicPartition, int]:
        """See `SinkConnector`."""
        places = ((*place.rpartition("-")[::2], start) for place, start in self._own(kept).get(STARTS, {}).items())
        return {TopicPartition(topic, int(number)): int(start) for topic, number, start in places}

    def after_tasks(self) -> None:
        """See `JavaConnector`. Files must be in their tables.

        Raises:
            TaskFailedError: some are not.
        """
        super().after_tasks()
        if self._control is not None:
            self._said = self._control.verify()

    def stop(self) -> None:
        """See `JavaConnector`."""
        super().stop()
        if self._control is not None:
            self._control.control.close()

    def state_after(self, run: CopiedRun) -> StateAfter:
        """See `SinkConnector`: where the control topic ends, once everything in it is final."""
        own = self._own(run.planned.kept)
        if not run.reports or (self._control is None and not own):
            return StateAfter(run.planned.kept)
        if self._control is None:
            return StateAfter({key: value for key, value in own.items() if key != STARTS})
        ends = {str(part.range.topic_partition): part.commit_offset for part in run.reports}
        found = self._control.kept({**own.get("offsets", {}), **ends})
        counted = self._control.counted(run.reports, tables_of_each_record(self.config))
        for note in counted:
            log.warning("%s: %s", self.plugin.class_name, note)
        return StateAfter({**found, "version": VERSION, CLASS: self.plugin.class_name}, notes=(*self._said, *counted))

    def _own(self, kept: Mapping[str, Any]) -> Mapping[str, Any]:
        """The document, or {} if another connector has written it that had the same name."""
        return kept if kept.get(CLASS) == self.plugin.class_name else {}

    def unfinished(self, run: PlannedRun) -> Sequence[str]:
        """See `SinkConnector`: lets the plugin commit what a run has announced that was killed."""
        control = self._control
        if control is None or not control.opened.written or not run.partitions:
            return ()
        deadline = time.monotonic() + JavaSinkKeys.from_config(self.config).flush_timeout_ms / 1000 + JOIN_TIMEOUT_S
        host = self._host_of_coordinator(run.partitions[0])
        try:
            needed = control.opened.ends()
            while any(control.control.committed().get(number, -1) < end for number, end in needed.items()):
                host.call("put", rows=0, timeout_s=JavaSinkKeys.from_config(self.config).call_timeout_s)
                if time.monotonic() >= deadline:
                    raise TaskFailedError(
                        f"{self.plugin.class_name} has not committed what a run has left that was ended.",
                        code="java.ends_too_early",
                        suggestion="The next run tries it again. See the log airflow_connect.java for the reason.",
                    )
                time.sleep(_PAUSE_S)
        finally:
            close_host(host)
        return (*control.finished(), *control.verify())

    def _host_of_coordinator(self, partition: TopicPartition) -> PluginHost:
        """A task that gets no record. It has the first partition of the group, so the plugin coordinates there."""
        (task,) = self.planned(1, [])[:1]
        quick = {**json.loads(task[TASK]), COMMIT_INTERVAL_MS: _QUICK_MS, COMMIT_TIMEOUT_MS: _QUICK_MS}
        config = {**task, TASK: json.dumps(quick)}
        facts = json.loads(group_json(self.context.group))
        host = start_host(self.plugin, config)
        try:
            host.call(
                "sink",
                config=java_config(config, self.plugin.class_name),
                task=quick,
                task_class=config[TASK_CLASS],
                task_id=0,
                assignment=[list(partition)],
                group=group_request(facts, [partition]),
                timeout_s=JavaSinkKeys.from_config(self.config).call_timeout_s + JOIN_TIMEOUT_S,
            )
        except BaseException:
            close_host(host)
            raise
        return host

    @classmethod
    def _is_iceberg(cls, config: Mapping[str, str]) -> bool:
        return cls.plugin.class_name == ICEBERG_SINK and cls.commits_offsets(config)

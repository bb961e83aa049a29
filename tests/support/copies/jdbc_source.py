"""The JDBC source without Kafka: connector and tasks as a run calls them, and offsets that this process keeps."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_connect.api.record import SourceRecord
from airflow_connect.connectors.jdbc.source.connector import JdbcSourceConnector
from airflow_connect.connectors.jdbc.source.task import JdbcSourceTask
from airflow_connect.errors import ConnectError, RetriableError
from airflow_connect.runtime.executor.source.columns import records_of

TRIES = 3
"""How often a poll is repeated that failed for a temporary reason; a run repeats it for a minute."""
Partition = Mapping[str, Any]


@dataclass
class Run:
    """One run: what it copied, said, and gave to tasks."""

    records: list[SourceRecord] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    numbers: Counter[str] = field(default_factory=Counter)
    tasks: list[Mapping[str, str]] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    left_out: dict[str, ConnectError] = field(default_factory=dict)

    @property
    def values(self) -> list[Any]:
        return [record.value for record in self.records]

    def ids(self, name: str = "id") -> list[Any]:
        return [record.value[name] for record in self.records]

    @property
    def topics(self) -> list[str]:
        return list(dict.fromkeys(record.topic for record in self.records))


class _Context:
    """What connector and tasks see of a run."""

    transaction = None
    aws: Mapping[str, str] = {}
    only_plans = tasks_ended = False
    limits_reached: Collection[str] = ()
    clock_ms = 0
    records_left = None

    def __init__(self, copies: Copies, run: Run, run_id: str) -> None:
        self._copies, self._run, self.run_id = copies, run, run_id
        self.config: Mapping[str, str] = {}
        self.worker_converters = copies.worker_converters
        self.skipped: list[tuple[Partition, Mapping[str, Any]]] = []
        self.to_keep: Mapping[str, Any] = copies.kept

    @property
    def offset_reader(self) -> Copies:
        return self._copies

    @property
    def kept(self) -> Mapping[str, Any]:
        return self._copies.kept

    def keep(self, document: Mapping[str, Any], *, at_once: bool = False) -> None:
        self.to_keep = json.loads(json.dumps(document))
        if at_once:
            self._copies.kept = self.to_keep

    def note(self, sentence: str) -> None:
        if sentence not in self._run.notes:
            self._run.notes.append(sentence)

    def leave_out(self, part: str, error: ConnectError) -> None:
        self._run.left_out.setdefault(part, error)

    def count(self, sentence: str, number: int) -> None:
        self._run.numbers[sentence] += number

    def skip_to(self, partition: Partition, offset: Mapping[str, Any]) -> None:
        self.skipped.append((partition, offset))

    def raise_error(self, error: Exception) -> None:
        raise error

    def request_task_reconfiguration(self) -> None:
        raise AssertionError("nothing changes during a run")


class Copies:
    """Runs of one connector, with the offsets that they commit after each batch."""

    def __init__(self, config: Mapping[str, str], *, columnar: bool = False) -> None:
        """`columnar`: whether tasks are asked for columns."""
        self.config = {"name": "copies", "connector.class": "JdbcSource", "topic.prefix": "db-", **config}
        self.columnar = columnar
        self.stored: dict[str, tuple[Partition, Mapping[str, Any]]] = {}
        self.kept: Mapping[str, Any] = {}
        self.worker_converters: Mapping[str, str] = {}
        self._runs = 0

    # --- offsets ---

    def offset(self, partition: Partition) -> Mapping[str, Any] | None:
        found = self.stored.get(json.dumps(partition, sort_keys=True))
        return None if found is None else found[1]

    def offsets(self, partitions: Iterable[Partition]) -> list[Mapping[str, Any] | None]:
        return [self.offset(partition) for partition in partitions]

    def committed(self) -> list[tuple[Partition, Mapping[str, Any]]]:
        return list(self.stored.values())

    def commit(self, partition: Partition, offset: Mapping[str, Any]) -> None:
        # Through JSON, as the offsets topic does.
        self.stored[json.dumps(partition, sort_keys=True)] = (dict(partition), json.loads(json.dumps(offset)))

    # --- runs ---

    def run(self, *, tasks: int = 1, batches: int | None = None, meanwhile: Callable[[int], None] | None = None) -> Run:
        """A run.

        Args:
            tasks: `tasks.max`.
            batches: each task dies after so many batches were committed; None: it ends by itself.
            meanwhile: called after each batch with the number of batches so far.
        """
        self._runs += 1
        run = Run()
        connector, context = JdbcSourceConnector(), _Context(self, run, f"run-{self._runs}")
        connector.initialize(context)
        connector.start(self.config)
        self.reconcile(connector)
        try:
            run.tasks = list(connector.task_configs(tasks))
            for config in run.tasks:
                self._task(run, config, batches, meanwhile)
        finally:
            connector.stop()
        if batches is None:
            context.tasks_ended = True
            self.reconcile(connector)
            self.kept = context.to_keep
        return run

    def reconcile(self, connector: JdbcSourceConnector) -> None:
        """What the driver does between tasks."""
        for partition, offset in connector.reconcile_offsets(self.committed()):
            if offset is None:
                del self.stored[json.dumps(partition, sort_keys=True)]
            else:
                self.commit(partition, offset)

    def _task(
        self, run: Run, config: Mapping[str, str], batches: int | None, meanwhile: Callable[[int], None] | None
    ) -> None:
        task, context = JdbcSourceTask(), _Context(self, run, f"run-{self._runs}")
        context.config = config
        task.initialize(context)
        task.start(config)
        done = 0
        try:
            while batches is None or done < batches:
                records = self._polled(task)
                run.records += records
                run.batches.append(len(records))
                for record in records:
                    self.commit(record.source_partition, record.source_offset)
                for partition, offset in context.skipped:
                    self.commit(partition, offset)
                context.skipped.clear()
                done += 1
                if meanwhile is not None:
                    meanwhile(done)
                if task.has_ended():
                    return
        finally:
            task.stop()

    def _polled(self, task: JdbcSourceTask) -> list[SourceRecord]:
        for _ in range(TRIES):
            try:
                columns = task.poll_columns() if self.columnar else None
                return list(task.poll() or ()) if columns is None else list(records_of(columns))
            except RetriableError as error:
                last = error
        raise last

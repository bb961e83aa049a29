"""A catalog in SQLite below a folder, and runs of the sink without a driver: records in, rows of a table out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog

from airflow_connect.api.offsets import OffsetRange
from airflow_connect.api.record import KafkaRecord, SinkRecord
from airflow_connect.api.schema import Schema
from airflow_connect.api.sink_roles import RoleContext
from airflow_connect.config.resolved.loading import load_connector_config
from airflow_connect.connectors.iceberg.catalogs import open_catalog
from airflow_connect.connectors.iceberg.publisher import IcebergPublisher
from airflow_connect.connectors.iceberg.tables import IcebergConfig
from airflow_connect.connectors.iceberg.task import IcebergSinkTask
from airflow_connect.documents.run import PartitionReport, TaskPlan
from airflow_connect.errors import ConnectError
from airflow_connect.runtime.executor.converting import RecordConverter
from airflow_connect.runtime.executor.error_policy import ErrorPolicy
from airflow_connect.runtime.executor.progress import ProgressSender
from airflow_connect.runtime.executor.sink.loop import SinkLoop
from airflow_connect.runtime.executor.sink.put_errors import PutErrors
from airflow_connect.runtime.executor.sink.task_runner import SinkTaskRunner
from tests.support.copies.iceberg import ICEBERG_SINK, sqlite_catalog
from tests.unit.connectors.files.shared.staging import JSON, NOW_MS, STRING, CountingRunner, GivenRecords

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from airflow_connect.api.staging import StagedFile

TABLE = "lake.t"


@dataclass
class Copied:
    """What a run of one task did."""

    reports: list[PartitionReport] = field(default_factory=list)
    dead_letters: list[Any] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    staged: list[StagedFile] = field(default_factory=list)
    in_columns: int = 0
    error: str = ""


@dataclass
class Refusals:
    """`errors.tolerance=all` with a dead letter queue; keeps what was refused."""

    errors: list[tuple[int, BaseException]] = field(default_factory=list)
    left_out: list[int] = field(default_factory=list)

    def report_errant(self, record: SinkRecord, error: BaseException) -> bool:
        self.errors.append((record.offset, error))
        return True

    def leave_out(self, record: SinkRecord, reason: Exception) -> bool:
        self.left_out.append(record.offset)
        return True

    def raise_pending_error(self) -> None:
        """Nothing is refused."""

    def repeat_put(self, put: Any) -> None:
        put()


def record(offset: int, schema: Schema | None, value: Any) -> SinkRecord:
    """A record of partition 0."""
    return SinkRecord(
        topic="t", partition=0, offset=offset, key_schema=None, key=None, value_schema=schema, value=value,
        timestamp=NOW_MS, headers=(),
    )  # fmt: skip


class Lake:
    """Tables below a folder; each call of `put` or `copy` is a run."""

    def __init__(self, root: Path, **config: str) -> None:
        """`_` in a key stands for `.`."""
        root.mkdir(exist_ok=True)
        self.root = root
        self.config = {
            "name": "c",
            "connector.class": ICEBERG_SINK,
            "topics": "t",
            "iceberg.tables": TABLE,
            "iceberg.tables.auto-create-enabled": "true",
            "iceberg.tables.evolve-schema-enabled": "true",
            **{f"iceberg.catalog.{key}": value for key, value in sqlite_catalog(root).items()},
        }
        self.set(**config)
        self.runs = 0
        self.refusals = Refusals()
        self.notes: tuple[str, ...] = ()

    def set(self, **config: str | None) -> None:
        """Change keys; `_` stands for `.`, None removes one."""
        for key, value in config.items():
            self.config.pop(key.replace("_", "."), None)
            if value is not None:
                self.config[key.replace("_", ".")] = value

    @property
    def catalog(self) -> Catalog:
        return load_catalog("iceberg", **sqlite_catalog(self.root))

    def table(self, name: str = TABLE) -> Table:
        return self.catalog.load_table(name)

    def create(self, schema: Any, name: str = TABLE, **more: Any) -> Table:
        """A table that was there before."""
        catalog = self.catalog
        catalog.create_namespace_if_not_exists(name.rpartition(".")[0])
        return catalog.create_table(name, schema, **more)

    def rows(self, name: str = TABLE) -> list[dict[str, Any]]:
        return self.table(name).scan().to_arrow().to_pylist()

    def arrow(self, name: str = TABLE) -> pa.Table:
        return self.table(name).scan().to_arrow()

    def publisher(self) -> IcebergPublisher:
        typed = IcebergConfig.from_config(self.config)
        return IcebergPublisher("c", typed, lambda: open_catalog(typed, {}), keeps=False)

    def publish(self, staged: Sequence[StagedFile], run_id: str) -> None:
        """Commit what a run has staged."""
        if staged:
            publisher = self.publisher()
            publisher.publish(publisher.prepare(staged, run_id), lambda _: None)

    def context(self, run_id: str, **more: Any) -> RoleContext:
        return RoleContext(config=self.config, run_id=run_id, now_ms=NOW_MS, **more)

    def runner(self, records: int, run_id: str) -> SinkTaskRunner:
        """A task that accepts `records` records of partition 0."""
        context = replace(self.context(run_id), errors=self.refusals)
        runner = SinkTaskRunner(IcebergSinkTask(), context, [OffsetRange("t", 0, 0, records)])
        runner.open()
        return runner

    def put(self, values: Sequence[Any], schema: Schema | None = None, *, publishes: bool = True) -> list[StagedFile]:
        """A run of the record path over values of one schema; what was refused is in `refusals`."""
        self.refusals = Refusals()
        self.runs += 1
        runner = self.runner(len(values), f"run-{self.runs}")
        try:
            for offset, value in enumerate(values):
                runner.put(record(offset, schema, value))
            staged = runner.staged_files()
        except BaseException:
            runner.abort()
            raise
        self.notes = runner.notes.sentences
        runner.close()
        if publishes:
            self.publish(staged, f"run-{self.runs}")
        return staged

    def copy(self, batches: Sequence[list[KafkaRecord]], *, columnar: bool, config: Mapping[str, str]) -> Copied:
        """A run over Kafka's records, with converters and `errors.*`."""
        self.runs += 1
        run_id = f"run-{self.runs}"
        connector = {**self.config, **config}
        worker = {"bootstrap.servers": "x:1", "key.converter": STRING, "value.converter": JSON}
        resolved = load_connector_config(connector, worker)
        end = batches[-1][-1].offset + 1 if batches else 0
        planned = OffsetRange("t", 0, 0, end)
        policy = ErrorPolicy(resolved.connector.name, 0, resolved.connector.errors)
        errors = PutErrors(policy, resolved.connector.errors)
        context = replace(self.context(run_id, errors=errors), config=connector)
        task = CountingRunner(IcebergSinkTask(), context, [planned])
        task.open()
        loop = SinkLoop(task, RecordConverter(resolved), policy, ProgressSender({}, 0, 0))
        reader: Any = GivenRecords(batches, end)
        done = Copied()
        try:
            loop.read(reader, TaskPlan(0, (planned,)), columnar=columnar)
            done.reports = loop.finish(reader, TaskPlan(0, (planned,)))
        except ConnectError as error:
            done.error = f"{type(error).__name__}: {error}"
            task.abort()
            return done
        done.notes, done.in_columns = task.notes.sentences, task.in_columns
        done.staged = list(task.staged_files())
        done.dead_letters = [
            {**letter, "headers": [h for h in letter["headers"] if "stacktrace" not in h[0]]}
            for letter in sorted(policy.dead_letters, key=lambda letter: letter["origin"])
        ]
        task.close()
        self.publish(done.staged, run_id)
        return done

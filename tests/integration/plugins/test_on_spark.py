"""Sinks of third parties in real Spark executors: configurations per task, attempts that fail, entry points."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from airflow_connect.api import RecordColumns, SinkRecord, UnavailableError
from airflow_connect.runtime.driver.entry import run_connector
from airflow_connect.runtime.engine.spark import SparkEngine
from airflow_connect.testing.cases.sink_case import SinkCase
from tests.integration.plugins.folder_sink import FolderSinkConnector, FolderSinkTask
from tests.integration.plugins.test_folder_sink import TestFolderSink as FolderSuite
from tests.integration.plugins.test_sqlite_sink import TestSqliteSink as SqliteSuite
from tests.support.processes.drivers import PROJECT

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark_classes")]


class FailsOnce(FolderSinkTask):
    """Every task leaves a staged file and fails the first time; it stages what its configuration says."""

    def put(self, records: Sequence[SinkRecord]) -> None:
        super().put(records)
        mark = self.folder / f"failed-{self.context.config['number']}"
        if not mark.exists():
            mark.touch()
            super().flush()
            raise UnavailableError("The store is away.", code="test.away")

    def put_columns(self, batches: Sequence[RecordColumns]) -> bool:
        return False

    def start(self, config: Mapping[str, str]) -> None:
        super().start(config)
        (self.folder / f"task-{config['number']}-of-{config['topics']}").touch()


class FailsOnceConnector(FolderSinkConnector):
    """Numbers its tasks; no errors are retried inside a task."""

    task_class = FailsOnce

    def task_configs(self, max_tasks: int) -> list[Mapping[str, str]]:
        return [{**self.config, "number": str(number)} for number in range(max_tasks)]


class FailingSuite(FolderSuite):
    connector_class = f"{__name__}:FailsOnceConnector"


@pytest.fixture(scope="module")
def engine(installed_examples: Path) -> Iterator[SparkEngine]:
    """One Spark session, whose workers find the tests and the installed examples."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(PROJECT), str(installed_examples)]))
        with SparkEngine({"spark.master": "local[2,4]"}) as engine:
            yield engine


def test_sink_by_entry_point_copies_in_executors(kafka_bootstrap: str, tmp_path: Path, engine: SparkEngine) -> None:
    case = SinkCase(SqliteSuite(), kafka_bootstrap, tmp_path)
    case.add(900)

    report = run_connector(case.spec(), engine=engine)

    assert (report.status, report.records, report.tasks) == ("done", 900, 2), report.error
    case.check_everything_arrived()


def test_each_task_has_its_configuration_and_put_is_repeated(
    kafka_bootstrap: str, tmp_path: Path, engine: SparkEngine
) -> None:
    case = SinkCase(FailingSuite(), kafka_bootstrap, tmp_path)
    case.add(60)

    report = run_connector(case.spec(), engine=engine)

    assert (report.status, report.records) == ("done", 60), report.error
    assert sorted(path.name for path in tmp_path.glob("task-*")) == [f"task-{n}-of-{case.topic}" for n in (0, 1)]
    assert len(list(tmp_path.glob("failed-*"))) == 2
    case.check_everything_arrived()
    assert list((tmp_path / ".staged" / case.name).iterdir()) == []


def test_defect_of_a_sink_ends_the_run_with_its_sentence(
    kafka_bootstrap: str, tmp_path: Path, engine: SparkEngine
) -> None:
    case = SinkCase(FolderSuite(), kafka_bootstrap, tmp_path)
    case.add(3)
    (tmp_path / ".staged").mkdir()
    (tmp_path / ".staged" / case.name).write_text("in the way")

    report = run_connector(case.spec(), engine=engine)

    assert report.status == "failed"
    assert report.error is not None and "FolderSinkTask.start failed with FileExistsError" in json.dumps(report.error)
    assert case.committed() == {}

"""What a Spark task returns, without Spark: rows, errors in rows, errors inside Spark's texts."""

from __future__ import annotations

import operator
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark import cloudpickle

from airflow_connect import errors
from airflow_connect.api.offsets import OffsetRange
from airflow_connect.api.staging import StagedFile
from airflow_connect.config.resolved.loading import load_connector_config
from airflow_connect.config.resolved.source import load_source_config
from airflow_connect.documents.run import PartitionReport, TaskPlan, TaskReport
from airflow_connect.errors import (
    AccessError,
    ConnectError,
    DataError,
    InternalError,
    MissingPackageError,
    StagedFileLostError,
    TaskFailedError,
    UnavailableError,
)
from airflow_connect.runtime.engine.task_rows import error_of, reports_of, task_function
from airflow_connect.runtime.executor import task as executor
from airflow_connect.runtime.machines import DriverMachine
from airflow_connect.runtime.settings import TaskSettings

SETTINGS = TaskSettings(connector={"name": "c"}, worker={})
ERROR_TYPES = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, ConnectError)]


def plans(count):
    return [TaskPlan(10 * n, (OffsetRange(f"t{n}", n, 5, 9),), max_bytes=n) for n in range(count)]


def report_for(plan, attempt):
    planned = plan.ranges[0]
    copied = PartitionReport(planned, position=9, commit_offset=9, read=4, written=4)
    file = StagedFile("key/é", planned.topic, planned.partition, 5, 9, 4, 100, {"upload_id": "u"})
    return TaskReport(plan.task, attempt, (copied,), (file,), ({"value": "x" * 5000},), {"copy": 3}, "host", 7)


def run_rows(monkeypatch, run_task, tasks, numbers):
    monkeypatch.setattr(executor, "run_task", run_task)
    batches = [pa.record_batch({"id": pa.array(ids, pa.int64())}) for ids in numbers]
    rows = list(task_function(SETTINGS, tasks)(iter(batches)))
    assert all(row.schema == pa.schema([("result", pa.binary())]) and row.num_rows == 1 for row in rows)
    return [row.column(0)[0].as_py() for row in rows]


def failing(error):
    def run_task(settings, plan, attempt):
        raise error

    return run_task


def test_each_number_runs_the_plan_at_its_position_and_gives_one_row(monkeypatch):
    seen = []

    def run_task(settings, plan, attempt):
        seen.append((settings, plan))
        return report_for(plan, attempt)

    tasks = plans(3)
    rows = run_rows(monkeypatch, run_task, tasks, [[2], [0, 1]])

    assert [plan for _, plan in seen] == [tasks[2], tasks[0], tasks[1]]
    assert all(settings == SETTINGS for settings, _ in seen)
    assert reports_of(rows) == [report_for(tasks[n], 0) for n in (2, 0, 1)]


@pytest.mark.parametrize("load", [load_connector_config, load_source_config])
def test_tasks_do_not_get_what_only_the_driver_uses_of_the_worker(monkeypatch, load):
    worker = {
        "bootstrap.servers": "h:1",
        "consumer.sasl.password": "secret-of-the-tasks",
        "key.converter": "StringConverter",
        "spark.remote": "sc://localhost:1/;token=secret-of-the-driver",
        "config.providers": "vault",
        "config.providers.vault.param.token": "secret-of-the-driver",
    }
    kind = "FileStreamSink" if load is load_connector_config else "FileStreamSource"
    connector = {"name": "c", "connector.class": kind, "value.converter": "StringConverter", "file": "/f"}
    connector |= {"topics": "t"} if kind == "FileStreamSink" else {"topic": "t"}
    settings = replace(SETTINGS, worker=worker, resolved=load(connector, worker))
    seen = []
    monkeypatch.setattr(executor, "run_task", lambda got, plan, attempt: seen.append(got) or report_for(plan, attempt))

    function = task_function(settings, plans(1))
    list(function(iter([pa.record_batch({"id": pa.array([0], pa.int64())})])))

    assert b"secret-of-the-driver" in cloudpickle.dumps(settings)
    assert b"secret-of-the-driver" not in cloudpickle.dumps(function)
    (got,) = seen
    left_out = {"spark.remote", "config.providers", "config.providers.vault.param.token"}
    assert got.worker == {key: value for key, value in worker.items() if key not in left_out}
    assert got.worker == got.resolved.worker.raw
    assert got.resolved.worker.parsed.items() <= settings.resolved.worker.parsed.items()
    assert got.resolved.connector.raw == settings.resolved.connector.raw


def test_lasting_error_is_a_row_so_that_spark_does_not_repeat_the_task(monkeypatch):
    given_error = DataError("Bad record at t-0@3.", code="data.x", suggestion="Mend it.", config_path="k")

    (row,) = run_rows(monkeypatch, failing(given_error), plans(1), [[0]])

    with pytest.raises(DataError) as caught:
        reports_of([row])
    assert caught.value.to_json() == given_error.to_json()


def test_passing_error_is_raised_with_its_parts_and_without_its_causes(monkeypatch):
    given_error = UnavailableError("Away.", suggestion="Wait.")

    with pytest.raises(RuntimeError) as caught:
        run_rows(monkeypatch, failing(given_error), plans(1), [[0]])

    assert caught.value.__cause__ is None and caught.value.__suppress_context__
    found = error_of(
        f"Job aborted: Lost task 0.3 (TID 3)\nRuntimeError: {caught.value}\n\tat org.apache.Foo(X.scala:1)"
    )
    assert type(found) is UnavailableError
    assert found.to_json() == given_error.to_json()


class HashableDict(dict):
    """A key that a dictionary can look for, and not find."""

    def __hash__(self):
        return 0


def test_own_defect_is_a_row_and_its_traceback_is_logged_by_the_driver(monkeypatch, caplog):
    # A function in C leaves no frame of the test in the traceback.
    monkeypatch.setattr(executor, "consumer_config", operator.getitem)
    connector = {"name": "c", "connector.class": "FileStreamSink", "topics": "t", "value.converter": "StringConverter"}
    resolved = load_connector_config(connector, {"bootstrap.servers": "h:1", "key.converter": "StringConverter"})
    secret = HashableDict({"sasl.password": "hunter2-of-the-test"})
    resolved.connector.raw = secret
    settings = replace(SETTINGS, worker=secret, resolved=resolved)
    (row,) = task_function(settings, plans(1))(iter([pa.record_batch({"id": pa.array([0], pa.int64())})]))

    with pytest.raises(InternalError, match=r"Internal error in connector c, please report it: KeyError: ") as caught:
        reports_of([row.column(0)[0].as_py()])
    assert not caught.value.retriable
    assert "Traceback (most recent call last)" in caplog.text
    assert "hunter2" not in caplog.text + str(caught.value)


def test_defect_of_somebody_else_is_raised_as_it_is(monkeypatch):
    with pytest.raises(ZeroDivisionError, match="defect"):
        run_rows(monkeypatch, failing(ZeroDivisionError("defect")), plans(1), [[0]])


@given(
    kind=st.sampled_from(ERROR_TYPES),
    message=st.text(),
    code=st.text(),
    suggestion=st.text(),
    config_path=st.text(),
    retriable=st.booleans(),
)
def test_every_error_comes_back_as_it_was(kind, message, code, suggestion, config_path, retriable):
    error = kind(message, code=code, suggestion=suggestion, config_path=config_path)
    error.retriable = retriable
    with pytest.MonkeyPatch.context() as patch:
        try:
            (row,) = run_rows(patch, failing(error), plans(1), [[0]])
        except RuntimeError as raised:
            found = error_of(f"…{raised}…")
        else:
            with pytest.raises(ConnectError) as caught:
                reports_of([row])
            found = caught.value

    assert type(found) is kind
    assert found.to_json() == error.to_json()


def test_error_of_a_class_that_this_version_does_not_know_is_a_failed_task(monkeypatch):
    class OfAnotherVersionError(StagedFileLostError):
        pass

    (row,) = run_rows(monkeypatch, failing(OfAnotherVersionError("Lost.")), plans(1), [[0]])
    monkeypatch.setattr("airflow_connect.runtime.engine.task_rows._error_types", dict)

    with pytest.raises(TaskFailedError, match="Lost"):
        reports_of([row])


def test_text_without_an_error_of_ours_gives_none():
    assert error_of("java.lang.OutOfMemoryError: Java heap space") is None


def test_plans_of_ten_thousand_partitions_travel_in_little_space():
    import pickle

    from pyspark import cloudpickle

    ranges = [
        TaskPlan(n, tuple(OffsetRange("topic", p, 10**9, 10**9 + p) for p in range(n, 10_000, 50))) for n in range(50)
    ]
    packed = cloudpickle.dumps(task_function(SETTINGS, ranges))
    assert len(packed) < 200_000
    assert callable(pickle.loads(packed))


def test_executor_with_another_version_says_so_before_it_reads_the_settings(monkeypatch):
    run = task_function(SETTINGS, plans(1))
    monkeypatch.setattr("airflow_connect.runtime.engine.task_rows.__version__", "0.0.9")
    monkeypatch.setattr("pickle.loads", lambda data: pytest.fail("the settings were read"))
    (row,) = run(iter([pa.record_batch({"id": pa.array([0], pa.int64())})]))

    with pytest.raises(ConnectError, match=r"has airflow-connect 0\.0\.9, the driver") as caught:
        reports_of([row.column(0)[0].as_py()])
    assert caught.value.code == "spark.other_version"


def test_error_of_an_executor_on_another_machine_names_both(monkeypatch):
    monkeypatch.setattr(executor, "run_task", failing(AccessError("Denied.", code="s3.access_denied")))
    machine = DriverMachine("driver-host", sent={"PGPASSWORD": "hunter2-of-the-driver"})
    (row,) = task_function(SETTINGS, plans(1), machine)(iter([pa.record_batch({"id": pa.array([0], pa.int64())})]))

    with pytest.raises(AccessError) as caught:
        reports_of([row.column(0)[0].as_py()])
    assert "; the driver runs on driver-host." in caught.value.suggestion


def test_module_that_another_machine_lacks_is_an_error_of_its_executors(monkeypatch):
    missing = ModuleNotFoundError("No module named 'fastavro'", name="fastavro")
    monkeypatch.setattr(executor, "run_task", failing(missing))
    numbers = [pa.record_batch({"id": pa.array([0], pa.int64())})]
    (row,) = task_function(SETTINGS, plans(1), DriverMachine("driver-host"))(iter(numbers))
    with pytest.raises(ModuleNotFoundError):
        list(task_function(SETTINGS, plans(1))(iter(numbers)))

    with pytest.raises(MissingPackageError, match="its Python has no module fastavro") as caught:
        reports_of([row.column(0)[0].as_py()])
    assert caught.value.code == "spark.package_missing"

"""One Airflow for the session: home in a temporary folder, SQLite, runs in this process."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.processes.drivers import fake_driver_env, without_spark_env
from tests.support.servers.driver_service import DriverServiceProcess, pids_in

if TYPE_CHECKING:
    from airflow.sdk import DAG

# Airflow reads its environment when it is first imported.
HOME = Path(tempfile.mkdtemp(prefix="airflow-home-"))
DAGS = HOME / "dags"
DAGS.mkdir()
os.environ.update(
    {
        "AIRFLOW_HOME": str(HOME),
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__MIN_SERIALIZED_DAG_UPDATE_INTERVAL": "0",
        "AIRFLOW__DATABASE__LOAD_DEFAULT_CONNECTIONS": "False",
    }
)

LoadDag = Callable[[str], "DAG"]
Hanging = tuple[dict[str, str], Callable[[], list[int]]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.airflow)
            item.add_marker(pytest.mark.filterwarnings("default"))


@pytest.fixture(scope="session")
def airflow_home() -> Iterator[Path]:
    """Home of an Airflow with a migrated database."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from airflow.utils.db import initdb

        initdb()
    yield HOME
    shutil.rmtree(HOME)


@pytest.fixture
def load_dag(airflow_home: Path) -> Iterator[LoadDag]:
    """Write a DAG file into the DAGs folder and return its only DAG: `load_dag(source)`."""
    written: set[Path] = set()

    def load(source: str) -> DAG:
        from airflow.dag_processing.dagbag import DagBag

        path = DAGS / f"dag_{abs(hash(source))}.py"
        path.write_text(source)
        written.add(path)
        bag = DagBag(str(path))
        assert bag.import_errors == {}
        (dag,) = bag.dags.values()
        return dag

    yield load
    for path in written:
        path.unlink()


@pytest.fixture
def scripted_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drivers do what `fake` in the connector configuration says, see tests/support/fake_driver."""
    for name, value in fake_driver_env().items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Call it, and drivers that start later have their tasks in their own process.

    For tests in which an earlier run, or another test, has shown the same copy on Spark.
    """

    def switch() -> None:
        for name, value in without_spark_env().items():
            monkeypatch.setenv(name, value)

    return switch


@pytest.fixture
def xcom() -> Callable[..., Any]:
    """`xcom(dag_run, "copy")`: what a task returned."""

    def read(dag_run: Any, task_id: str) -> Any:
        from airflow.models.xcom import XComModel
        from airflow.utils.session import create_session

        with create_session() as session:
            query = XComModel.get_many(
                key="return_value", run_id=dag_run.run_id, task_ids=task_id, dag_ids=dag_run.dag_id
            )
            row = session.scalars(query).first()
            return None if row is None else XComModel.deserialize_value(row)

    return read


@pytest.fixture(scope="session")
def driver_service() -> Iterator[DriverServiceProcess]:
    """A driver service whose drivers do what `fake` in the connector configuration says."""
    with DriverServiceProcess("--lease", "120", env=fake_driver_env()) as started:
        yield started


@pytest.fixture
def driver_connection(driver_service: DriverServiceProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """Connection `our_driver` to the service; requests are not repeated for long."""
    from airflow_connect.hooks import connect_driver

    monkeypatch.setenv("AIRFLOW_CONN_OUR_DRIVER", json.dumps(driver_service.connection()))
    monkeypatch.setattr(connect_driver, "RETRY_S", 0.2)


@pytest.fixture
def hanging(tmp_path: Path) -> Hanging:
    """The configuration of a run that hangs with four processes of all kinds, and their pids."""
    paths = {name: str(tmp_path / name) for name in ("pids", "stopped", "committed")}
    return {"fake": "hang", **paths}, lambda: pids_in(tmp_path / "pids")

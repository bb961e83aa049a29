"""docs/how-to/free-the-worker-slot.md: its commands start a service, its connection reaches it, its DAG loads."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG, Connection

from airflow_connect.hooks.connect_driver import ConnectDriverHook
from airflow_connect.runtime.driver_service.runs import Limits
from airflow_connect.runtime.driver_service.serving import MIN_TOKEN_LENGTH
from airflow_connect.triggers.driver_run import AFTER_LEASE_S
from tests.airflow.conftest import DAGS, LoadDag
from tests.support.servers.certificates import self_signed
from tests.support.servers.driver_service import DriverServiceProcess

PROJECT = Path(__file__).parents[3]
PAGE = (PROJECT / "docs/how-to/free-the-worker-slot.md").read_text()
SHELL = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
PYTHON = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_page_quotes_the_dag_and_it_serializes(load_dag: LoadDag) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    source = (PROJECT / "dags/deferrable_copy.py").read_text()
    (quoted,) = PYTHON
    assert source.partition("# [START deferrable]\n")[2].partition("# [END deferrable]")[0] == quoted
    file = Path(shutil.copy(PROJECT / "dags/meetups-to-s3.json", DAGS))
    try:
        dag = load_dag(source)
    finally:
        file.unlink()
    assert isinstance(dag, DAG)
    again = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag))
    assert again.task_ids == ["copy_meetups"]
    task = dag.get_task("copy_meetups")
    assert (task.deferrable, task.driver_conn_id) == (True, ConnectDriverHook.default_conn_name)


def test_commands_of_the_page_start_a_service_that_its_connection_reaches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install, make_token, start = SHELL[0].splitlines()
    assert install.startswith("pip install ")
    subprocess.run(["sh", "-c", make_token], cwd=tmp_path, check=True)
    certificate = self_signed(tmp_path)
    program, command, *options = shlex.split(start)
    assert (program, command) == ("airflow-connect", "driver-service")
    here = {"0.0.0.0": "127.0.0.1", "driver-token": str(tmp_path / "driver-token"), "service.pem": str(certificate)}
    with DriverServiceProcess(*[here.get(option, option) for option in options], token="") as service:
        script = f'{SHELL[1]}\nprintf %s "$AIRFLOW_CONN_CONNECT_DRIVER_DEFAULT"'
        told = subprocess.run(["sh", "-c", script], env={}, capture_output=True, text=True, check=True).stdout
        given: dict[str, Any] = json.loads(told)
        assert Connection.from_json(told, "connect_driver_default").conn_type == "connect_driver"
        found = service.connection((tmp_path / "driver-token").read_text().strip(), verify=str(certificate))
        assert {**given, **{name: found[name] for name in ("host", "port", "password", "extra")}} == found
        assert given.keys() == found.keys() and given["extra"].keys() == found["extra"].keys()
        monkeypatch.setenv("AIRFLOW_CONN_CONNECT_DRIVER_DEFAULT", json.dumps(found))
        is_ok, sentence = ConnectDriverHook().test_connection()
    assert is_ok, sentence


def test_page_tells_the_limits() -> None:
    assert f"(default: {Limits().lease_s:.0f})" in PAGE
    assert f"at least {MIN_TOKEN_LENGTH} characters" in PAGE
    assert AFTER_LEASE_S == 30, "the page says: half a minute more"

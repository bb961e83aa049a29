"""A DAG with a sink of its own in a whole Airflow, and the drivers of its tasks."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airflow_connect.runtime.driver.process_tree import TOKEN_ENV
from tests.support.copies.s3 import Sink
from tests.support.faulty_converter import Faults
from tests.support.kafka_data import TopicProducer
from tests.support.processes.proc import command_lines
from tests.support.servers.airflow import PATIENCE_S, AirflowServer, Run
from tests.support.waiting import wait_until

PARTITIONS = 2
DAG_FILE = """
from datetime import UTC, datetime
from airflow.sdk import DAG, Asset, CronTriggerTimetable, task
from airflow_connect.operators.connector import ConnectorOperator, run_params
from airflow_connect.runtime.reporting import presentation

presentation.PROGRESS_EVERY_S = {progress_every_s}
copied = Asset({name!r}, "s3://{bucket}/topics/{topic}")

with DAG({name!r}, schedule={schedule}, catchup=False, params=run_params()):
    ConnectorOperator(
        task_id="copy",
        config={config!r},
        worker={worker!r},
        kafka_conn_id="our_kafka",
        aws_conn_id="our_aws",
        outlets=[copied],
        {arguments}
    )
"""


@dataclass
class Pipeline:
    """A deployed DAG `copy` with the sink that it runs, and the records in its topic."""

    airflow: AirflowServer
    sink: Sink
    faults: Faults
    produce: TopicProducer
    values: list[dict[str, Any]] = field(default_factory=list)

    @property
    def dag_id(self) -> str:
        """The DAG is called like the connector."""
        return self.sink.name

    def write(self, count: int, first_order: dict[str, Any] | None = None) -> None:
        """Write records; `first_order` is for the converter that meets the first one."""
        numbers = range(len(self.values), len(self.values) + count)
        values = [{"n": n, **((first_order or {}) if n == numbers[0] else {})} for n in numbers]
        self.produce(self.sink.topic, [(v["n"] % PARTITIONS, None, json.dumps(v)) for v in values])
        self.values += values

    def trigger(self, conf: dict[str, Any] | None = None) -> Run:
        """Start a run by REST."""
        return self.airflow.trigger(self.dag_id, conf)

    def wait_until_held(self, count: int = 1) -> None:
        """Return when as many tasks of runs stand, or have stood, in the middle of their copy."""
        wait_until(lambda: len(self.faults.held()) >= count, "a run to be in its copy", PATIENCE_S)

    def asset_extras(self) -> list[dict[str, Any]]:
        """What the events of the sink's asset carry."""
        (asset,) = self.airflow.get("assets", name_pattern=self.dag_id)["assets"]
        found = self.airflow.get("assets/events", asset_id=asset["id"])["asset_events"]
        return [event["extra"] for event in found]


def drivers_of(airflow: AirflowServer) -> dict[int, str]:
    """Running drivers of tasks, with the tokens that all their children carry."""
    found = {}
    for pid, command in command_lines():
        environment = environment_of(pid) if "airflow_connect.runtime.driver" in command else {}
        if environment.get("AIRFLOW_HOME") == str(airflow.home):
            found[pid] = environment[TOKEN_ENV]
    return found


def environment_of(pid: int) -> dict[str, str]:
    try:
        entries = Path(f"/proc/{pid}/environ").read_bytes().decode("utf-8", "replace").split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)

"""The metrics source on a real broker: many source partitions, runs one after another, kills in between."""

from __future__ import annotations

import json
import os
import random
import socket
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.documents.run import RunReport
from airflow_connect.runtime import crash_points
from airflow_connect.runtime.driver.source.configuration import SourceConfiguration
from airflow_connect.runtime.driver.source.kafka_session import SourceSession
from airflow_connect.runtime.spec import RunSpec
from airflow_connect.testing.runs import RunProcess, run_here
from airflow_connect.testing.topics import Topics
from tests.support.session.searching import KILL_ROUNDS

pytestmark = pytest.mark.integration

HOSTS = 10_000 if os.environ.get("AIRFLOW_CONNECT_SOAK") else 100
JSON = "org.apache.kafka.connect.json.JsonConverter"


@dataclass
class Source:
    """One connector and its topic."""

    bootstrap: str
    name: str
    config: dict[str, str]

    def spec(self, **overrides: str) -> RunSpec:
        connector = {
            "name": self.name, "connector.class": "MetricsSourceConnector", "topic": self.name,
            "topic.creation.default.partitions": "3", "topic.creation.default.replication.factor": "1",
            **self.config, **{key.replace("_", "."): value for key, value in overrides.items()},
        }  # fmt: skip
        worker = {
            "bootstrap.servers": self.bootstrap, "group.id": "source-workers", "value.converter": JSON,
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter.schemas.enable": "false", "runs.storage.replication.factor": "1",
            "offset.storage.replication.factor": "1", "config.storage.replication.factor": "1",
        }  # fmt: skip
        return RunSpec(connector, worker)

    def run(self, **overrides: str) -> RunReport:
        report, _ = run_here(self.spec(**overrides))
        assert report.status == "done", report.error
        return report

    def values(self) -> list[dict[str, Any]]:
        return [json.loads(message.value()) for message in Topics(self.bootstrap).read(self.name)]

    def samples(self) -> Counter[tuple[str, str]]:
        """How often each host and metric is there."""
        return Counter((value["host"], value["metric"]) for value in self.values())

    def offsets(self) -> dict[tuple[str, str], int]:
        with SourceSession(SourceConfiguration.from_spec(self.spec())) as session:
            return {
                (partition["host"], partition["metric"]): offset["timestamp"]
                for partition, offset in session.read_offsets().items()
            }


@pytest.fixture
def fleet(kafka: KafkaBroker, unique_name: str, tmp_path: Path) -> Source:
    """A simulated fleet with ten metrics a host."""
    return Source(
        kafka.bootstrap, f"metrics-{unique_name}",
        {"sampler.class": "tests.integration.connectors.metrics.fleet:FleetSampler", "fleet.hosts": str(HOSTS),
         "tasks.max": "3"},
    )  # fmt: skip


@pytest.mark.soak
def test_each_run_samples_every_host_and_metric_once(fleet: Source) -> None:
    first = fleet.run()
    again = fleet.run(tasks_max="2", hosts="host-0000[0-4]")

    assert (first.records, first.tasks, first.delivery_guarantee) == (HOSTS * 10, 3, "exactly_once")
    assert (again.records, again.tasks) == (50, 2)
    found = fleet.samples()
    assert len(found) == HOSTS * 10
    assert {place: count for place, count in found.items() if count > 1} == {
        (f"host-0000{host}", f"metric.{metric}"): 2 for host in range(5) for metric in range(10)
    }
    offsets = fleet.offsets()
    assert len(offsets) == HOSTS * 10
    assert len(set(offsets.values())) == 2
    assert min(offsets[f"host-0000{host}", "metric.9"] for host in range(5)) > offsets["host-00099", "metric.9"]


def test_host_has_one_partition_of_the_topic(fleet: Source) -> None:
    fleet.run(fleet_hosts="12")

    places: dict[str, set[int]] = {}
    for message in Topics(fleet.bootstrap).read(fleet.name):
        places.setdefault(message.key().decode(), set()).add(message.partition())
    assert len(places) == 12 and all(len(found) == 1 for found in places.values())
    assert len(set.union(*places.values())) > 1


@pytest.mark.parametrize("point", [crash_points.SOURCE_TASK_POLLED, crash_points.SOURCE_TASK_STORED])
def test_killed_run_has_whole_batches_and_the_next_run_samples_anew(fleet: Source, point: str) -> None:
    overrides = {"fleet_hosts": "20", "batch_size": "30", "tasks_max": "1"}
    assert RunProcess(fleet.spec(**overrides), crash_at=point).wait() is None
    killed = fleet.samples()

    report = fleet.run(**overrides)

    assert sum(killed.values()) in (0, 30)
    assert report.records == 200
    assert fleet.samples() == killed + Counter((f"host-{n:05d}", f"metric.{m}") for n in range(20) for m in range(10))


@pytest.mark.crash
def test_killed_rounds_leave_whole_transactions_and_the_next_run_samples_all(
    fleet: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(20261122)
    points = (*crash_points.SOURCE_DRIVER_POINTS, *crash_points.SOURCE_TASK_POINTS)
    killed = 0
    for _ in range(KILL_ROUNDS):
        monkeypatch.setenv(crash_points.SKIP, str(chance.randrange(4)))
        overrides = {
            "fleet_hosts": "12",
            "batch_size": str(chance.randint(1, 50)),
            "tasks_max": str(chance.randint(1, 4)),
            "transaction_boundary": chance.choice(["poll", "interval"]),
            "transaction_boundary_interval_ms": str(chance.choice([0, 5, 10_000])),
        }
        killed += RunProcess(fleet.spec(**overrides), crash_at=chance.choice(points)).wait() is None
    monkeypatch.delenv(crash_points.SKIP)
    fleet.run(fleet_hosts="12", hosts="host-00000")  # ends what the killed runs left open
    found = fleet.samples()

    report = fleet.run(fleet_hosts="12", tasks_max="2")

    assert killed
    assert max(found.values()) <= KILL_ROUNDS + 1
    # A transaction holds all metrics of a host.
    assert all(len({found[host, f"metric.{n}"] for n in range(10)}) == 1 for host, _ in found)
    assert report.records == 120
    assert fleet.samples() == found + Counter(dict.fromkeys(fleet.offsets(), 1))


def test_rounds_of_a_run_are_committed_one_by_one(fleet: Source) -> None:
    report = fleet.run(fleet_hosts="2", samples_per_run="3", sample_interval_ms="100")

    assert report.records == 60
    assert set(fleet.samples().values()) == {3}
    instants = [value["timestamp"] for value in fleet.values() if value["host"] == "host-00001"]
    assert instants == sorted(instants) and instants[-1] - instants[0] >= 150


def test_host_that_cannot_be_measured_fails_the_run_with_its_name(fleet: Source) -> None:
    report, _ = run_here(fleet.spec(fleet_hosts="4", fleet_broken="host-00002"))

    assert report.status == "failed"
    assert "host-00002 could not be measured: ValueError: it does not answer." in report.error["message"]


def test_own_host_is_measured_by_psutil(kafka: KafkaBroker, unique_name: str) -> None:
    source = Source(kafka.bootstrap, f"own-{unique_name}", {"tasks.max": "4", "metrics": "memory.*,cpu.percent"})

    report = source.run()

    values = {value["metric"]: value for value in source.values()}
    assert report.tasks == 1 and report.records == len(values) > 3
    assert {value["host"] for value in values.values()} == {socket.gethostname()}
    assert values["memory.total"]["value"] > 2**20

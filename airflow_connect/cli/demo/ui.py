"""`airflow-connect demo --ui`: a whole Airflow whose DAGs copy, a worker, and a producer that goes on writing."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from airflow_connect.cli.blocks import line
from airflow_connect.cli.demo import meetups, stage
from airflow_connect.cli.demo.airflow_ui import CONN_ID, USER, AirflowUi
from airflow_connect.cli.demo.dag_folder import TRIGGERED, write_dags
from airflow_connect.cli.demo.scene import CLICKS, INVOICES, ORDERS, Scene, worker_of
from airflow_connect.cli.demo.traffic import EVERY_S, Places, Traffic
from airflow_connect.cli.outcome import CommandOutcome
from airflow_connect.cli.steps import Step
from airflow_connect.cli.terminal import Terminal
from airflow_connect.devstack.launching.process import Command, ServerProcess, free_ports
from airflow_connect.devstack.topic_data import create_topic, write_records
from airflow_connect.jvm.cache import cache_dir, replace_text

RECORDS = 5000
"""RSVPs in the topic when the demo begins."""
TIMEOUT_S = 5.0
DATABASES = ("shop", "warehouse")
CONNECTORS = "Browse > Kafka Connect"


@dataclass(frozen=True)
class Running:
    """What runs while the demo does.

    Attributes:
        airflow: its processes.
        scene: the registered connectors.
        traffic: writes whenever it is told to.
    """

    airflow: AirflowUi
    scene: Scene
    traffic: Traffic


def show(terminal: Terminal) -> CommandOutcome:
    """Start everything, say what to click, and wait for Ctrl-C.

    Raises:
        DevStackError, TaskFailedError: a server did not start, or the producer failed.
    """
    with running(terminal, cache_dir() / "demo-ui") as demo:
        for row in what_to_click(demo):
            terminal.note(row)
        with suppress(KeyboardInterrupt):
            while True:
                time.sleep(EVERY_S)
                demo.traffic.write()
    return CommandOutcome(summary="The servers have ended.", result={"url": demo.airflow.url})


@contextmanager
def running(terminal: Terminal, folder: Path) -> Iterator[Running]:
    """Start the servers, Airflow and the worker; end them in the end. What is in `folder` is removed first."""
    shutil.rmtree(folder, ignore_errors=True)  # Of an earlier demo: its offsets were in a broker that is gone.
    files, home = folder / "files", folder / "airflow"
    files.mkdir(parents=True)
    with ExitStack() as stack:
        servers = stack.enter_context(stage.servers(terminal))
        bootstrap = servers.kafka.bootstrap
        places = Places(bootstrap, folder / "logs" / "access.log", folder / "shop.db")
        traffic = Traffic(places)
        write_dags(home / "dags", files, places.log)
        worker = worker_of(bootstrap, free_ports(1)[0])
        airflow = AirflowUi(home, _connections(servers, folder, worker))
        stack.callback(airflow.stop)
        with Step(terminal, "topics and connectors") as step:
            _fill_topic(servers)
            scene = Scene(bootstrap, folder, worker)
            scene.fill()
            step.fact = ", ".join((ORDERS, CLICKS, INVOICES))
        with Step(terminal, "worker") as step:
            stack.callback(_start_worker(folder, worker).stop)
            step.fact = worker["listeners"]
        with Step(terminal, "Airflow") as step:
            airflow.wait_until_ready()
            step.fact = airflow.url
        yield Running(airflow, scene, traffic)


def what_to_click(demo: Running) -> Iterator[Any]:
    """Where to look and what to click, line by line."""
    url, repairs = demo.airflow.url, [f"{key}={value}" for key, value in demo.scene.repairs().items()]
    yield line((f"{url}   user {USER}, password {demo.airflow.password()}", "bold"), indent=2, breaks=False)
    steps = (
        f"Dags > {TRIGGERED} > Trigger > How much to copy: 100 records. The tab Connectors of that run shows them.",
        f"{CONNECTORS} > {CLICKS}: it is behind, and each run reduces what is left to copy.",
        f"{CONNECTORS} > {INVOICES}: it has failed. In its configuration, set {' and '.join(repairs)}. Check, save.",
        "There, too: Replay dead letters. Records that it could not cast arrive with its next run.",
        "Ctrl-C here ends everything.",
    )
    for number, text in enumerate(steps, 1):
        yield line(f"{number}. {text}", indent=2, hang=3)


def _fill_topic(servers: stage.Stage) -> None:
    create_topic(servers.kafka.bootstrap, meetups.TOPIC, meetups.PARTITIONS)
    rsvps = meetups.rsvps(RECORDS, time.time_ns() // 1_000_000)
    write_records(servers.kafka.bootstrap, meetups.TOPIC, rsvps)
    servers.s3.client().create_bucket(Bucket=stage.BUCKET)


def _connections(servers: stage.Stage, folder: Path, worker: Mapping[str, str]) -> dict[str, Any]:
    databases = {f"{name}_db": {"conn_type": "sqlite", "host": str(folder / f"{name}.db")} for name in DATABASES}
    return {
        "kafka_default": servers.kafka_connection,
        "aws_default": servers.aws_connection,
        CONN_ID: {"conn_type": "connect_worker", "extra": dict(worker)},
        **databases,
    }


def _start_worker(folder: Path, worker: Mapping[str, str]) -> ServerProcess:
    file = folder / "worker.properties"
    replace_text(file, "".join(f"{key}={value}\n" for key, value in worker.items()))
    argv = [sys.executable, "-m", "airflow_connect.cli", "worker", str(file)]
    return ServerProcess.start(
        Command("the worker", argv, folder / "worker.log"), lambda: _answers(worker["listeners"])
    )


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=TIMEOUT_S):
            return True
    except OSError:
        return False

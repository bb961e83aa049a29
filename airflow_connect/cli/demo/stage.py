"""The servers of the demo, its topic, its bucket, and the configuration files for them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import airflow_connect
from airflow_connect.cli.demo.meetups import PARTITIONS, TOPIC, rsvps
from airflow_connect.cli.steps import Step
from airflow_connect.cli.terminal import Terminal
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.devstack.s3 import S3Server
from airflow_connect.devstack.topic_data import create_topic, write_records
from airflow_connect.errors import ConfigError
from airflow_connect.jvm.cache import cache_dir, replace_text
from airflow_connect.runtime.config_files import read_connector_file
from airflow_connect.runtime.reporting.texts import format_count

DAG_ID = "kafka_to_s3"
CONNECTOR_FILE = "meetups-to-s3.json"
BUCKET = "meetups"


@dataclass(frozen=True)
class Stage:
    """Everything that a run of the demo needs.

    Attributes:
        folder: home of the demo in the cache.
        dags: folder with the DAG and the connector's configuration.
    """

    kafka: KafkaBroker
    s3: S3Server
    folder: Path
    dags: Path

    @property
    def aws_connection(self) -> dict[str, Any]:
        """The Airflow connection of the S3 server."""
        extra = {"endpoint_url": self.s3.endpoint_url, "region_name": self.s3.region}
        return {"conn_type": "aws", "login": self.s3.access_key, "password": self.s3.secret_key, "extra": extra}

    @property
    def kafka_connection(self) -> dict[str, Any]:
        """The Airflow connection of the broker."""
        # One broker cannot keep the three replicas that are the default in a real cluster.
        extra = {"bootstrap.servers": self.kafka.bootstrap, "runs.storage.replication.factor": "1"}
        return {"conn_type": "kafka", "extra": extra}

    def write_files(self) -> tuple[Path, Path]:
        """Write worker and connector configuration for the command line; returns their paths."""
        worker, connector = self.folder / "worker.properties", self.folder / CONNECTOR_FILE
        replace_text(worker, "".join(f"{key}={value}\n" for key, value in self.kafka_connection["extra"].items()))
        config = {
            **read_connector_file(self.dags / CONNECTOR_FILE),
            "store.url": self.s3.endpoint_url,
            "s3.region": self.s3.region,
            "aws.access.key.id": self.s3.access_key,
            "aws.secret.access.key": self.s3.secret_key,
        }
        replace_text(connector, json.dumps(config, indent=2) + "\n", mode=0o600)
        return worker, connector


def dags_folder() -> Path:
    """Folder of the DAGs that users copy: next to the package in a checkout, inside it in an installed wheel.

    Raises:
        ConfigError: it is in neither place.
    """
    package = Path(airflow_connect.__file__).parent
    for folder in (package.parent / "dags", package / "dags"):
        if (folder / CONNECTOR_FILE).exists():
            return folder
    raise ConfigError(f"There is no folder with {CONNECTOR_FILE} next to {package} or in it.", code="demo.dags")


@contextmanager
def servers(terminal: Terminal) -> Iterator[Stage]:
    """Start the broker and the S3 server; stop both at the end."""
    folder = cache_dir() / "demo"
    folder.mkdir(exist_ok=True)
    with ExitStack() as stack:
        with Step(terminal, KafkaBroker.name) as step:
            kafka = stack.enter_context(KafkaBroker.start())
            step.fact = kafka.bootstrap
        with Step(terminal, f"S3 server ({S3Server.name})") as step:
            s3 = stack.enter_context(S3Server.start())
            step.fact = s3.endpoint_url
        yield Stage(kafka, s3, folder, dags_folder())


def fill(stage: Stage, records: int, terminal: Terminal) -> None:
    """Create the topic with its records, and the bucket."""
    with Step(terminal, f"topic {TOPIC}") as step:
        create_topic(stage.kafka.bootstrap, TOPIC, PARTITIONS)
        written = write_records(stage.kafka.bootstrap, TOPIC, rsvps(records, time.time_ns() // 1_000_000))
        step.fact = f"{format_count(written)} RSVPs in {PARTITIONS} partitions"
        stage.s3.client().create_bucket(Bucket=BUCKET)

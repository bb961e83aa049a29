"""The configuration files that Kafka ships, unchanged, on one broker with the settings it ships with.

tests/data/kafka_config/README.md says which published versions they are.

The files say localhost:9092, which may be taken: `--set` leads the connectors' clients to the test's broker. The worker
file keeps its offsets in /tmp/connect.offsets, whatever the current folder is: what is there is put aside for the test.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.kafka.state.offsets import java_offsets_file
from tests.support.processes.drivers import without_spark_env

pytestmark = pytest.mark.integration

FILES = Path("tests/data/kafka_config").resolve()
CONNECTORS = ("file-source", "file-sink", "console-source", "console-sink")
OFFSETS_FILE = Path("/tmp/connect.offsets")


@pytest.fixture(scope="module")
def stock_broker() -> Iterator[KafkaBroker]:
    """One broker that makes topics when somebody writes to them, as Kafka's server.properties has it."""
    with KafkaBroker.start(properties={"auto.create.topics.enable": "true"}) as broker:
        yield broker


@pytest.fixture
def no_offsets_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing in /tmp/connect.offsets; what was there comes back."""
    aside = tmp_path_factory.mktemp("aside") / "connect.offsets"
    if OFFSETS_FILE.exists():
        shutil.move(OFFSETS_FILE, aside)
    yield
    OFFSETS_FILE.unlink(missing_ok=True)
    if aside.exists():
        shutil.move(aside, OFFSETS_FILE)


def standalone(
    broker: KafkaBroker, folder: Path, worker: str, typed: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run all four connectors with a worker file, in a folder of their own; `typed` is standard input."""
    files = [f"connect-{worker}.properties", *(f"connect-{name}.properties" for name in CONNECTORS)]
    for name in files:
        shutil.copy(FILES / name, folder)
    kinds = ("consumer", "producer", "admin")
    to_broker = [f"--set={kind}.override.bootstrap.servers={broker.bootstrap}" for kind in kinds]
    command = [sys.executable, "-m", "airflow_connect.cli", "standalone", *to_broker, *files]
    env = {**os.environ, **environment}
    return subprocess.run(
        command, cwd=folder, env=env, input=typed, capture_output=True, text=True, timeout=180, check=False
    )


@pytest.mark.budget(30)  # six workers, one after the other
def test_worker_and_connector_files_of_kafka_run_unchanged_one_worker_after_the_other(
    stock_broker: KafkaBroker, tmp_path: Path, no_offsets_file: None
):
    lines, copied = tmp_path / "test.txt", tmp_path / "test.sink.txt"
    lines.write_text("one\ntwo\n")

    alone = standalone(stock_broker, tmp_path, "standalone", "typed\n")

    assert alone.returncode == 0, alone.stderr
    assert copied.read_text() == "one\ntwo\n"
    assert alone.stdout == "one\ntwo\ntyped\n"
    assert java_offsets_file.read(str(OFFSETS_FILE))

    lines.write_text("one\ntwo\nthree\n")
    # The same topics of state: offsets go on where the other worker was. The connectors have been on Spark before.
    distributed = standalone(stock_broker, tmp_path, "distributed", "more\n", **without_spark_env())

    assert distributed.returncode == 0, distributed.stderr
    assert copied.read_text() == "one\ntwo\ntyped\nthree\n"
    assert distributed.stdout == "three\nmore\n"

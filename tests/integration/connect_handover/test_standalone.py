"""A standalone worker of Kafka Connect and our runs, which share its offsets file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.kafka.state.offsets import java_offsets_file
from tests.devstack.connect_worker import ConnectWorker
from tests.integration.connect_handover.conftest import Shared, our_worker
from tests.support.kafka_data import create_topic

pytestmark = pytest.mark.integration


@pytest.fixture
def shared(kafka: KafkaBroker, unique_name: str, tmp_path: Path) -> Iterator[Shared]:
    """A FileStreamSource of a file that does not exist yet, and a standalone worker that does not know it yet."""
    create_topic(kafka.bootstrap, unique_name)
    file, offsets = tmp_path / "lines.log", tmp_path / "connect.offsets"
    config = {"connector.class": "FileStreamSource", "tasks.max": "1", "file": str(file), "topic": unique_name}
    where = {"offset.storage.file.filename": str(offsets)}
    topics = {f"{kind}.storage.topic": f"{unique_name}-{kind}" for kind in ("config", "offset")}
    ours = {**our_worker(kafka), **topics, **where, "group.id": unique_name}
    with ConnectWorker.start_standalone(kafka.bootstrap, where) as worker:
        yield Shared(worker, ours, f"source-{unique_name}", unique_name, file, config)


def run_ours_after_worker(shared: Shared, line: str) -> None:
    """End the worker, which reads its file when it starts and only then, and let us copy a line more."""
    shared.worker.kill()
    wanted = [*shared.lines(), line]
    shared.append(line)
    report = shared.run_ours()
    assert any("1 offset was taken over from" in note for note in report.notes)
    assert shared.run_ours().status == "empty"  # Nothing is taken over twice.
    assert shared.lines() == wanted


def test_worker_and_ours_in_turn_copy_each_line_once_and_keep_offsets_of_others(shared: Shared):
    shared.append("one", "two")
    shared.let_worker_copy(["one", "two"])
    run_ours_after_worker(shared, "three")
    shared.worker.restart()
    shared.append("four")
    shared.let_worker_copy(["one", "two", "three", "four"])
    run_ours_after_worker(shared, "five")
    connectors = {key.split(b",")[0] for key in java_offsets_file.read(str(shared.worker.offsets_file))}
    assert connectors == {f'["{shared.name}"'.encode(), b'["airflow_connect"'}

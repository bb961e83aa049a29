"""A run gives up its Kafka clients when it ends, not when Python happens to free them: each has threads and sockets."""

from __future__ import annotations

import gc
import os
from typing import Any

import pytest

from airflow_connect.runtime.driver.entry import run_connector
from airflow_connect.runtime.spec import RunSpec
from tests.support.copies.s3 import InProcessEngine
from tests.support.servers.rest import STRINGS, worker_of
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration


def threads() -> int:
    """Of this process, those of librdkafka included."""
    return len(os.listdir("/proc/self/task"))


@pytest.fixture
def no_collection():
    """Python frees nothing that refers to itself, as an exception with its traceback does."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_runs_that_copy_find_nothing_or_fail_leave_no_threads(
    kafka, unique_name, make_topic, produce, tmp_path, no_collection
):
    strings = {"key.converter": STRINGS, "value.converter": STRINGS, "runs.storage.replication.factor": "1"}
    worker = {**worker_of(kafka.bootstrap, unique_name), **strings}
    topic, target = make_topic(), make_topic()
    file = str(tmp_path / "lines")

    def run(end: str, **config: Any) -> str:
        connector = {"name": f"{unique_name}-{end}", "file": file, **config}
        return run_connector(RunSpec(connector, worker), engine=InProcessEngine()).status

    def every_kind() -> list[str]:
        produce(topic, [(0, None, b"x", 0, [])])
        sink = {"connector.class": "FileStreamSink", "topics": topic}
        source = {"connector.class": "FileStreamSource", "topic": target}
        missing = {**sink, "topics": f"{topic}-no"}
        return [run("a", **sink), run("a", **sink), run("b", **missing), run("c", **source), run("c", **source)]

    assert every_kind() == ["done", "empty", "failed", "done", "empty"]
    before = threads()
    for _ in range(2):
        every_kind()
    wait_until(lambda: threads() <= before, "the threads of closed clients have ended")

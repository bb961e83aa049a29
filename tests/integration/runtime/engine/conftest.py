"""What the tests of the engine share: Spark, faults inside tasks, and processes as /proc shows them."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.documents.run import RunReport
from airflow_connect.runtime.driver.process import DriverProcess
from airflow_connect.runtime.engine.spark import SparkEngine
from tests.support.copies.s3 import Sink
from tests.support.faulty_converter import Faults
from tests.support.processes.drivers import PROJECT
from tests.support.session.searching import IS_SOAK
from tests.support.waiting import wait_until

PATIENCE_S = 90.0
collect_ignore = [] if IS_SOAK else ["test_yarn.py"]

FillTopic = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="session", autouse=True)
def executors_find_the_tests(spark_classes: None) -> Iterator[None]:
    """Python workers inherit the environment of whoever starts Spark."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(PROJECT), os.environ.get("PYTHONPATH")])))
        yield


@pytest.fixture(scope="module")
def local_engine() -> Iterator[SparkEngine]:
    """One session of `local[2]` for the tests of a module."""
    with SparkEngine({"spark.master": "local[2,4]"}) as engine:
        yield engine


@pytest.fixture
def faults(tmp_path: Path) -> Iterator[Faults]:
    """Faults of one test; whatever still waits at its end goes on."""
    folder = tmp_path / "faults"
    folder.mkdir()
    found = Faults(folder)
    yield found
    found.release()


@pytest.fixture
def fill(produce: Any) -> FillTopic:
    """Write `count` JSON values round robin: `fill(topic, partitions, count, at={index: {...}}) -> values`."""

    def write(
        topic: str, partitions: int, count: int = 60, at: dict[int, dict[str, Any]] | None = None, first: int = 0
    ) -> list[dict[str, Any]]:
        values = [{"n": n, **((at or {}).get(n - first, {}))} for n in range(first, first + count)]
        produce(topic, [(n % partitions, str(n), json.dumps(value)) for n, value in enumerate(values)])
        return values

    return write


def progress_of(events: Sequence[Any]) -> list[dict[str, Any]]:
    """The copy's progress events."""
    return [e for e in events if e["event"] == "progress" and e["phase"] == "copy"]


class Background:
    """Work in a thread of its own, whose failure ends the waiting for what it should have done."""

    def __init__(self, work: Callable[[], Any]) -> None:
        """Start it."""
        self._pool = ThreadPoolExecutor(1)
        self._future = self._pool.submit(work)

    def until(self, condition: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
        """Wait for a condition while the work goes on."""

        def is_reached() -> bool:
            if self._future.done():
                pytest.fail(f"the work ended ({self._future.result()}) before: {what}")
            return condition()

        wait_until(is_reached, what, patience_s)

    def result(self) -> Any:
        """What the work returned."""
        return self._future.result(PATIENCE_S)

    def close(self) -> None:
        """Wait for the end of the work."""
        self._pool.shutdown()


@pytest.fixture
def in_background(faults: Faults) -> Iterator[Callable[[Callable[[], Any]], Background]]:
    """Start work: `in_background(function)`; it is over when the test is, because its faults are released."""
    started: list[Background] = []

    def start(work: Callable[[], Any]) -> Background:
        started.append(Background(work))
        return started[-1]

    yield start
    faults.release()
    for work in started:
        work.close()


@dataclass
class Driven:
    """A run in a driver process of its own, as its parent sees it."""

    report: RunReport
    events: list[dict[str, Any]]
    log: str
    token: str


Drive = Callable[..., Driven]


@pytest.fixture
def drive() -> Drive:
    """Run a sink in a driver process: `drive(sink, {"spark.master": ...})`."""

    def run(sink: Sink, spark: Mapping[str, str]) -> Driven:
        sink.worker_config.update(spark)
        lines: list[str] = []
        with DriverProcess(sink.spec(), on_log=lines.append) as driver:
            limit = threading.Timer(PATIENCE_S, driver.kill)
            limit.start()
            events = list(driver.events())
            report = driver.wait()
            limit.cancel()
        log = "\n".join(lines)
        assert isinstance(report, RunReport), log
        return Driven(report, events, log, driver.token)

    return run

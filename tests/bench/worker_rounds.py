"""What a worker costs with nothing to copy: a round over idle connectors, a look at their lag, loading state topics.

usage: python -m tests.bench.worker_rounds [CONNECTORS [STATE_RECORDS]]
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from airflow_connect.control.herder.herder import Herder
from airflow_connect.control.settings import ControlSettings
from airflow_connect.control.state import records
from airflow_connect.control.state.topics import Change, StateTopics
from airflow_connect.control.worker.due import Due, lag_condition
from airflow_connect.control.worker.lag_looks import LagLooks
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.runtime.driver.entry import run_connector
from tests.support.kafka_data import create_topic

PARTITIONS, TOPICS, BATCH = 50, 10, 5000
STRINGS = "org.apache.kafka.connect.storage.StringConverter"


def main() -> None:
    """Measure and print."""
    connectors, state_records = (int(word) for word in (*sys.argv[1:], "200", "100000")[:2])
    with KafkaBroker.start() as kafka:
        for number in range(TOPICS):
            create_topic(kafka.bootstrap, f"t{number}", partitions=PARTITIONS)
        settings = ControlSettings.from_worker(_worker(kafka.bootstrap))
        topics = StateTopics(settings)
        topics.open()
        herder = Herder(topics, settings, "bench:1")
        every = [_due(number) for number in range(connectors)]
        looks = LagLooks(herder.spec_of)
        for name in ("first", "second"):
            with _timed(f"{name} round over {connectors} connectors of {PARTITIONS} partitions"):
                for due in every:
                    report = run_connector(herder.spec_of(due.config))
                    assert report.status == "empty", report.error
            with _timed(f"{name} look at their lag"):
                assert looks.reached(every) == set()
        _fill(topics, state_records)
        again = StateTopics(settings)
        again.open()
        with _timed(f"loading state topics of {state_records} records"):
            assert len(again.look(lambda state: list(state.config.connectors))) == BATCH
        with _timed("looking again"):
            again.look(lambda state: None)


def _worker(bootstrap: str) -> dict[str, str]:
    factors = {f"{kind}.storage.replication.factor": "1" for kind in ("config", "status", "offset", "runs")}
    return {"bootstrap.servers": bootstrap, "key.converter": STRINGS, "value.converter": STRINGS, **factors}


def _due(number: int) -> Due:
    config: dict[str, str | None] = {
        "name": f"idle-{number}",
        "connector.class": "FileStreamSink",
        "topics": f"t{number % TOPICS}",
        "file": f"/tmp/airflow-connect-bench-{number}",
        "run.lag.records": "1",
    }
    return Due(f"idle-{number}", config, 0, lag_condition(config))


def _fill(topics: StateTopics, count: int) -> None:
    """Configurations of `BATCH` connectors, again and again: what a log holds that is not compacted yet."""
    config = {f"key.{n}": "value" * 5 for n in range(20)}
    for _ in range(0, count, BATCH):
        change = Change([records.connector_config(f"c{n}", config) for n in range(BATCH)])
        _write(topics, lambda _, change=change: change)  # type: ignore[misc]


def _write(topics: StateTopics, decide: Callable[..., Change]) -> None:
    topics.change(decide, lambda _: None)


@contextmanager
def _timed(what: str) -> Iterator[None]:
    started, cpu = time.perf_counter(), os.times()
    yield
    after = os.times()
    used = after.user + after.system - cpu.user - cpu.system
    print(f"{what}: {time.perf_counter() - started:.2f} s, {used:.2f} s of CPU time", flush=True)


if __name__ == "__main__":
    main()

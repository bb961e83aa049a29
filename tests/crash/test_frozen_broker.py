"""A broker that keeps its connections and never answers again: every run ends, with a sentence, and the next goes on.

Each step takes half a minute, although Kafka is given less time than in earnest: all but one are for `make soak`.
"""

import os
import signal
import time

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.runtime.crash_points import AUDITED, DRIVER_POINTS, TASK_READING
from tests.support.copies.s3 import Sink, numbered
from tests.support.kafka_data import create_topic, produce
from tests.support.processes.proc import freeze
from tests.support.session.impatience import give_kafka
from tests.support.steps import HookedEngine, Steps
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.crash, pytest.mark.integration, pytest.mark.budget(60)]

PATIENCE_S = 5.0
"""Instead of a minute for each call; there are some calls in a row."""
LONGEST_S = 100
POINTS = (*DRIVER_POINTS, TASK_READING) if os.environ.get("AIRFLOW_CONNECT_SOAK") else (AUDITED,)


@pytest.mark.parametrize("point", POINTS)
def test_run_ends_when_the_broker_stops_answering(s3, bucket, unique_name, monkeypatch, point):
    with KafkaBroker.start() as broker:
        create_topic(broker.bootstrap, unique_name, 3)
        produce(broker.bootstrap, unique_name, numbered(0, 12, 3)[0])
        sink = Sink(broker, s3, bucket, f"sink-{unique_name}", unique_name, {"flush.size": "4"}, engine=HookedEngine())
        steps = Steps(monkeypatch)
        steps.on(point, lambda: freeze(broker.pid))
        give_kafka(PATIENCE_S, monkeypatch)
        started = time.monotonic()
        try:
            frozen = sink.try_run()
        finally:
            os.kill(broker.pid, signal.SIGCONT)
        took = time.monotonic() - started
        # A broker that slept for longer than its session is let in again by the controller, in some seconds.
        wait_until(lambda: sink.try_run().status == "empty", "a run that finds nothing more to do")
        sink.run()

        # Whatever was done before the freeze may be enough for the run to end well.
        assert frozen.status == "done" or frozen.error["retriable"], frozen.error
        assert took < LONGEST_S, frozen.error
        sink.assert_exactly_once(numbered(0, 12)[1])

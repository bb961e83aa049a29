"""An outage of Kafka: requests fail together and in time, `/health` tells, and everything goes on afterwards."""

from __future__ import annotations

import contextlib
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from tests.support.servers.rest import Answered, RestServer, worker_of
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration

AT_ONCE = 24
CONFIG = {"connector.class": "FileStreamSource", "file": "in.txt", "topic": "lines"}


@pytest.mark.budget(25)  # A broker of its own, which is stopped and started again.
def test_requests_during_an_outage_fail_together_and_those_after_it_succeed(monkeypatch):
    broker = KafkaBroker.start()
    with contextlib.ExitStack() as stack:
        stack.callback(broker.discard)
        server = stack.enter_context(RestServer(worker_of(broker.bootstrap, "outage")))
        assert server.send("PUT", "/connectors/c/config", CONFIG).status == 201
        assert server.send("GET", "/health").status == 200
        broker.kill()
        requests = [
            ("GET", "/connectors"),
            ("GET", "/connectors/c/status"),
            ("PUT", "/connectors/c/pause"),
            ("DELETE", "/connectors/c"),
        ]
        asked = [requests[number % len(requests)] for number in range(AT_ONCE)]
        began = time.monotonic()
        # Short only while nothing answers: a slow machine needs longer for an answer.
        with monkeypatch.context() as short, ThreadPoolExecutor(AT_ONCE + 1) as pool:
            short.setattr("airflow_connect.kafka.admin.watermarks.ANSWER_TIMEOUT_S", 1.0)
            short.setattr("airflow_connect.control.state.topics.READ_WITHIN_S", 0.5)
            short.setattr("airflow_connect.control.rest.routes.server.HEALTH_WITHIN_S", 0.2)
            asking = pool.map(lambda request: server.send(*request), asked)
            health = server.send("GET", "/health")
            answers: list[Answered] = list(asking)
        took_s = time.monotonic() - began
        assert {answer.status for answer in answers} == {503}, answers
        assert all("Kafka" in answer.body["message"] for answer in answers)
        assert took_s < AT_ONCE, "each of them alone would take longer than a second"
        assert (health.status, health.body["status"]) == (500, "unhealthy")
        assert "Kafka" in health.body["message"]
        broker.restart()
        wait_until(lambda: server.send("GET", "/health").status == 200, "the API to recover", 60)
        assert server.send("PUT", "/connectors/c/pause").status == 202
        assert server.send("GET", "/connectors/c/status").body["connector"]["state"] == "PAUSED"


def test_a_request_that_takes_too_long_is_answered_with_kafka_connects_text_and_goes_on(
    kafka, unique_name, monkeypatch
):
    import threading

    monkeypatch.setattr("airflow_connect.control.rest.answers.LONGEST_S", 0.2)
    may_go_on = threading.Event()
    with RestServer(worker_of(kafka.bootstrap, unique_name)) as server:
        names = server.herder.names
        monkeypatch.setattr(server.herder, "names", lambda: [*names(), may_go_on.wait(60)])
        answer = server.send("GET", "/connectors")
        may_go_on.set()
        assert (answer.status, answer.body["error_code"]) == (500, 500)
        assert answer.body["message"].startswith("Request timed out. The worker is currently waiting for Kafka, which")

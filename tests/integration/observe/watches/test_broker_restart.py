"""A broker that goes away while somebody waits: looking fails, and works again, with the same poller."""

from __future__ import annotations

import json

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.errors import ConnectError, UnavailableError
from airflow_connect.observe.watches.conditions import LagReaches, RunEnds, TimePassed
from airflow_connect.observe.watches.reader import ClusterReader, Watch
from airflow_connect.observe.watches.target import target_of
from airflow_connect.runtime.spec import RunSpec
from tests.support.kafka_data import create_topic, produce
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.budget(25)]  # a broker of its own, started twice


def test_reader_survives_a_restart_of_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_connect.kafka.clients.short_lived.ensure_reachable.__defaults__", (0.5,))
    monkeypatch.setattr("airflow_connect.kafka.admin.many_offsets.REQUEST_TIMEOUT_S", 2.0)
    broker = KafkaBroker.start()
    try:
        create_topic(broker.bootstrap, "t", 2)
        target = target_of(RunSpec({"name": "c", "topics": "t"}, {"bootstrap.servers": broker.bootstrap}))
        reader = ClusterReader(target.cluster)
        watches = [Watch(target, condition) for condition in (LagReaches(min_records=2), TimePassed(1), RunEnds())]

        def looks() -> list[bool]:
            try:
                answers = reader.observe(watches)
            except UnavailableError:
                return []
            for answer in answers:
                if isinstance(answer, ConnectError):
                    assert answer.retriable, answer
                    return []
            return [answer.is_reached for answer in answers if not isinstance(answer, ConnectError)]

        wait_until(lambda: looks() == [False, False, False], "a first look")
        broker.kill()
        assert looks() == []
        broker.restart()
        produce(broker.bootstrap, "t", [(n, None, json.dumps({"n": n})) for n in range(2)])
        wait_until(lambda: looks() == [True, True, False], "looking to work again")
    finally:
        broker.discard()

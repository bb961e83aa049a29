"""Timeouts of the group of workers."""

from __future__ import annotations

import pytest

from airflow_connect.control.worker.group_settings import timeouts_of
from airflow_connect.errors import ConfigError
from airflow_connect.kafka.admin.worker_membership import Timeouts


def test_the_defaults_are_those_of_kafka_connect():
    assert timeouts_of({}) == Timeouts(session=10_000, heartbeat=3_000, rebalance=60_000)


def test_the_keys_of_the_worker_count():
    given = {"session.timeout.ms": "6000", "heartbeat.interval.ms": "500", "rebalance.timeout.ms": 9000}
    assert timeouts_of(given) == Timeouts(6000, 500, 9000)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"session.timeout.ms": "soon"}, "session.timeout.ms"),
        ({"rebalance.timeout.ms": "0"}, "rebalance.timeout.ms"),
        ({"session.timeout.ms": "3000"}, "heartbeat.interval.ms=3000 is not less than session.timeout.ms=3000"),
    ],
)
def test_a_wrong_timeout_is_refused_with_its_key(given, message):
    with pytest.raises(ConfigError, match=message):
        timeouts_of(given)

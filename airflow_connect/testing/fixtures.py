"""The pytest plugin of the suites: `pytest_plugins = ["airflow_connect.testing.fixtures"]` in a `conftest.py`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_connect.devstack.kafka import KafkaBroker


@pytest.fixture(scope="session")
def kafka_bootstrap() -> Iterator[str]:
    """`bootstrap.servers` of a real Kafka broker for the whole session. Override it to use your own broker."""
    with KafkaBroker.start() as broker:
        yield broker.bootstrap

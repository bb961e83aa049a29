"""Conformance on the broker of the session."""

from __future__ import annotations

import pytest

from airflow_connect.devstack.kafka import KafkaBroker


@pytest.fixture(scope="session")
def kafka_bootstrap(kafka: KafkaBroker) -> str:
    """What airflow_connect.testing.fixtures would start a broker of its own for."""
    return kafka.bootstrap

"""Conformance on the broker of the session."""

from __future__ import annotations

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from tests.support.session.searching import IS_SOAK

collect_ignore = [] if IS_SOAK else ["test_nessie.py"]
"""Nessie is 240 MB to fetch."""


@pytest.fixture(scope="session")
def kafka_bootstrap(kafka: KafkaBroker) -> str:
    """What airflow_connect.testing.fixtures would start a broker of its own for."""
    return kafka.bootstrap

"""Conformance on the broker of the session; tests that run on each kind of database."""

from __future__ import annotations

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from tests.support.servers.databases import Database


@pytest.fixture(scope="session")
def kafka_bootstrap(kafka: KafkaBroker) -> str:
    """What airflow_connect.testing.fixtures would start a broker of its own for."""
    return kafka.bootstrap


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def database(request: pytest.FixtureRequest) -> Database:
    """An empty database of each kind."""
    found: Database = request.getfixturevalue(f"{request.param}_database")
    return found

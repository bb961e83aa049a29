"""Kafka gets less time to answer than in earnest, in tests with a broker that never does."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import airflow_connect.kafka
from airflow_connect.runtime.driver import cluster_session

LIMITS = ("API_TIMEOUT_S", "ANSWER_TIMEOUT_S", "BOOTSTRAP_TIMEOUT_S")


def give_kafka(seconds: float, patch: pytest.MonkeyPatch) -> None:
    """Let every request of this process wait for an answer for this long at most."""
    found = pkgutil.walk_packages(airflow_connect.kafka.__path__, "airflow_connect.kafka.")
    # Imported now, so that none of them keeps the limits of the test.
    for module in [cluster_session, *(importlib.import_module(name) for _, name, _ in found)]:
        for limit in LIMITS:
            if hasattr(module, limit):
                patch.setattr(module, limit, min(seconds, getattr(module, limit)))

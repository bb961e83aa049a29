"""Log levels for all workers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from airflow_connect.control.herder.loggers import Loggers
from airflow_connect.control.state import records
from airflow_connect.control.state.topics import State
from airflow_connect.control.worker.cluster_levels import ClusterLevels

NAME = "airflow_connect.test_cluster_levels"


class Topics:
    """A config topic."""

    def __init__(self) -> None:
        self.state = State()

    def add(self, level: str) -> None:
        key, value = records.logger_level(NAME, level)
        self.state.config.take(key, value, self.state.config.next_offset)

    def look(self, use: Callable[[State], Any]) -> Any:
        return use(self.state)


def test_a_new_level_is_applied_once_and_an_old_one_never():
    logger, topics = logging.getLogger(NAME), Topics()
    topics.add("ERROR")
    levels = ClusterLevels(topics, Loggers())  # type: ignore[arg-type]
    levels.look()
    assert logger.level == logging.NOTSET
    topics.add("DEBUG")
    levels.look()
    assert logger.level == logging.DEBUG
    logger.setLevel(logging.WARNING)  # by this worker alone
    levels.look()
    assert logger.level == logging.WARNING
    topics.add("INFO")
    levels.look()
    assert logger.level == logging.INFO

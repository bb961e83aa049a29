"""Log levels that a request at any worker has set for all of them (KIP-976)."""

from __future__ import annotations

import logging

from airflow_connect.control.herder.loggers import Loggers
from airflow_connect.control.state.topics import State, StateTopics

_LOG = logging.getLogger(__name__)


class ClusterLevels:
    """Applies new `logger-cluster-` records of the config topic to this process.

    As in Kafka Connect, those from before the worker started do not count.
    """

    def __init__(self, topics: StateTopics, loggers: Loggers) -> None:
        """`topics`: open."""
        self._topics = topics
        self._loggers = loggers
        self._seen = topics.look(lambda state: state.config.next_offset)

    def look(self) -> None:
        """Apply what is new.

        Raises:
            UnavailableError, AccessError: Kafka.
        """
        for offset, name, level in self._topics.look(self._new):
            _LOG.info("The level of %s is set to %s for all workers.", name, level)
            self._loggers.set(name, level)
            self._seen = offset + 1

    def _new(self, state: State) -> list[tuple[int, str, str]]:
        every = ((offset, name, level) for name, (offset, level) in state.config.levels.items())
        return sorted(one for one in every if one[0] >= self._seen)

"""The config and status topics of one installation: read to their end on demand, and changed in transactions.

Kafka has no compare-and-set, but it fences: a change takes the transactional id of the installation, reads both topics
to their end, decides, and writes everything in one transaction. If another process takes the id in between, nothing is
written, and the change is decided again with what that process wrote. The id is that of Kafka Connect's leader with
exactly-once sources, so such a leader and this process cannot both write either.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.control.state.config_fold import ConfigState
from airflow_connect.control.state.records import Record
from airflow_connect.control.state.status_fold import StatusState
from airflow_connect.errors import AccessError, ConfigError, FencedError, NotStoppedError, RetriableError
from airflow_connect.kafka.admin.watermarks import READ_UNCOMMITTED, earliest_offsets, latest_offsets
from airflow_connect.kafka.admin.worker_group import live_workers
from airflow_connect.kafka.clients.short_lived import API_TIMEOUT_S, Admin, admin_client, names
from airflow_connect.kafka.state import compacted_topics
from airflow_connect.kafka.state.murmur2 import partition_for
from airflow_connect.kafka.writing.transactions import TransactionalWriter
from airflow_connect.retrying import Backoff, Jitter, Retry

if TYPE_CHECKING:
    from airflow_connect.control.settings import ControlSettings

MOST_ATTEMPTS = 20
_Seen = TypeVar("_Seen")


class Change(NamedTuple):
    """Records to write, in this order."""

    config: Sequence[Record] = ()
    status: Sequence[Record] = ()


@dataclass(slots=True)
class State:
    """Both topics as far as they were read."""

    config: ConfigState = field(default_factory=ConfigState)
    status: StatusState = field(default_factory=StatusState)


class StateTopics:
    """Reader and writer of both topics. Threads may share it."""

    def __init__(self, settings: ControlSettings) -> None:
        """Opens nothing; `open` does."""
        self._settings = settings
        self._admin: Admin | None = None
        self._status_partitions = 0
        self._state = State()
        self._positions: dict[TopicPartition, int] = {}
        self._lock = threading.RLock()

    def open(self) -> None:
        """Connect, and find or create both topics.

        Raises:
            ConfigError: a topic has another policy than `compact`, or the config topic has several partitions.
            UnavailableError, AccessError: Kafka.
        """
        with self._lock:
            self._admin = admin_client(self._settings.admin)
            config = self._settings.config_topic
            if (found := compacted_topics.ensure(self._admin, config)) != 1:
                raise ConfigError(
                    f"The topic {config.name} has {found} partitions; the config topic needs exactly one.",
                    suggestion="Name another topic, or recreate it with one partition if nothing uses it.",
                    config_path=config.config_path,
                )
            self._status_partitions = compacted_topics.ensure(self._admin, self._settings.status_topic)
            self._await_new_topics()

    def _await_new_topics(self) -> None:
        """The leader of a new topic may be known before it knows the topic itself.

        A client that was told so once does not ask again for the topic, as long as it knows the others: each try has a
        new one.
        """
        tries = Retry(Backoff(0.02, longest_s=0.1), within_s=API_TIMEOUT_S)
        while True:
            try:
                latest_offsets(self.admin, self._places(), READ_UNCOMMITTED)
                return
            except AccessError as error:
                if error.code != "kafka.no_topic" or not tries.pause():
                    raise
                self._admin = admin_client(self._settings.admin)

    def _places(self) -> list[TopicPartition]:
        status = self._settings.status_topic.name
        places = [TopicPartition(status, number) for number in range(self._status_partitions)]
        return [TopicPartition(self._settings.config_topic.name, 0), *places]

    @property
    def admin(self) -> Admin:
        """The admin client."""
        if self._admin is None:
            raise RuntimeError("The state topics are not open.")
        return self._admin

    def cluster_id(self) -> str:
        """The id of the Kafka cluster."""
        return str(self.admin.cluster_id(API_TIMEOUT_S))

    def look(self, use: Callable[[State], _Seen]) -> _Seen:
        """What `use` makes of the state up to the ends of both topics now; about 5 ms if nothing is new.

        Args:
            use: gets the state, and must not keep or change it: all threads share it.

        Raises:
            UnavailableError, AccessError: Kafka.
        """
        with self._lock:
            return use(self._read())

    def change(self, decide: Callable[[State], Change], use: Callable[[State], _Seen]) -> _Seen:
        """Decide on the current state what to write, and write it, or nothing.

        Args:
            decide: gets the state; its records are written in one transaction. It is called again if another process
                wrote in between. What it raises leaves this method, and nothing is written.
            use: see `look`; gets the state after the change.

        Raises:
            NotStoppedError: live workers of Kafka Connect own these topics.
            RetriableError: other processes kept writing.
            UnavailableError, AccessError: Kafka.
        """
        with self._lock:
            self.refuse_live_workers()
            tries = Retry(Backoff(0.01, longest_s=0.25, jitter=Jitter.WHOLE), retries=MOST_ATTEMPTS - 1)
            while True:
                writer = TransactionalWriter(self._settings.producer, f"connect-cluster-{self._settings.group_id}")
                try:
                    writer.fence()
                    outgoing = self._outgoing(decide(self._read()))
                    if outgoing:
                        writer.commit(outgoing)
                    return use(self._read())
                except FencedError as error:
                    if not tries.pause():
                        raise self._conflict() from error
                finally:
                    writer.close()

    def _conflict(self) -> RetriableError:
        return RetriableError(
            f"Other processes have written to {self._settings.config_topic.name} during each of {MOST_ATTEMPTS}"
            " attempts. Nothing was changed.",
            code="control.conflict",
            suggestion="Try again. If it goes on, look for a second installation with the same group.id.",
        )

    def refuse_live_workers(self) -> None:
        """Kafka Connect's workers keep their view of these topics, and would not follow another writer's.

        Raises:
            NotStoppedError: there are some; names them.
        """
        workers = live_workers(self.admin, self._settings.group_id)
        if workers:
            raise NotStoppedError(
                f"{len(workers)} live Kafka Connect worker(s) of group {self._settings.group_id} own the topic"
                f" {self._settings.config_topic.name}: {names(workers)}. Nothing was changed.",
                suggestion="Use their REST API, or stop them first.",
            )

    def _read(self) -> State:
        places = self._places()
        ends = latest_offsets(self.admin, places, READ_UNCOMMITTED)
        if any(ends[place] < self._positions.get(place, 0) for place in places):
            # A log that became shorter was recreated, or lost records: what was read of it means nothing.
            self._state, self._positions = State(), {}
        if not self._positions:
            self._positions = earliest_offsets(self.admin, places)
        for topic in dict.fromkeys(place.topic for place in places):
            of_topic = {place: end for place, end in ends.items() if place.topic == topic}
            compacted_topics.read_to(self._settings.reader, self._positions, of_topic, self._take)
        self._positions = {place: max(ends[place], self._positions[place]) for place in places}
        return self._state

    def _outgoing(self, change: Change) -> list[tuple[str, int, bytes | None, bytes | None]]:
        config, status = self._settings.config_topic.name, self._settings.status_topic.name
        return [
            *((config, 0, key, value) for key, value in change.config),
            *((status, partition_for(key, self._status_partitions), key, value) for key, value in change.status),
        ]

    def _take(self, message: Any) -> None:
        key, value = message.key(), message.value()
        if message.topic() == self._settings.config_topic.name:
            self._state.config.take(key, value, message.offset())
        else:
            self._state.status.take(key, value)

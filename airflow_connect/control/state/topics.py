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
from airflow_connect.control.state.shared_reads import SharedReads
from airflow_connect.control.state.status_fold import StatusState
from airflow_connect.counting import counted, names
from airflow_connect.errors import (
    AccessError,
    ConfigError,
    FencedError,
    NotStoppedError,
    RetriableError,
    UnavailableError,
)
from airflow_connect.kafka.admin.new_topics import partition_count
from airflow_connect.kafka.admin.watermarks import READ_COMMITTED, READ_UNCOMMITTED, earliest_offsets, latest_offsets
from airflow_connect.kafka.admin.worker_group import live_workers
from airflow_connect.kafka.clients.short_lived import API_TIMEOUT_S, Admin, admin_client
from airflow_connect.kafka.state import compacted_topics
from airflow_connect.kafka.state.murmur2 import partition_for
from airflow_connect.kafka.writing.transactions import TransactionalWriter
from airflow_connect.retrying import AtDeadline, Backoff, Jitter, Retry

if TYPE_CHECKING:
    from airflow_connect.control.settings import ControlSettings
    from airflow_connect.kafka.state.compacted_topics import CompactedTopic

MOST_ATTEMPTS = 20
READ_WITHIN_S = 15.0
"""How long a read waits for Kafka; a try takes 10 s."""
CHANGE_WITHIN_S = 60.0
"""How long a change waits for another one."""
COMMITTED_WITHIN_S = 2.0
"""How long a read waits for the end of a transaction that is open."""
_Seen = TypeVar("_Seen")
Ends = dict[TopicPartition, int]


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
        self._is_there = False
        self._state = State()
        self._positions: dict[TopicPartition, int] = {}
        self._is_writing = False
        self._open: Ends = {}
        self._lock = threading.Lock()
        self._reads = SharedReads(self._read)
        self._changing = threading.Lock()

    def open(self) -> None:
        """Connect, and find or create both topics.

        Raises:
            ConfigError: a topic has another policy than `compact`, or the config topic has several partitions.
            UnavailableError, AccessError: Kafka.
        """
        with self._lock:
            self._admin = admin_client(self._settings.admin)
            config = self._settings.config_topic
            _refuse_several_partitions(config, compacted_topics.ensure(self._admin, config))
            self._status_partitions = compacted_topics.ensure(self._admin, self._settings.status_topic)
            self._await_new_topics()
            self._is_there = True

    def find(self) -> bool:
        """As `open`, but create nothing; False: a topic is missing, so no connector was ever registered.

        Without the topics, `look` shows an empty state until they are there, and the first `change` creates them.

        Raises:
            UnavailableError, AccessError: Kafka.
        """
        with self._lock:
            self._admin = admin_client(self._settings.admin)
            return self._find(self._admin)

    def check(self) -> None:
        """Refuse what `open` would refuse; creates and changes nothing.

        Raises:
            ConfigError, UnavailableError, AccessError: as of `open`.
        """
        config = self._settings.config_topic
        _refuse_several_partitions(config, compacted_topics.check(self.admin, config))
        compacted_topics.check(self.admin, self._settings.status_topic)

    def _find(self, admin: Admin) -> bool:
        if not self._is_there and partition_count(admin, self._settings.config_topic.name) is not None:
            self._status_partitions = partition_count(admin, self._settings.status_topic.name) or 0
            self._is_there = self._status_partitions > 0
        return self._is_there

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

        During an outage, all threads that wait fail together, after about `READ_WITHIN_S`.

        Args:
            use: gets the state, and must not keep or change it: all threads share it.

        Raises:
            UnavailableError, AccessError: Kafka.
        """
        self._reads.read()
        with self._lock:
            return use(self._state)

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
        self._reads.read()  # Without Kafka, changes fail here together instead of one after the other.
        if not self._changing.acquire(timeout=CHANGE_WITHIN_S):
            raise UnavailableError(
                f"Another change has waited for Kafka for more than {CHANGE_WITHIN_S:.0f} s. Nothing was changed.",
                suggestion="Try again.",
            )
        try:
            self.refuse_live_workers()
            if not self._is_there:
                self.open()
            tries = Retry(Backoff(0.01, longest_s=0.25, jitter=Jitter.WHOLE), retries=MOST_ATTEMPTS - 1)
            while True:
                writer = TransactionalWriter(self._settings.producer, transactional_id(self._settings))
                try:
                    writer.fence()
                    self._is_writing = True
                    outgoing = self._outgoing(self.look(decide))
                    if outgoing:
                        writer.commit(outgoing)
                    return self.look(use)
                except FencedError as error:
                    if not tries.pause():
                        raise self._conflict() from error
                finally:
                    writer.close()
        finally:
            self._is_writing = False
            self._changing.release()

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
                f"{counted(len(workers), 'live Kafka Connect worker')} of group {self._settings.group_id} "
                f"{'owns' if len(workers) == 1 else 'own'} the topic"
                f" {self._settings.config_topic.name}: {names(workers)}. Nothing was changed.",
                suggestion="Use their REST API, or stop them first.",
            )

    def _read(self) -> None:
        """Read both topics to their ends. Kafka is asked without the lock: what is known can be used meanwhile."""
        if not self._find(self.admin):
            return
        places = self._places()
        ends = latest_offsets(self.admin, places, READ_UNCOMMITTED, patience_s=READ_WITHIN_S)
        # A log that became shorter was recreated, or lost records: what was read of it means nothing.
        is_anew = any(ends[place] < self._positions.get(place, 0) for place in places)
        starts = {} if is_anew else self._positions
        if not starts:
            starts = earliest_offsets(self.admin, places)
        if not self._is_writing:
            ends = self._readable(ends, starts)
        messages: list[Any] = []
        for topic in dict.fromkeys(place.topic for place in places):
            of_topic = {place: end for place, end in ends.items() if place.topic == topic}
            compacted_topics.read_to(self._settings.reader, starts, of_topic, messages.append)
        with self._lock:
            if is_anew:
                self._state = State()
            for message in messages:
                self._take(message)
            self._positions = {place: max(ends[place], starts[place]) for place in places}

    def _readable(self, ends: Ends, starts: Ends) -> Ends:
        """`ends`, or less if a process died inside a change: its transaction stays open until another change ends it.

        What follows the beginning of an open transaction belongs to it, because all writers have one transactional id.
        It may as well be one that is being committed; then its end comes within milliseconds.
        """
        if all(end <= starts.get(place, 0) for place, end in ends.items()):
            return ends
        tries = Retry(Backoff(0.005, longest_s=0.1), within_s=COMMITTED_WITHIN_S, at_deadline=AtDeadline.STOP)
        while True:
            stable = latest_offsets(self.admin, list(ends), READ_COMMITTED, patience_s=READ_WITHIN_S)
            found = {place: min(end, stable[place]) for place, end in ends.items()}
            if found == ends:
                self._open = {}
                return ends
            if found == self._open or not tries.pause():
                self._open = found
                return found

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


def transactional_id(settings: ControlSettings) -> str:
    """Of every change. Source: DistributedConfig.transactionalProducerId, the leader of Kafka Connect's workers."""
    return f"connect-cluster-{settings.group_id}"


def _refuse_several_partitions(config: CompactedTopic, found: int | None) -> None:
    if found not in (None, 1):
        raise ConfigError(
            f"The topic {config.name} has {found} partitions; the config topic needs exactly one.",
            suggestion="Name another topic, or recreate it with one partition if nothing uses it.",
            config_path=config.config_path,
        )

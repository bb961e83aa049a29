"""Follows compacted topics to their ends, and folds the runs topic into one history for each connector."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.control.state import records
from airflow_connect.control.state.config_fold import ConfigState
from airflow_connect.control.state.status_fold import StatusState
from airflow_connect.documents.run_progress import RunProgress
from airflow_connect.errors import ConnectError, StateError
from airflow_connect.exactly_once.kafka_journal import END, PROGRESS, RUN, STATE
from airflow_connect.exactly_once.state import COPYING, ConnectorState
from airflow_connect.kafka.admin.many_offsets import LATEST, offset_of_each
from airflow_connect.kafka.admin.topics import TopicInfo
from airflow_connect.kafka.clients.settings import READ_COMMITTED
from airflow_connect.kafka.clients.short_lived import Admin
from airflow_connect.kafka.state import compacted_topics
from airflow_connect.kafka.state.state_documents import decode_document, parse_key
from airflow_connect.ui.overview.model import Change, Run, run_of

if TYPE_CHECKING:
    from confluent_kafka import Message

Take = Callable[["Message[Any, Any]"], None]


class TopicTail:
    """A compacted topic, read to its last stable offset repeatedly; it never waits for an open transaction."""

    def __init__(self, name: str, settings: Mapping[str, Any], begin: Callable[[], Take]) -> None:
        """Reads nothing.

        Args:
            name: of the topic.
            settings: librdkafka settings of a consumer.
            begin: forgets everything, and returns what takes each record from then on.
        """
        self.name = name
        self._settings = settings
        self._begin = begin
        self._take = begin()
        self._topic_id = ""
        self._positions: dict[TopicPartition, int] = {}

    def refresh(self, admin: Admin, info: TopicInfo | None) -> None:
        """Read what is new. `info`: the topic as it is now, None: there is none.

        Raises:
            UnavailableError, AccessError: Kafka.
        """
        topic_id = info.topic_id if info else ""
        if topic_id != self._topic_id:  # It is new, or was deleted and created again.
            self._restart(topic_id)
        if info is None:
            return
        places = [TopicPartition(self.name, number) for number in range(info.partitions)]
        ends: dict[TopicPartition, int] = {}
        for place, end in offset_of_each(admin, dict.fromkeys(places, LATEST), READ_COMMITTED).items():
            if isinstance(end, ConnectError):
                raise end
            ends[place] = end
        if any(end < self._positions.get(place, 0) for place, end in ends.items()):
            self._restart(topic_id)  # A log that became shorter has lost records.
        starts = {place: self._positions.get(place, 0) for place in places}
        compacted_topics.read_to(self._settings, starts, ends, self._take)
        self._positions.update(ends)

    def _restart(self, topic_id: str) -> None:
        self._take, self._topic_id = self._begin(), topic_id
        self._positions.clear()


@dataclass(slots=True)
class History:
    """What the runs topic says of one connector.

    Attributes:
        runs: by run id.
        pieces: records of the three other documents by key: they may have several pieces.
        damage: what could not be read, or "".
    """

    name: str
    runs: dict[str, Run] = field(default_factory=dict)
    pieces: dict[str, bytes] = field(default_factory=dict)
    damage: str = ""
    _state: ConnectorState | None = None
    _end: Run | None = None
    _progress: RunProgress | None = None
    _is_decoded: bool = False

    def take(self, parts: list[Any], key: str, value: bytes | None) -> None:
        """Apply one record with this key."""
        if parts[0] == RUN and len(parts) == 4:
            self._take_run(str(parts[2]), key, value)
        elif parts[0] in (STATE, END, PROGRESS):
            self._is_decoded = False
            if value is None:
                self.pieces.pop(key, None)
            else:
                self.pieces[key] = value

    def _take_run(self, run_id: str, key: str, value: bytes | None) -> None:
        if value is None:
            self.runs.pop(run_id, None)
            return
        try:
            document = decode_document(RUN, self.name, {key: value}, run_id)
            if document is not None:
                self.runs[run_id] = run_of(document)
        except (StateError, KeyError, TypeError, ValueError) as error:
            self.damage = f"The entry of run {run_id} cannot be read: {error}"

    @property
    def state(self) -> ConnectorState | None:
        """What the last run has left; None before the first."""
        self._decode()
        return self._state

    @property
    def copying(self) -> str:
        """The run that has begun to copy and has not ended, or ""; one that was killed looks like it, too."""
        state = self.state
        if state is None or state.phase != COPYING or (self._end is not None and self._end.run_id == state.run_id):
            return ""
        return state.run_id

    @property
    def progress(self) -> RunProgress | None:
        """What that run has told last. Older runs, even fenced ones, may have told something: it is ignored."""
        self._decode()
        told = self._progress
        return told if told is not None and told.run_id == self.copying else None

    def newest_first(self) -> tuple[Run, ...]:
        """Runs with an entry, and the end of the last run that has none."""
        self._decode()
        every = dict(self.runs)
        if self._end is not None:
            every.setdefault(self._end.run_id, self._end)
        return tuple(sorted(every.values(), key=lambda run: (run.started_ms, run.run_id), reverse=True))

    def _decode(self) -> None:
        if self._is_decoded:
            return
        self._is_decoded, self._state, self._end = True, None, None
        self._progress = None
        try:
            found = decode_document(STATE, self.name, self.pieces)
            self._state = ConnectorState.from_json(found) if found else None
            end = decode_document(END, self.name, self.pieces)
            self._end = run_of(end) if end else None
            told = decode_document(PROGRESS, self.name, self.pieces)
            self._progress = RunProgress.from_json(told) if told else None
        except (StateError, KeyError, TypeError, ValueError) as error:
            self.damage = f"The state of {self.name} in the runs topic cannot be read: {error}"


class Histories:
    """The runs topic as histories."""

    def __init__(self) -> None:
        self.of: dict[str, History] = {}

    def begin(self) -> Take:
        """Forget everything."""
        self.of.clear()
        return self._take

    def _take(self, message: Message[Any, Any]) -> None:
        key = (message.key() or b"").decode("utf-8", "replace")
        parts = parse_key(key)
        if len(parts) > 2:
            name = str(parts[1])
            self.of.setdefault(name, History(name)).take(parts, key, message.value())


class Registry:
    """The config topic and the status topic."""

    def __init__(self) -> None:
        self.config = ConfigState()
        self.status = StatusState()
        self.changes: dict[str, Change] = {}

    def begin_config(self) -> Take:
        """Forget connectors."""
        self.config, self.changes = ConfigState(), {}
        return self._take_config

    def begin_status(self) -> Take:
        """Forget states."""
        self.status = StatusState()
        return lambda message: self.status.take(message.key(), message.value())

    def _take_config(self, message: Message[Any, Any]) -> None:
        key = message.key() or b""
        name = key.decode("utf-8", "replace").removeprefix(records.CONNECTOR)
        before = self.config.connectors.get(name) if key.startswith(records.CONNECTOR.encode()) else None
        self.config.take(message.key(), message.value(), int(message.offset() or 0))
        if before is None:
            return
        now = self.config.connectors.get(name)
        if now is None:
            self.changes.pop(name, None)
        elif dict(now.config) != dict(before.config):
            self.changes[name] = Change(dict(before.config), int(message.timestamp()[1]))

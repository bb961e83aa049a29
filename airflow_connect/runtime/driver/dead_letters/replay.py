"""Writing dead letters back to the topics that they came from, exactly once.

Replayed records and the position of the replay are written in the same transactions. A replay that dies has both
replayed a letter and stored this fact, or neither, so a second replay repeats nothing. The position belongs to the
group `connect-<name>-dlq-replay`, which is independent of the connector's own group, and has a copy in the runs topic
(positions.py), which does not expire.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.record import TIMESTAMP_LOG_APPEND_TIME
from airflow_connect.counting import agreeing, plural
from airflow_connect.errors import ConfigError, OffsetError
from airflow_connect.exactly_once.journal import TopicRecord
from airflow_connect.kafka.admin import consumer_group, topics
from airflow_connect.kafka.clients import settings as client_config
from airflow_connect.kafka.clients.short_lived import Admin, admin_client
from airflow_connect.kafka.reading import dead_letters
from airflow_connect.kafka.reading.dead_letters import TIMESTAMP, DeadLetter, LetterFilter
from airflow_connect.kafka.state.replay_positions import ReplayPosition, ReplayProgress
from airflow_connect.kafka.writing.transactions import TransactionalWriter
from airflow_connect.runtime.driver.dead_letters.positions import RecordedPositions
from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration

STEP_LETTERS = 5_000
STEP_BYTES = 32_000_000
"""A transaction ends when it has this many letters or bytes, because it must be written within a minute."""
CONTEXT_KEY = "errors.deadletterqueue.context.headers.enable"


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """What to replay.

    Attributes:
        chosen: which letters; those that it does not accept stay available for later replays.
        to: topic for all of them; "": the topic that each letter came from.
        dry_run: only report what would be done.
        from_beginning: also those that were replayed before.
    """

    chosen: LetterFilter = field(default_factory=LetterFilter)
    to: str = ""
    dry_run: bool = False
    from_beginning: bool = False


@dataclass(slots=True)
class Replayed:
    """What a replay did, or would do.

    Attributes:
        queue: the dead letter queue.
        group: its offsets record what was replayed.
        topics: target topic to number of letters.
        reasons: (stage, class of the exception) to number of letters.
        repeated: letters about a record that already has a letter in the same replay; they are not written.
        others: letters of other connectors in the same queue; they stay.
        passed_over: letters that the filters do not accept; they stay.
        moved: by target topic, letters whose partition it does not have; they get one by their key.
        replaces: by target topic, letters that are written after newer records, which they may replace.
        deleted: by partition of the queue, offsets that Kafka has deleted before they were replayed.
        about_positions: sentences about where the replay began.
    """

    queue: str
    group: str
    topics: Counter[str] = field(default_factory=Counter)
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)
    repeated: int = 0
    others: int = 0
    passed_over: int = 0
    moved: Counter[str] = field(default_factory=Counter)
    replaces: Counter[str] = field(default_factory=Counter)
    deleted: dict[TopicPartition, int] = field(default_factory=dict)
    about_positions: tuple[str, ...] = ()

    @property
    def notes(self) -> list[str]:
        """Sentences about letters that are not where they were, or are gone."""
        moved = [
            f"{plural(count, 'letter', 'were')} written to other partitions of {topic}, because it no longer has"
            " theirs: not in order any more with the records before and after."
            for topic, count in self.moved.items()
        ]
        deleted = [
            f"{tp} has lost {plural(count, 'offset')} that {agreeing(count, 'were')} not replayed: Kafka has"
            " deleted them."
            for tp, count in self.deleted.items()
        ]
        replaces = [
            f"{plural(count, 'letter', 'come')} after the newer records of {topic}, and the connector keeps the last"
            " record of a key: if a newer record of the key was written meanwhile, the letter replaces it, or brings"
            " back what was deleted. Compare them with what the target has before the next run, or write the newest"
            " record of such keys again."
            for topic, count in self.replaces.items()
        ]
        return [*self.about_positions, *moved, *replaces, *deleted]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON form."""
        return {
            "queue": self.queue,
            "group": self.group,
            "replayed": self.topics.total(),
            "topics": dict(self.topics),
            "reasons": [{"stage": s, "error": e, "letters": n} for (s, e), n in self.reasons.most_common()],
            "repeated": self.repeated,
            "others": self.others,
            "passed_over": self.passed_over,
            "notes": self.notes,
        }


def replay(configuration: SinkConfiguration, request: ReplayRequest) -> Replayed:
    """Replay the dead letters of a connector that were not replayed before.

    Raises:
        ConfigError: there is no queue, letters have no origin, or they would arrive twice.
        FencedError: another replay of the same connector has taken over.
        UnavailableError, AccessError: Kafka. What was replayed before is recorded.
    """
    _refuse_same_topic(configuration, request)
    admin = admin_client(configuration.admin.settings)
    if request.to:
        topics.resolve_topics(admin, [request.to], None)
    if request.dry_run:
        return _Replay(configuration, request, admin, None).run()
    transactional_id = f"{configuration.resolved.transactional_id}-dlq-replay"
    writer = TransactionalWriter(configuration.producer.settings, transactional_id)
    try:
        consumer_group.ensure_no_live_members(admin, group_of(configuration))
        writer.fence()  # Before the position is read, so that an older replay can no longer move it.
        return _Replay(configuration, request, admin, writer).run()
    finally:
        writer.close()


def queue_of(configuration: SinkConfiguration) -> str:
    """The connector's dead letter queue.

    Raises:
        ConfigError: it has none.
    """
    queue = configuration.resolved.connector.errors.dead_letter_topic
    if not queue:
        raise ConfigError(
            f"Connector {configuration.name} has no dead letter queue.",
            suggestion="Set errors.deadletterqueue.topic.name, and errors.tolerance=all.",
            config_path="errors.deadletterqueue.topic.name",
        )
    return queue


def group_of(configuration: SinkConfiguration) -> str:
    """The group whose offsets record what was replayed."""
    return f"connect-{configuration.name}-dlq-replay"


def queue_reader_settings(configuration: SinkConfiguration) -> dict[str, Any]:
    """Settings of a consumer that reads the queue."""
    return configuration.consumer.settings


def _refuse_same_topic(configuration: SinkConfiguration, request: ReplayRequest) -> None:
    if request.to and request.to == queue_of(configuration):
        raise ConfigError(
            f"{request.to} is the dead letter queue itself: its letters would be replayed without end.",
            suggestion="Name another topic in --to, or omit --to.",
        )
    isolation = configuration.consumer.isolation_level
    if not request.to and isolation != client_config.READ_COMMITTED:
        raise ConfigError(
            f"Connector {configuration.name} reads with isolation.level={isolation}: it would copy records of a "
            "failed replay, and copy them again after the next replay.",
            suggestion="Remove consumer.override.isolation.level, or replay to another topic with --to.",
            config_path="consumer.override.isolation.level",
        )


class _Replay:
    """One replay, in steps. Without a writer nothing is written."""

    def __init__(
        self, configuration: SinkConfiguration, request: ReplayRequest, admin: Admin, writer: TransactionalWriter | None
    ) -> None:
        self._configuration = configuration
        self._request = request
        self._admin = admin
        self._writer = writer
        self._queue = queue_of(configuration)
        self._done = Replayed(self._queue, group_of(configuration))
        self._recorded = RecordedPositions(configuration, admin, self._queue)
        raw = configuration.resolved.connector.raw
        self._replaces = configuration.connector_class.replaces_by_key(raw)
        self._seen: set[bytes] = set()
        self._partitions: dict[str, int] = {}

    def run(self) -> Replayed:
        """Replay everything that is due."""
        ranges = dead_letters.find_ranges(self._admin, self._queue)
        if not ranges:
            note = f"The dead letter queue {self._queue} does not exist. If it was deleted, its letters are gone."
            self._done.about_positions = (note,)
            return self._done
        known = self._recorded.find(
            self._done.group,
            ranges,
            from_beginning=self._request.from_beginning,
            create=self._writer is not None,
        )
        self._done.about_positions = known.notes
        positions = known.by_partition
        self._compare(ranges, positions)
        due = [_from(r, positions[r.topic_partition].first) for r in ranges]
        progress = {tp: ReplayProgress(position) for tp, position in positions.items()}
        letters = dead_letters.read_letters(queue_reader_settings(self._configuration), due)
        for step in _steps(self._chosen(letters, positions, progress)):
            self._write(step, progress)
        return self._done

    def _compare(self, ranges: Iterable[OffsetRange], positions: Mapping[TopicPartition, ReplayPosition]) -> None:
        """Count what the queue has lost since the last replay.

        Raises:
            OffsetError: it has lost its end, or was recreated.
        """
        for r in ranges:
            tp, position = r.topic_partition, positions[r.topic_partition]
            if position.offset > r.end:
                raise OffsetError(
                    f"{tp} was replayed up to {position.offset}, and ends at {r.end}: either it has lost its end, or it"
                    " was recreated and its letters were not replayed.",
                    code="replay.queue_shorter",
                    suggestion="Nothing was replayed. To replay every letter that is there now, use airflow-connect dlq"
                    " replay --from-beginning.",
                )
            gone = [min(end, r.start) - start for start, end in position.passed_over if start < r.start]
            lost = sum(gone) + max(r.start - position.offset, 0)
            if lost:
                self._done.deleted[tp] = lost

    def _chosen(
        self,
        letters: Iterable[DeadLetter],
        positions: Mapping[TopicPartition, ReplayPosition],
        progress: Mapping[TopicPartition, ReplayProgress],
    ) -> Iterator[tuple[DeadLetter, TopicRecord | None]]:
        """Letters to replay, each with the record to write: None for a repeated one."""
        for letter in letters:
            tp = TopicPartition(letter.record.topic, letter.record.partition)
            offset = letter.record.offset
            if positions[tp].is_replayed(offset):
                progress[tp].replayed(offset)
            elif self._belongs_to_another_connector(letter):
                self._done.others += 1  # Never replayed from here, so nothing is recorded for it.
            elif not self._request.chosen.accepts(letter):
                self._done.passed_over += 1
                progress[tp].passed_over(offset)
            else:
                outgoing = self._outgoing(letter)
                progress[tp].replayed(offset)
                yield letter, outgoing

    def _belongs_to_another_connector(self, letter: DeadLetter) -> bool:
        """Connectors may share a queue. A letter must not be replayed twice: each connector replays its own."""
        return bool(letter.connector) and letter.connector != self._configuration.name

    def _outgoing(self, letter: DeadLetter) -> TopicRecord | None:
        origin = letter.origin
        if origin is None and not self._request.to:
            raise ConfigError(
                f"The dead letter at {letter.record.where} does not tell which topic it came from.",
                code="replay.no_origin",
                suggestion=f"Name the topic with --to. With {CONTEXT_KEY}=true, letters contain their origin.",
                config_path=CONTEXT_KEY,
            )
        if origin is not None and (about := _record_of(letter)) in self._seen:
            self._done.repeated += 1
            return None
        record = TopicRecord(
            topic=self._request.to or (origin[0] if origin else ""),
            key=letter.record.key,
            value=letter.record.value,
            headers=letter.own_headers,
            timestamp=letter.timestamp,
            origin=letter.record.where,
        )
        if origin is not None:
            self._seen.add(about)
            if not self._request.to and origin[1] < self._partitions_of(origin[0]):
                record = replace(record, partition=origin[1])
            elif not self._request.to:
                self._done.moved[record.topic] += 1
        context = letter.context
        self._done.topics[record.topic] += 1
        if self._replaces:
            self._done.replaces[record.topic] += 1
        self._done.reasons[context.get("stage", ""), context.get("exception.class.name", "")] += 1
        return record

    def _partitions_of(self, topic: str) -> int:
        if topic == self._queue:
            raise ConfigError(
                f"A dead letter of {topic} claims to come from the queue itself.",
                code="replay.endless",
                suggestion="Replaying it there would never end. Name its topic with --to.",
            )
        if topic not in self._partitions:
            self._partitions.update(
                (name, info.partitions) for name, info in topics.resolve_topics(self._admin, [topic], None).items()
            )
        return self._partitions[topic]

    def _write(
        self, step: list[tuple[DeadLetter, TopicRecord | None]], progress: Mapping[TopicPartition, ReplayProgress]
    ) -> None:
        """Write one step and record it, in one transaction."""
        if self._writer is None:
            return
        touched = {TopicPartition(letter.record.topic, letter.record.partition) for letter, _ in step}
        positions = {tp: progress[tp].position() for tp in touched}
        settings = queue_reader_settings(self._configuration)
        group = consumer_group.group_metadata(self._done.group, settings)
        try:
            self._writer.commit(
                self._recorded.records(positions),
                {tp: position.offset for tp, position in positions.items()},
                group,
                [record for _, record in step if record is not None],
                {tp: position.note(tp) for tp, position in positions.items()},
            )
        finally:
            group.close()


def _record_of(letter: DeadLetter) -> bytes:
    """A digest of the record that a letter is about: its place, and what it holds.

    The place alone is not enough: if the topic was recreated, another record may have failed there.
    """
    record = letter.record
    of_broker = record.timestamp_type == TIMESTAMP_LOG_APPEND_TIME and TIMESTAMP not in letter.context
    timestamp = None if of_broker else letter.timestamp  # The queue's own time is not that of the record.
    what = (letter.origin, record.key, record.value, timestamp, letter.own_headers)
    return hashlib.blake2b(repr(what).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _from(planned: OffsetRange, first: int) -> OffsetRange:
    """The part of a range from `first` on; the log may have lost its beginning, or have been recreated."""
    return replace(planned, start=min(max(planned.start, first), planned.end))


def _steps(
    letters: Iterable[tuple[DeadLetter, TopicRecord | None]],
) -> Iterator[list[tuple[DeadLetter, TopicRecord | None]]]:
    step: list[tuple[DeadLetter, TopicRecord | None]] = []
    size = 0
    for letter, record in letters:
        step.append((letter, record))
        size += letter.size_bytes
        if len(step) >= STEP_LETTERS or size >= STEP_BYTES:
            yield step
            step, size = [], 0
    if step:
        yield step


__all__ = ["ReplayRequest", "Replayed", "queue_of", "queue_reader_settings", "replay"]

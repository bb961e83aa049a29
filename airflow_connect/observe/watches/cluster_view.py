"""The topics and offsets of a cluster during one round: each kind is asked for once, for all watches together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TypeVar

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.counting import names
from airflow_connect.errors import AccessError, ConfigError, ConnectError, UnavailableError
from airflow_connect.kafka.admin import many_offsets
from airflow_connect.kafka.admin.many_offsets import EARLIEST, LATEST
from airflow_connect.kafka.admin.topics import TopicInfo, matching_topics
from airflow_connect.kafka.clients.settings import READ_UNCOMMITTED
from airflow_connect.kafka.clients.short_lived import Admin
from airflow_connect.observe.watches.target import Target
from airflow_connect.planning.planner import LogState

_Value = TypeVar("_Value")
_Answers = dict[TopicPartition, int | ConnectError]


class ClusterView:
    """Answers of one round. What was not loaded is not there."""

    def __init__(self, admin: Admin, isolation: str) -> None:
        """Asks for nothing yet."""
        self._admin = admin
        self._isolation = isolation
        self._topics: dict[str, TopicInfo | ConnectError] = {}
        self._matching: dict[str, list[str] | ConnectError] = {}
        self._ends: _Answers = {}
        self._beginnings: _Answers = {}
        self._highs: _Answers = {}
        self._at: dict[tuple[TopicPartition, int], int | ConnectError] = {}

    def load_topics(self, targets: Iterable[Target], others: Iterable[str] = ()) -> None:
        """Ask for the topics of all targets: one request, and another one if there are regular expressions.

        Args:
            targets: their topics are looked at.
            others: names of further topics.

        Raises:
            UnavailableError: Kafka does not answer.
        """
        wanted, expressions = set(others), set[str]()
        for target in targets:
            wanted.update(target.topics)
            expressions.update(filter(None, [target.topics_regex]))
        existing = many_offsets.all_topics(self._admin) if expressions else []
        for expression in expressions:
            try:
                self._matching[expression] = matching_topics(existing, expression)
            except ConnectError as error:
                self._matching[expression] = error
        for found in self._matching.values():
            wanted.update([] if isinstance(found, ConnectError) else found)
        self._topics = many_offsets.describe_each(self._admin, wanted)

    def load_ends(self, tps: Iterable[TopicPartition]) -> None:
        """Ask for exclusive ends of the readable logs."""
        self._ends |= self._list(dict.fromkeys(tps, LATEST))

    def load_beginnings(self, tps: Iterable[TopicPartition]) -> None:
        """Ask for the first offsets."""
        self._beginnings |= self._list(dict.fromkeys(tps, EARLIEST))

    def load_highs(self, tps: Iterable[TopicPartition]) -> None:
        """Ask for high watermarks, which lie behind the ends while a transaction is open."""
        self._highs |= many_offsets.offset_of_each(self._admin, dict.fromkeys(tps, LATEST), READ_UNCOMMITTED)

    def load_times(self, wanted: Iterable[tuple[TopicPartition, int]]) -> None:
        """Ask for the first offsets at or after a time. A request has one time per partition."""
        requests: dict[int, dict[TopicPartition, int]] = defaultdict(dict)
        seen: dict[TopicPartition, int] = defaultdict(int)
        for tp, time_ms in dict.fromkeys(wanted):
            requests[seen[tp]][tp] = time_ms
            seen[tp] += 1
        for request in requests.values():
            found = self._list(request)
            self._at.update({(tp, request[tp]): answer for tp, answer in found.items()})

    def _list(self, wanted: Mapping[TopicPartition, int]) -> _Answers:
        return many_offsets.offset_of_each(self._admin, wanted, self._isolation)

    def topics_of(self, target: Target) -> dict[str, TopicInfo]:
        """The topics of a target, by name.

        Raises:
            ConfigError: a topic that the target names does not exist.
            AccessError, UnavailableError: a topic cannot be described.
        """
        by_expression = bool(target.topics_regex)
        wanted = _value(self._matching[target.topics_regex]) if by_expression else list(target.topics)
        missing = [topic for topic in wanted if _is_missing(self._topics[topic])]
        if missing and not by_expression:
            raise ConfigError(
                f"Kafka has no topic {names(missing)} that this principal may see.",
                code="config.topic_missing",
                suggestion="Create the topic, or correct `topics`.",
                config_path="topics",
            )
        return {topic: _value(self._topics[topic]) for topic in sorted(wanted) if topic not in missing}

    def topic(self, name: str) -> TopicInfo | None:
        """One topic; None: it does not exist.

        Raises:
            AccessError, UnavailableError: it cannot be described.
        """
        answer = self._topics[name]
        return None if _is_missing(answer) else _value(answer)

    def partitions_of(self, target: Target) -> list[TopicPartition]:
        """All partitions of the topics of a target.

        Raises:
            ConnectError: as `topics_of`.
        """
        found = self.topics_of(target)
        return [TopicPartition(name, number) for name, info in found.items() for number in range(info.partitions)]

    def partitions_of_all(self, targets: Iterable[Target]) -> set[TopicPartition]:
        """Partitions of those targets whose topics can be described."""
        found: set[TopicPartition] = set()
        for target in targets:
            try:
                found.update(self.partitions_of(target))
            except ConnectError:
                continue  # it is the answer to the watch of this target
        return found

    def log_state(self, target: Target, committed: Mapping[TopicPartition, int]) -> LogState:
        """What a plan needs to know of the topics of a target, and of what its group has committed.

        Asks for high watermarks where the group is beyond the readable end: a transaction was open when the records
        before it were committed, as Kafka Connect does, which reads uncommitted by default.

        Raises:
            ConnectError: as `topics_of`, or Kafka's answer about a partition.
        """
        tps = self.partitions_of(target)
        ends = {tp: self.end(tp) for tp in tps}
        beyond = [tp for tp in tps if committed.get(tp, 0) > ends[tp]]
        if beyond:
            self.load_highs(beyond)
        return LogState(
            topic_ids={name: info.topic_id for name, info in self.topics_of(target).items()},
            earliest={tp: self.beginning(tp) for tp in tps},
            end=ends,
            committed={tp: offset for tp, offset in committed.items() if tp in ends},
            high={tp: self.high(tp) for tp in beyond},
        )

    def end(self, tp: TopicPartition) -> int:
        """Exclusive end of the readable log.

        Raises:
            ConnectError: Kafka's answer.
        """
        return _of(self._ends, tp)

    def beginning(self, tp: TopicPartition) -> int:
        """First offset of the log.

        Raises:
            ConnectError: Kafka's answer.
        """
        return _of(self._beginnings, tp)

    def high(self, tp: TopicPartition) -> int:
        """High watermark.

        Raises:
            ConnectError: Kafka's answer.
        """
        return _of(self._highs, tp)

    def at_time(self, tp: TopicPartition, time_ms: int) -> int | None:
        """First offset of a readable record at or after a time; None: there is none.

        Raises:
            ConnectError: Kafka's answer.
        """
        offset = _of(self._at, (tp, time_ms))
        return None if offset == many_offsets.NO_SUCH_RECORD else offset


_Key = TypeVar("_Key")


def _of(answers: Mapping[_Key, int | ConnectError], key: _Key) -> int:
    if key not in answers:
        raise UnavailableError(f"Kafka gave no answer about {key} in this round.")
    return _value(answers[key])


def _value(answer: _Value | ConnectError) -> _Value:
    if isinstance(answer, ConnectError):
        raise answer
    return answer


def _is_missing(answer: TopicInfo | ConnectError) -> bool:
    return isinstance(answer, AccessError) and answer.code == "kafka.no_topic"

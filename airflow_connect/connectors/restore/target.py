"""The topics that records are restored to: checked before anything is written, created if they are missing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from airflow_connect.api.cluster_facts import TopicFacts
from airflow_connect.api.offsets import TopicPartition, is_other_topic
from airflow_connect.connectors.restore.alone import first_visible
from airflow_connect.connectors.restore.keys import ANY, RESUME, RETENTION, TIMESTAMP, RestoreKeys
from airflow_connect.connectors.restore.work import ANY_TIME
from airflow_connect.counting import names, plural
from airflow_connect.errors import ConfigError, OffsetError
from airflow_connect.kafka.admin import new_topics, watermarks
from airflow_connect.kafka.admin.permissions import missing_on_topics, not_creatable
from airflow_connect.kafka.admin.topic_settings import settings_of
from airflow_connect.kafka.admin.topics import INTERNAL_TOPICS, TopicInfo, all_names, resolve_topics
from airflow_connect.kafka.clients.short_lived import Admin
from airflow_connect.kafka.reading.first_timestamps import FirstRecord

TIMESTAMP_TYPE, BEFORE_MAX, RETENTION_MS = "message.timestamp.type", "message.timestamp.before.max.ms", "retention.ms"
AFTER_MAX = "message.timestamp.after.max.ms"
LARGEST = "max.message.bytes"
KEEPS_ALL = {RETENTION_MS: "-1", "retention.bytes": "-1", "cleanup.policy": "delete"}
"""Settings of a topic of which nothing is deleted."""
OF_NEW_TOPIC = {TIMESTAMP_TYPE: "CreateTime", **KEEPS_ALL}
"""Settings of a topic that is created: none of them deletes or changes a restored record."""
_ANY_TIME = {BEFORE_MAX: str((1 << 63) - 1), AFTER_MAX: str((1 << 63) - 1)}
"""Instead of the limits of an original: its records were near to their time when it took them, and are not now."""
_DEFAULTS = {
    TIMESTAMP_TYPE: "CreateTime",
    RETENTION_MS: "604800000",
    "retention.bytes": "-1",
    "cleanup.policy": "delete",
}
"""Kafka's, for settings that a document does not have."""
SHOWN = 20
READ_SETTINGS, CHANGE_SETTINGS, WRITE = "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "WRITE"


class Claim(Protocol):
    """What is committed for a partition of a backup, about the topic that its records go to."""

    @property
    def target(self) -> str:
        """The topic."""

    @property
    def topic_id(self) -> str:
        """Its id."""

    @property
    def passed(self) -> int:
        """Files of which something was restored; 0: the topic was only chosen."""


class Wanted(NamedTuple):
    """What is to be restored to a topic.

    Attributes:
        topic: of the backup.
        partitions: as far as the backup's files show it.
        chains: what is committed, by partition; None: nothing.
        oldest_ms: timestamp of the oldest record that was looked at; None: unknown.
        original: the topic that was backed up; None: no document of the backup has it.
    """

    topic: str
    partitions: int
    chains: Mapping[int, Claim | None]
    oldest_ms: int | None
    original: TopicFacts | None = None


class Limits(NamedTuple):
    """What a topic takes and keeps; see `Chain`."""

    deletes_before_ms: int
    first_ms: int
    last_ms: int
    needs_keys: bool


class Prepared(NamedTuple):
    """The topics that records go to, after they were checked.

    Attributes:
        targets: by topic its id, and what it takes and keeps.
        to_lift: by topic the settings that would delete records meanwhile.
        later: by topic what it gets when all is restored.
    """

    targets: Mapping[str, tuple[str, Limits]]
    to_lift: Mapping[str, Mapping[str, str]]
    later: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Targets:
    """The topics of the cluster that records go to.

    Attributes:
        admin: of that cluster.
        must_be: `target.must_be`.
        accepted: `accept.loss`.
        replication: `target.replication.factor`.
        now_ms: milliseconds since the epoch.
        lifts: `target.retention.lifted`.
    """

    admin: Admin
    must_be: str
    accepted: tuple[str, ...]
    replication: int
    now_ms: int
    lifts: bool = False

    def names(self) -> set[str]:
        """Every topic of the cluster."""
        return set(all_names(self.admin))

    def existing(self, wanted: Mapping[str, Wanted]) -> dict[str, TopicInfo]:
        """Those of the topics that exist."""
        there = self.names()
        return resolve_topics(self.admin, [topic for topic in wanted if topic in there], None)

    def findings(self, wanted: Mapping[str, Wanted], there: Mapping[str, TopicInfo]) -> list[str]:
        """Everything that keeps records from being restored to the topics; looks, and changes nothing.

        Args:
            wanted: by topic.
            there: those that exist.
        """
        lacking = missing_on_topics(self.admin, there, (READ_SETTINGS, WRITE, CHANGE_SETTINGS))
        described = [topic for topic in there if READ_SETTINGS not in lacking[topic]]
        settings, lifted = self._settings(described), self.to_lift(described)
        found = []
        for target, one in wanted.items():
            needless = () if target in lifted else (CHANGE_SETTINGS,)
            if missing := [operation for operation in lacking.get(target, ()) if operation not in needless]:
                found.append(f"This client is not permitted {names(missing)} on topic {target}.")
            found += self._findings(target, one, there.get(target), settings.get(target, {}))
        return found

    def not_creatable(self, missing: Collection[str]) -> list[str]:
        """Sentences about topics that this client may not create; creates none."""
        refused = not_creatable(self.admin, missing)
        known = self.names() if refused else set()
        return [
            f"{topic} exists, and this client is not permitted DESCRIBE on it."
            if exists
            else f"{topic} does not exist, and this client is not permitted CREATE on it."
            for topic, exists in refused.items()
            if topic not in known
        ]

    def described(self, there: Mapping[str, TopicInfo]) -> dict[str, TopicInfo]:
        """Those topics whose settings this client may read."""
        lacking = missing_on_topics(self.admin, there, (READ_SETTINGS,))
        return {topic: info for topic, info in there.items() if not lacking[topic]}

    def lost(self, finished: Mapping[TopicPartition, Claim], target_of: Callable[[str], str]) -> list[str]:
        """What is wrong with topics to which everything was restored: records in them may be gone.

        Args:
            finished: what is committed, by partition of the backup.
            target_of: the topic that records of a topic go to.
        """
        begun: dict[str, dict[int, Claim]] = {}
        for tp, one in finished.items():
            if _is_claim(one):
                begun.setdefault(tp.topic, {})[tp.partition] = one
        if not begun:
            return []
        there = self.names()
        targets = {topic: target_of(topic) for topic in sorted(begun)}
        now = resolve_topics(self.admin, [target for target in targets.values() if target in there], None)
        return [
            sentence
            for topic, target in targets.items()
            for sentence in _of_claims(target, topic, begun[topic], now.get(target))
        ]

    def ensure_kept(self, written: Mapping[TopicPartition, Claim], target_of: Callable[[str], str]) -> None:
        """Check after a run whether the topics are still those that it began with.

        Raises:
            OffsetError: one is not, so records that the run has written are gone.
        """
        if lost := self.lost(written, target_of):
            raise OffsetError(
                f"Topics were deleted while records were restored to them: {' '.join(lost)}",
                code="restore.other_topic",
                suggestion="Delete the offsets of this connector, and restore them again.",
            )

    def notes(self, wanted: Mapping[str, Wanted], there: Mapping[str, TopicInfo]) -> list[str]:
        """Sentences about topics that exist and may refuse records of the backup."""
        found = []
        for target, settings in self._settings(there).items():
            original = wanted[target].original
            if settings.get(TIMESTAMP_TYPE) == "LogAppendTime":
                found.append(f"{target} has {TIMESTAMP_TYPE}=LogAppendTime: its records get the time of this run.")
            allowed = int(settings.get(LARGEST) or 0)
            largest = 0 if original is None else int(original.settings.get(LARGEST) or 0)
            if allowed and largest > allowed:
                found.append(
                    f"{target} has {LARGEST}={allowed}, and {wanted[target].topic} had {largest} when it was backed up:"
                    " the run fails if it comes to a record that is too large."
                )
        return found

    def create(self, missing: Mapping[str, Wanted]) -> list[str]:
        """Create topics like their originals, except for what would delete records; returns sentences about them."""
        notes = []
        unknown: set[str] = set()
        for target, one in sorted(missing.items()):
            unknown |= self._create(target, one)
            new_topics.wait_until_visible(self.admin, target)
            notes.append(_told(target, one))
        if unknown:
            notes.insert(0, f"The cluster does not have these settings of original topics: {names(sorted(unknown))}.")
        shown, rest = notes[:SHOWN], notes[SHOWN:]
        return [*shown, *([f"{plural(len(rest), 'more topic')} were created in the same way."] if rest else [])]

    def check_created(
        self, wanted: Mapping[str, Wanted], there: Mapping[str, TopicInfo], created: Collection[str]
    ) -> None:
        """Look at topics that were missing: clients create topics, too, which have other settings, and records soon.

        Raises:
            ConfigError: names everything that is wrong with them.
        """
        if findings := self.findings({target: wanted[target] for target in created if target in wanted}, there):
            raise refused(findings)

    def made_before(self, wanted: Mapping[str, Wanted], there: Mapping[str, TopicInfo]) -> dict[str, dict[str, str]]:
        """Topics that a run has created, and died before it could commit that: by topic the settings it gets later.

        Such a topic is empty, and has what only a restore gives to topics instead of the settings of their originals.
        """
        if self.must_be == ANY:
            return {}
        new = {target: wanted[target] for target in there if not any(map(_is_claim, wanted[target].chains.values()))}
        later = {target: settings for target, one in new.items() if (settings := settings_after(one.original))}
        now = settings_of(self.admin, later)
        return {
            target: settings
            for target, settings in later.items()
            if all(now[target].get(name) == _of_new_topic(wanted[target].original)[name] for name in settings)
        }

    def limits(self, there: Mapping[str, TopicInfo]) -> dict[str, Limits]:
        """What each topic takes and keeps now."""
        return {
            topic: Limits(
                deletes_before(found, self.now_ms),
                *times_of(found, self.now_ms),
                "compact" in found.get("cleanup.policy", ""),
            )
            for topic, found in self._settings(there).items()
        }

    def to_lift(self, there: Iterable[str]) -> dict[str, dict[str, str]]:
        """By topic the settings that would delete records meanwhile, if they are to be lifted."""
        if not self.lifts:
            return {}
        found = {topic: what_deletes(now) for topic, now in settings_of(self.admin, there).items()}
        return {topic: settings for topic, settings in found.items() if settings}

    def _create(self, target: str, wanted: Wanted) -> set[str]:
        """Create a topic; returns those settings of its original that the cluster does not have."""
        original, replicas = wanted.original, self.replication
        settings = {} if original is None else dict(original.settings)
        if replicas < 0 and original is not None:
            replicas = original.replication_factor
        if wanted.chains:
            settings |= _of_new_topic(original)
        place = RestoreKeys.replication.name
        try:
            new_topics.create(self.admin, target, wanted.partitions, replicas, settings, config_path=place)
        except ConfigError:
            # The original may be of another kind of cluster. Any topic shows which settings there are.
            topics = sorted(self.names())[:1]
            known = settings_of(self.admin, topics)[topics[0]] if topics else settings
            unknown = settings.keys() - known.keys()
            if not unknown:
                raise
            settings = {name: value for name, value in settings.items() if name in known}
            new_topics.create(self.admin, target, wanted.partitions, replicas, settings, config_path=place)
            return unknown
        return set()

    def _settings(self, there: Iterable[str]) -> dict[str, dict[str, str]]:
        """The settings of topics, as they are while records are restored."""
        lifted = KEEPS_ALL if self.lifts else {}
        return {topic: {**found, **lifted} for topic, found in settings_of(self.admin, there).items()}

    def _findings(
        self, target: str, wanted: Wanted, info: TopicInfo | None, settings: Mapping[str, str]
    ) -> Iterator[str]:
        if target in INTERNAL_TOPICS:
            yield f"{target} is a topic of Kafka itself."
        begun = {number: one for number, one in wanted.chains.items() if one is not None and _is_claim(one)}
        if self.must_be == RESUME and len(begun) < len(wanted.chains):
            new = names(TopicPartition(wanted.topic, number) for number in wanted.chains if number not in begun)
            yield f"{RestoreKeys.must_be}={RESUME}, but nothing of {new} was restored before."
        yield from _of_claims(target, wanted.topic, begun, info)
        if info is not None:
            yield from self._of_existing(target, wanted, info, begun)
            yield from self._of_settings(target, wanted, settings)

    def _of_existing(self, target: str, wanted: Wanted, info: TopicInfo, begun: Mapping[int, Claim]) -> Iterator[str]:
        if info.partitions < wanted.partitions:
            yield (
                f"{target} has {plural(info.partitions, 'partition')}, and the backup {wanted.partitions}: records keep"
                " their partitions."
            )
        if self.must_be == ANY:
            return
        restored = {number for number, one in begun.items() if one.passed}
        tps = [TopicPartition(target, number) for number in range(info.partitions) if number not in restored]
        low = watermarks.earliest_offsets(self.admin, tps)
        end = watermarks.latest_offsets(self.admin, tps, watermarks.READ_UNCOMMITTED)
        left = {tp for tp in tps if end[tp] > low[tp]}
        left -= self._only_aborted(tp for tp in left if tp.partition in begun)
        if filled := [f"{tp} [{low[tp]}, {end[tp]})" for tp in tps if tp in left]:
            yield (
                f"{target} is not empty, and this connector has not restored what it holds: {names(filled)}. A topic"
                " that is backed up and restored in place would grow without end."
            )

    def _only_aborted(self, chosen: Iterable[TopicPartition]) -> set[TopicPartition]:
        """Those of the partitions without a committed record: what a run has left that did not commit its first ones.

        What cannot be read is left to the tasks, which look again (`Alone`).
        """
        wanted = set(chosen)
        found = first_visible(self.admin.settings, wanted) if wanted else {}
        seen = {tp for tp, one in found.items() if isinstance(one, FirstRecord) and one.timestamp_ms is not None}
        return wanted - seen

    def _of_settings(self, target: str, wanted: Wanted, settings: Mapping[str, str]) -> Iterator[str]:
        if settings.get(TIMESTAMP_TYPE) == "LogAppendTime" and TIMESTAMP not in self.accepted:
            yield (
                f"{target} has {TIMESTAMP_TYPE}=LogAppendTime, so the brokers replace the timestamps of the backup: set"
                f" CreateTime there, or {RestoreKeys.accepted}={TIMESTAMP}."
            )
        oldest = wanted.oldest_ms
        if oldest is None or oldest <= 0:
            return  # Tasks leave out a timestamp that cannot be written, or replace it.
        if oldest < times_of(settings, self.now_ms)[0] and TIMESTAMP not in self.accepted:
            before = settings[BEFORE_MAX]
            yield f"{target} has {BEFORE_MAX}={before}, and the backup has the timestamp {oldest}, which it refuses."
        if oldest < deletes_before(settings, self.now_ms) and RETENTION not in self.accepted:
            yield (
                f"{target} has {RETENTION_MS}={settings[RETENTION_MS]}, and the backup has the timestamp {oldest}:"
                f" Kafka deletes such records soon after they are restored. Set {RestoreKeys.lifts}=true, or"
                f" {RestoreKeys.accepted}={RETENTION}."
            )


def _is_claim(one: Claim | None) -> bool:
    """Whether a topic was chosen, and perhaps written to."""
    return one is not None and bool(one.topic_id)


def _of_claims(target: str, topic: str, begun: Mapping[int, Claim], info: TopicInfo | None) -> Iterator[str]:
    """What is wrong with a topic that records were restored to, now that it is `info`."""
    if others := sorted({one.target for one in begun.values() if one.target != target}):
        yield f"Records of {topic} were restored to {names(others)} before, and would go to {target} now."
    elif info is None and begun:
        yield f"{target} does not exist any more, and this connector has restored records to it."
    if info is None:
        return
    if foreign := sorted(number for number, one in begun.items() if is_other_topic(one.topic_id, info.topic_id)):
        former = begun[foreign[0]].topic_id
        yield (
            f"{target} was recreated: its id is {info.topic_id}, and records were restored to {former}. Delete the"
            " offsets of this connector to restore everything again."
        )


def _told(target: str, wanted: Wanted) -> str:
    """The sentence about a topic that was created."""
    made = f"Created {target} with {plural(wanted.partitions, 'partition')}"
    if wanted.original is None:
        source = "as many as the files of the backup show, because no document of the backup has the topic"
        held, after = ", ".join(f"{name}={value}" for name, value in OF_NEW_TOPIC.items()), "what the original had"
        return f"{made}, {source}, and with {held}, so that nothing is deleted. Set {after} when all is restored."
    left_out = settings_after(wanted.original)
    changed = {name: _of_new_topic(wanted.original)[name] for name in left_out}
    later = ", ".join(f"{name}={value}" for name, value in left_out.items())
    like = f"{made} and the settings of {wanted.topic} when it was backed up"
    if not wanted.chains:
        return f"{like}. The backup has no record of it."
    if not changed:
        return f"{like}."
    held = ", ".join(f"{name}={value}" for name, value in changed.items())
    return (
        f"{like}, but {held}, so that nothing is deleted. `airflow-connect restore settings` sets {later} when all is"
        " restored."
    )


def told_of_made(made: tuple[str, Mapping[str, str]]) -> str:
    """The sentence about a topic that an earlier run has created; `made`: its name, and what it gets later."""
    target, settings = made
    held = ", ".join(f"{name}={({**_ANY_TIME, **OF_NEW_TOPIC})[name]}" for name in settings)
    later = ", ".join(f"{name}={value}" for name, value in settings.items())
    return (
        f"{target} is empty and has {held}, as a run creates it that then fails. `airflow-connect restore settings`"
        f" sets {later} when all is restored."
    )


def refused(findings: Sequence[str]) -> ConfigError:
    """The error that names everything that was found."""
    rest = f" And {plural(len(findings) - SHOWN, 'more finding')}." if len(findings) > SHOWN else ""
    return ConfigError(
        f"Nothing was restored, because of {plural(len(findings), 'finding')}: {' '.join(findings[:SHOWN])}{rest}",
        code="restore.target",
        config_path=RestoreKeys.must_be.name,
        suggestion="Change the topics, or restore to others with"
        f" {RestoreKeys.rename}; {RestoreKeys.must_be} and {RestoreKeys.accepted} allow what is meant to be.",
    )


def what_deletes(settings: Mapping[str, str]) -> dict[str, str]:
    """Those of a topic's settings that delete records."""
    return {name: settings[name] for name, value in KEEPS_ALL.items() if settings.get(name, value) != value}


def settings_after(original: TopicFacts | None) -> dict[str, str]:
    """The settings that a topic was created without, and that its original has."""
    if original is None:
        return {}
    before = {name: original.settings.get(name, _DEFAULTS.get(name, "")) for name in _of_new_topic(original)}
    return {name: value for name, value in before.items() if value != _of_new_topic(original)[name]}


def _of_new_topic(original: TopicFacts | None) -> dict[str, str]:
    """What a topic gets that is created, instead of the settings of its original."""
    limits = {} if original is None else {name: _ANY_TIME[name] for name in _ANY_TIME if name in original.settings}
    return {**OF_NEW_TOPIC, **limits}


def times_of(settings: Mapping[str, str], now_ms: int) -> tuple[int, int]:
    """The first and the last timestamp that a topic with these settings takes (KIP-937)."""
    first, last = ANY_TIME
    if settings.get(TIMESTAMP_TYPE) == "LogAppendTime":
        return first, last
    before, after = int(settings.get(BEFORE_MAX) or last), int(settings.get(AFTER_MAX) or last)
    return max(first, now_ms - before), min(last, now_ms + after)


def deletes_before(settings: Mapping[str, str], now_ms: int) -> int:
    """The timestamp before which a topic with these settings deletes records soon; 0: it deletes none by time."""
    retention = int(settings.get(RETENTION_MS) or -1)
    deletes = "delete" in settings.get("cleanup.policy", "")
    return now_ms - retention if deletes and retention >= 0 and settings.get(TIMESTAMP_TYPE) == "CreateTime" else 0

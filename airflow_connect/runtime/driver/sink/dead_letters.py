"""Dead letters of a manifest as records for the commit transaction, in a form that their queue accepts.

The commit writes them after the files are visible. A letter that Kafka refused then would keep the manifest open, and
no later run could begin. So what the queue would refuse is repaired, and what cannot be repaired is refused before the
manifest is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.counting import agreeing, names, plural
from airflow_connect.errors import ConfigError
from airflow_connect.exactly_once.journal import TopicRecord
from airflow_connect.exactly_once.manifest import Manifest
from airflow_connect.kafka.admin.dead_letter_queue import QueueLimits
from airflow_connect.kafka.reading.dead_letters import PREFIX, TIMESTAMP, start_of_context, without_context
from airflow_connect.runtime.dead_letter_codec import raw_bytes

QUEUE_KEY = "errors.deadletterqueue.topic.name"
TIMESTAMP_HEADER = f"{PREFIX}{TIMESTAMP}"
_LARGEST_CONTEXT = ("exception.stacktrace", "exception.message")
"""Context headers that are left out first: the others tell a replay where the record came from."""
_GIVE_UP = (
    f"To give these dead letters up, remove {QUEUE_KEY} for one run; its report names them, and their records are still"
    " in Kafka."
)


@dataclass(frozen=True, slots=True)
class Letters:
    """What a commit writes to the queue.

    Attributes:
        records: in the order of the manifest.
        notes: sentences about letters that were changed, moved or given up.
    """

    records: tuple[TopicRecord, ...] = ()
    notes: tuple[str, ...] = ()


def letters_of(manifest: Manifest, limits: QueueLimits | None, now_ms: int, *, is_published: bool) -> Letters:
    """The manifest's dead letters for the connector's queue, with their original bytes, timestamps and headers.

    Args:
        manifest: its letters name the queue of the configuration that it was copied with.
        limits: of the queue that the connector has now. None: it has none, so the letters are given up.
        now_ms: the clock.
        is_published: whether files of the manifest may be visible already.

    Raises:
        ConfigError: the queue cannot take a letter; names both, and the setting.
    """
    if not manifest.dead_letters:
        return Letters()
    places = [_place(letter) for letter in manifest.dead_letters]
    if limits is None:
        return Letters(notes=(_given_up(manifest.run_id, places),))
    fitted = [_fitted(letter, limits, now_ms) for letter in manifest.dead_letters]
    if unfit := [found for found in fitted if found.refused]:
        raise _refusal(unfit, limits, _so_far(manifest, is_published=is_published), is_published=is_published)
    return Letters(tuple(found.record for found in fitted), tuple(_notes(manifest, fitted, limits)))


@dataclass(frozen=True, slots=True)
class _Fitted:
    """A letter, what was changed to make it fit (`_MOVED_TIME`, `_CUT`), and why it does not fit, or ""."""

    record: TopicRecord
    changes: tuple[str, ...] = ()
    refused: str = ""


_MOVED_TIME = f"with the time of this run, and the original time in the header {TIMESTAMP_HEADER}"
_CUT = "with no or fewer context headers, because they would be too large"


def _fitted(letter: Mapping[str, Any], limits: QueueLimits, now_ms: int) -> _Fitted:
    record = TopicRecord(
        topic=limits.topic,
        key=raw_bytes(letter["key"]),
        value=raw_bytes(letter["value"]),
        headers=tuple((name, raw_bytes(value)) for name, value in letter["headers"]),
        timestamp=letter["timestamp"],
        origin=_place(letter),
    )
    changes: list[str] = []
    # Kafka's client takes 0 as the current time.
    if record.timestamp is not None and (not record.timestamp or not limits.accepts_time(record.timestamp, now_ms)):
        original = (TIMESTAMP_HEADER, str(record.timestamp).encode())
        record = replace(record, timestamp=None, headers=(*record.headers, original))
        changes.append(_MOVED_TIME)
    if not _fits(record, limits):
        record = _without_context(record, lambda candidate: _fits(candidate, limits))
        changes.append(_CUT)
    if not _fits(record, limits):
        return _Fitted(record, refused=f"it accepts {limits.largest_text}, and {record.origin} needs {_size(record)}")
    if limits.is_compacted and record.key is None:
        return _Fitted(record, refused=f"it is compacted, and {record.origin} has no key")
    return _Fitted(record, tuple(changes))


def _without_context(record: TopicRecord, fits: Callable[[TopicRecord], bool]) -> TopicRecord:
    """Without as many context headers as needed; the record's own headers stay."""
    start = start_of_context(record.headers)  # What comes before is not ours: the record came from such a queue.
    before, context = record.headers[:start], record.headers[start:]
    for count in range(1, len(_LARGEST_CONTEXT) + 1):
        left_out = {PREFIX + name for name in _LARGEST_CONTEXT[:count]}
        shorter = replace(record, headers=(*before, *(header for header in context if header[0] not in left_out)))
        if fits(shorter):
            return shorter
    times = tuple(header for header in context if header[0] == TIMESTAMP_HEADER)
    return replace(record, headers=(*without_context(record.headers), *times))


def _fits(record: TopicRecord, limits: QueueLimits) -> bool:
    return limits.largest_bytes is None or _size(record) <= limits.largest_bytes


def _size(record: TopicRecord) -> int:
    """At most what a batch with this record alone needs: https://kafka.apache.org/documentation/#messageformat."""
    of_headers = sum(10 + len(name.encode()) + len(value or b"") for name, value in record.headers)
    return 100 + len(record.key or b"") + len(record.value or b"") + of_headers


def _so_far(manifest: Manifest, *, is_published: bool) -> str:
    if is_published:
        return "The output of the run may be visible already; the next run writes the dead letters and commits."
    if manifest.files:
        return "Nothing was published, and no offset was moved."
    # Sinks without files write while they copy, and recognise or replace what comes again.
    return "The run has committed no offset; the next one copies its records again and finds what was written."


def _refusal(unfit: Sequence[_Fitted], limits: QueueLimits, so_far: str, *, is_published: bool) -> ConfigError:
    where = names([found.record.origin for found in unfit])
    what = (
        f"The dead letter queue {limits.topic} would refuse {plural(len(unfit), 'dead letter')}, of {where}:"
        f" {unfit[0].refused}."
    )
    cure = (
        f"Set cleanup.policy=delete for {limits.topic}, or name another queue in {QUEUE_KEY}"
        if limits.is_compacted and unfit[0].record.key is None
        else f"Raise max.message.bytes of {limits.topic} and producer.override.max.request.size"
    )
    return ConfigError(
        what,
        code="dead_letter.refused",
        suggestion=f"{so_far} {cure}, and run again." + (f" {_GIVE_UP}" if is_published else ""),
        config_path=QUEUE_KEY,
    )


def _notes(manifest: Manifest, fitted: Sequence[_Fitted], limits: QueueLimits) -> list[str]:
    notes = []
    for change in (_MOVED_TIME, _CUT):
        changed = [found.record.origin for found in fitted if change in found.changes]
        if changed:
            notes.append(
                f"{plural(len(changed), 'dead letter', 'were')} written to {limits.topic} {change}: of"
                f" {names(changed)}."
            )
    if limits.is_compacted:
        notes.append(
            f"The dead letter queue {limits.topic} is compacted: Kafka keeps only the last letter of each key. Set"
            " cleanup.policy=delete to keep them all."
        )
    moved = sorted({str(letter["topic"]) for letter in manifest.dead_letters} - {limits.topic})
    if moved:
        notes.append(
            f"Dead letters of run {manifest.run_id} for {names(moved)} were written to {limits.topic}, which"
            f" {QUEUE_KEY} names now."
        )
    return notes


def _given_up(run_id: str, places: Sequence[str]) -> str:
    return (
        f"{plural(len(places), 'dead letter')} of run {run_id} {agreeing(len(places), 'were')} given up, because the"
        f" connector has no {QUEUE_KEY} any more: of {names(places, 20)}."
    )


def _place(letter: Mapping[str, Any]) -> str:
    topic, partition, offset = letter["origin"]
    return f"{TopicPartition(topic, partition)}@{offset}"

"""Dead letters in the form that their queue accepts."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_connect.errors import ConfigError
from airflow_connect.exactly_once.journal import TopicRecord
from airflow_connect.exactly_once.manifest import Manifest
from airflow_connect.kafka.admin.dead_letter_queue import TIME_MARGIN_MS, QueueLimits
from airflow_connect.runtime.dead_letter_codec import to_text
from airflow_connect.runtime.driver.sink.dead_letters import Letters, letters_of

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
TRACE = ("__connect.errors.exception.stacktrace", b"t" * 1_000)
MESSAGE = ("__connect.errors.exception.message", b"m" * 500)
OFFSET = ("__connect.errors.offset", b"7")
OWN = ("own", b"value")


def letter(value: bytes = b"v", offset: int = 7, **fields: Any) -> dict[str, Any]:
    """A dead letter as a task reports it."""
    headers = fields.pop("headers", [OWN, OFFSET, MESSAGE, TRACE])
    return {
        "topic": "queue",
        "key": to_text(b"k"),
        "value": to_text(value),
        "timestamp": NOW_MS,
        "headers": [[name, to_text(data)] for name, data in headers],
        "origin": ["t", 0, offset],
        **fields,
    }


def fitted(limits: QueueLimits | None, *letters: dict[str, Any], is_published: bool = False) -> Letters:
    """What a commit writes."""
    manifest = Manifest("c", "r1", 0, (), (), dead_letters=letters)
    return letters_of(manifest, limits, NOW_MS, is_published=is_published)


def test_letter_that_fits_is_written_as_it_is() -> None:
    found = fitted(QueueLimits("queue", 10_000, before_ms=HOUR_MS, after_ms=HOUR_MS), letter())

    headers = (OWN, OFFSET, MESSAGE, TRACE)
    assert found == Letters((TopicRecord("queue", b"k", b"v", headers, NOW_MS, origin="t-0@7"),))


@pytest.mark.parametrize(
    ("distance_ms", "is_kept"),
    [
        (HOUR_MS - TIME_MARGIN_MS, True),
        (HOUR_MS - TIME_MARGIN_MS + 1, False),
        (-HOUR_MS + TIME_MARGIN_MS, True),
        (-HOUR_MS + TIME_MARGIN_MS - 1, False),
    ],
)
def test_timestamp_near_the_limits_of_the_queue_moves_to_a_header(distance_ms: int, is_kept: bool) -> None:
    limits = QueueLimits("queue", before_ms=HOUR_MS, after_ms=HOUR_MS)

    (record,) = fitted(limits, letter(timestamp=NOW_MS + distance_ms)).records

    header = ("__connect.errors.timestamp", str(NOW_MS + distance_ms).encode())
    assert (record.timestamp, header in record.headers) == ((NOW_MS + distance_ms, False) if is_kept else (None, True))


def test_record_without_a_timestamp_is_never_moved() -> None:
    assert fitted(QueueLimits("queue", after_ms=1), letter(timestamp=None)).notes == ()


@pytest.mark.parametrize(
    ("largest", "kept"),
    [(2_000, (OWN, OFFSET, MESSAGE, TRACE)), (1_500, (OWN, OFFSET, MESSAGE)), (500, (OWN, OFFSET)), (120, (OWN,))],
)
def test_context_headers_are_left_out_as_far_as_needed_and_own_ones_stay(largest: int, kept: Any) -> None:
    found = fitted(QueueLimits("queue", largest, f"{largest} bytes"), letter(b""))

    assert found.records[0].headers == kept
    assert len(found.notes) == (kept != (OWN, OFFSET, MESSAGE, TRACE))


@pytest.mark.parametrize("is_published", [False, True])
def test_letters_that_cannot_fit_are_named_with_queue_reason_and_cure(is_published: bool) -> None:
    limits = QueueLimits("queue", 1_000, "1000 bytes (max.message.bytes)")

    with pytest.raises(ConfigError) as raised:
        fitted(limits, letter(b"x" * 2_000, 1), letter(), letter(b"x" * 2_000, 3), is_published=is_published)

    message, suggestion = raised.value.message, raised.value.suggestion
    assert "queue would refuse 2 dead letters, of t-0@1, t-0@3: it accepts 1000 bytes (max.message.bytes)" in message
    assert "Raise max.message.bytes of queue" in suggestion
    assert ("remove errors.deadletterqueue.topic.name" in suggestion) is is_published
    assert ("Nothing was published" in suggestion) is not is_published


def test_compacted_queue_refuses_letters_without_a_key_and_warns_about_the_others() -> None:
    limits = QueueLimits("queue", is_compacted=True)

    with pytest.raises(ConfigError, match=r"it is compacted, and t-0@7 has no key"):
        fitted(limits, letter(key=None))
    assert "keeps only the last letter of each key" in fitted(limits, letter()).notes[0]


def test_letters_for_another_queue_go_to_the_one_that_is_configured_now() -> None:
    found = fitted(QueueLimits("other"), letter())

    assert found.records[0].topic == "other"
    assert found.notes[0].startswith("Dead letters of run r1 for queue were written to other")


def test_letters_without_a_queue_are_given_up_and_named() -> None:
    found = fitted(None, letter(offset=1), letter(offset=2))

    assert found.records == ()
    assert found.notes[0].startswith("2 dead letters of run r1 were given up")
    assert "t-0@1, t-0@2" in found.notes[0]

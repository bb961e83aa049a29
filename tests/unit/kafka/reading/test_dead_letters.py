"""What a dead letter says of itself, and which letters a filter means."""

import json
from pathlib import Path

import pytest

from airflow_connect.api.record import KafkaRecord
from airflow_connect.kafka.reading.dead_letters import DeadLetter, LetterFilter

RECORDED = [
    json.loads(line) for line in (Path(__file__).parents[3] / "data" / "dead_letters.jsonl").read_text().splitlines()
]


def letter(headers, timestamp=None):
    return DeadLetter(KafkaRecord("dlq", 0, 3, b"key", b"value", timestamp, headers=tuple(headers)))


def recorded(entry):
    return letter([(name, value.encode()) for name, value in entry["headers"]], entry["timestamp"])


def test_letters_of_kafka_connect_say_where_they_came_from():
    read = [recorded(entry) for entry in RECORDED]

    assert [found.origin for found in read] == [
        ("b-bad", 0, 1), ("b-bad", 0, 3), ("b-n", 0, 0), ("b-n", 0, 1), ("b-n", 0, 2)
    ]  # fmt: skip
    assert read[0].own_headers == (("mine", b"orig"),)
    assert [found.connector for found in read] == ["dlq", "dlq", "dlq2", "dlq2", "dlq2"]
    assert read[2].context["class.name"] == "org.apache.kafka.connect.transforms.ExtractField$Value"


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("__connect.errors.topic", b"t")],
        [("__connect.errors.topic", b"t"), ("__connect.errors.partition", b"x"), ("__connect.errors.offset", b"1")],
        [("__connect.errors.topic", b"t"), ("__connect.errors.partition", None), ("__connect.errors.offset", b"1")],
    ],
)
def test_letter_without_a_whole_origin_has_none(headers):
    assert letter(headers).origin is None


def test_context_that_is_there_twice_is_that_of_the_last_failure():
    found = letter([("__connect.errors.stage", b"KEY_CONVERTER"), ("a", b"1"), ("__connect.errors.stage", b"TASK_PUT")])

    assert found.context == {"stage": "TASK_PUT"}
    assert found.own_headers == (("a", b"1"),)


def test_context_of_an_earlier_failure_belongs_to_the_record():
    """As `DeadLetterQueueReporter` leaves it: a connector that reads the queue of another one appends its own."""
    first = [("__connect.errors.topic", b"orders"), ("__connect.errors.exception.stacktrace", b"of the first")]
    second = [("__connect.errors.topic", b"orders-dlq"), ("__connect.errors.stage", b"TASK_PUT")]

    found = letter([("a", b"1"), *first, ("b", b"2"), *second])

    assert found.context == {"topic": "orders-dlq", "stage": "TASK_PUT"}
    assert found.own_headers == (("a", b"1"), *first, ("b", b"2"))


@pytest.mark.parametrize(
    ("chosen", "places"),
    [
        (LetterFilter(), [0, 1, 2, 3, 4]),
        (LetterFilter(connector="dlq"), [0, 1]),
        (LetterFilter(stage="transformation"), [2, 3, 4]),
        (LetterFilter(error="SERIALIZATION error"), [0, 1]),
        (LetterFilter(error="DataException"), [0, 1, 2, 3, 4]),
        (LetterFilter(since_ms=1_700_000_000_002), [1, 2, 3, 4]),
        (LetterFilter(connector="dlq2", stage="VALUE_CONVERTER"), []),
    ],
)
def test_filter_accepts(chosen, places):
    assert [n for n, entry in enumerate(RECORDED) if chosen.accepts(recorded(entry))] == places

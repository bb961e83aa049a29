"""The report names the stage that keeps many records of a task out of columns."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_connect.api.record import KafkaRecord
from airflow_connect.runtime.executor import slow_path
from airflow_connect.runtime.executor.slow_path import SlowPath
from airflow_connect.runtime.reporting.notes import Notes, of_tasks
from tests.unit.connectors.files.shared.staging import JSON, copy

LINES = {
    "value.converter": JSON,
    "value.converter.schemas.enable": "false",
    "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
    "flush.size": "1000",
}
NOTE = "Records that were processed one by one instead of in columns, because of {}: {}."


def batches(*values: bytes | None) -> list[list[KafkaRecord]]:
    return [[KafkaRecord("t", 0, offset, None, value, 1_700_000_000_000) for offset, value in enumerate(values)]]


def notes_of(values: list[bytes | None], *, columnar: bool = True, **config: str) -> tuple[str, ...]:
    given: Any = {**LINES, **{key.replace("_", "."): value for key, value in config.items()}}
    outcome, _ = copy(given, batches(*values), columnar=columnar)
    assert outcome.error == ""
    return tuple(outcome.notes)


@pytest.fixture
def every_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_path, "WORTH_A_NOTE", 1)


@pytest.mark.usefixtures("every_record")
def test_records_in_columns_are_no_note() -> None:
    assert notes_of([json.dumps({"n": n}).encode() for n in range(100)]) == ()


@pytest.mark.usefixtures("every_record")
def test_predicate_without_columns_is_named() -> None:
    values: list[bytes | None] = [b'{"n": 1}'] * 7
    header = {"transforms": "some", "transforms_some_type": "Filter", "transforms_some_predicate": "marked"}
    header |= {"predicates": "marked", "predicates_marked_type": "HasHeaderKey", "predicates_marked_name": "h"}
    stage = "the predicate (HasHeaderKey) of transformation some (Filter)"
    assert notes_of(values, **header) == (NOTE.format(stage, 7),)


@pytest.mark.usefixtures("every_record")
def test_null_values_are_named_with_their_number() -> None:
    values: list[bytes | None] = [b'{"n": 1}', None] * 10
    assert notes_of(values, behavior_on_null_values="ignore") == ()
    queue = {"errors_deadletterqueue_topic_name": "letters", "behavior_on_null_values": "ignore"}
    assert notes_of(values, **queue) == (NOTE.format("null values", 20),)


@pytest.mark.usefixtures("every_record")
def test_task_that_looks_for_a_bad_record_says_nothing_of_columns() -> None:
    assert notes_of([b'{"n": 1}'], columnar=False) == ()


def test_few_records_are_no_note_and_many_are_summed_over_tasks() -> None:
    told = []
    for number in (slow_path.WORTH_A_NOTE - 1, slow_path.WORTH_A_NOTE, slow_path.WORTH_A_NOTE):
        counts, notes = SlowPath(), Notes()
        counts.because_of("the sink")
        counts.add(number)
        counts.tell(notes)
        told.append(notes.sentences)

    assert told[0] == ()
    assert of_tasks(told) == [NOTE.format("the sink", "200,000")]

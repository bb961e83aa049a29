"""What one task does with failed records: tolerance, dead letters as Connect writes them, log lines, the limit."""

import base64
import json
import logging
import socket
from functools import partial
from pathlib import Path

import pytest

from airflow_connect.api.record import TIMESTAMP_NOT_AVAILABLE, KafkaRecord
from airflow_connect.config.resolved.sink import ErrorConfig
from airflow_connect.errors import (
    AccessError,
    ConnectError,
    DataError,
    FatalDataError,
    TooManyErrorsError,
    UnavailableError,
)
from airflow_connect.java.properties_file import parse_properties
from airflow_connect.runtime.executor.error_policy import (
    SINK_TASK,
    STACK_TRACE_CHARACTERS,
    TASK_PUT,
    TRANSFORMATION,
    VALUE_CONVERTER,
    ErrorPolicy,
    Failure,
    put_failed,
)

RECORDED = [
    json.loads(line) for line in (Path(__file__).parents[3] / "data" / "dead_letters.jsonl").read_text().splitlines()
]
JSON = "org.apache.kafka.connect.json.JsonConverter"
RECORD = KafkaRecord("orders", 2, 41, b"key", b"secret content", 1_700_000_000_000)


def policy(tolerate=True, topic="dlq", headers=True, log=False, log_records=False, max_records=None):
    errors = ErrorConfig(tolerate, 0, 60_000, log, log_records, topic, 1, headers, max_records)
    return ErrorPolicy("sink", 3, errors)


def failure(error, stage=VALUE_CONVERTER, stage_class=JSON):
    return Failure(stage, stage_class, error)


def decoded(letter):
    return [(name, None if value is None else base64.b64decode(value)) for name, value in letter["headers"]]


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda r: base64.b64decode(r["value"]).hex())
def test_dead_letter_is_what_kafka_connect_has_written_for_the_same_record(recorded):
    """All but the name of the exception's class, its text and its stack trace, which are those of another language."""
    told = dict(recorded["headers"])
    own_headers = [(n, v.encode()) for n, v in recorded["headers"] if not n.startswith("__connect.errors.")]
    raw = {name: None if recorded[name] is None else base64.b64decode(recorded[name]) for name in ("key", "value")}
    record = KafkaRecord(
        told["__connect.errors.topic"],
        int(told["__connect.errors.partition"]),
        int(told["__connect.errors.offset"]),
        raw["key"],
        raw["value"],
        recorded["timestamp"],
        headers=tuple(own_headers),
    )
    errors = ErrorConfig(True, 0, 60_000, False, False, "b-dlq", 1, True)
    task = ErrorPolicy(told["__connect.errors.connector.name"], int(told["__connect.errors.task.id"]), errors)
    message = told["__connect.errors.exception.message"]

    sent = task.handle(
        record, Failure(told["__connect.errors.stage"], told["__connect.errors.class.name"], DataError(message))
    )

    assert sent is True
    (letter,) = task.dead_letters
    assert (letter["topic"], letter["timestamp"]) == ("b-dlq", recorded["timestamp"])
    assert (letter["key"], letter["value"]) == (recorded["key"], recorded["value"])
    ours = [(name, value.decode()) for name, value in decoded(letter)]
    assert [name for name, _ in ours] == [name for name, _ in recorded["headers"]]
    of_the_language = ("exception.class.name", "exception.stacktrace")
    for (name, value), (_, wanted) in zip(ours, recorded["headers"], strict=True):
        if not name.endswith(of_the_language):
            assert value == wanted, name
    assert dict(ours)["__connect.errors.exception.class.name"] == "airflow_connect.errors.DataError"
    assert dict(ours)["__connect.errors.exception.stacktrace"].startswith("airflow_connect.errors.DataError")


def test_dead_letter_without_context_headers_has_only_the_records_own():
    task = policy(headers=False)
    record = KafkaRecord("t", 0, 0, None, None, headers=(("a", b"1"), ("a", None)))

    task.handle(record, failure(DataError("Bad.")))

    assert decoded(task.dead_letters[0]) == [("a", b"1"), ("a", None)]
    assert (task.dead_letters[0]["key"], task.dead_letters[0]["value"]) == (None, None)


def test_dead_letter_of_an_exception_of_somebody_else_names_its_class():
    task = policy()

    task.handle(RECORD, failure(KeyError("field"), TRANSFORMATION, "mine:Transformation"))

    told = dict(decoded(task.dead_letters[0]))
    assert told["__connect.errors.exception.class.name"] == b"builtins.KeyError"
    assert told["__connect.errors.exception.message"] == b"'field'"


def test_dead_letter_of_a_deep_stack_is_cut():
    task = policy()

    task.handle(RECORD, failure(DataError("x" * 100_000)))

    trace = dict(decoded(task.dead_letters[0]))["__connect.errors.exception.stacktrace"]
    assert len(trace) < STACK_TRACE_CHARACTERS + 100
    assert b"characters omitted" in trace


@pytest.mark.parametrize("error", [DataError("Bad."), ValueError("bad"), RecursionError(), ZeroDivisionError("x")])
def test_untolerated_failure_names_stage_class_and_record(error):
    task = policy(tolerate=False)

    with pytest.raises(DataError) as raised:
        task.handle(RECORD, failure(error))

    assert "The record at orders-2@41 failed in VALUE_CONVERTER: " in raised.value.message
    assert raised.value.suggestion
    assert "secret content" not in str(raised.value)
    if not isinstance(error, DataError):
        assert f"{JSON} failed with {type(error).__name__}" in raised.value.message
        assert raised.value.__cause__ is error
    assert task.failed == 0


@pytest.mark.parametrize("error", [UnavailableError("Away."), AccessError("No."), FatalDataError("Stop.")])
def test_failure_that_says_nothing_about_the_record_is_never_tolerated(error):
    task = policy()

    with pytest.raises(type(error), match="orders-2@41"):
        task.handle(RECORD, failure(error))

    assert task.dead_letters == []


class BusyError(ConnectError):
    """Of a third party, with a constructor of its own."""

    def __init__(self, server):
        super().__init__(f"{server} is busy.", suggestion="Wait.")
        self.retriable = True


def test_failure_of_a_class_of_somebody_else_keeps_what_it_says():
    with pytest.raises(ConnectError) as raised:
        policy().handle(RECORD, failure(BusyError("example.org")))

    assert raised.value.message == "The record at orders-2@41 failed in VALUE_CONVERTER: example.org is busy."
    assert (raised.value.retriable, raised.value.suggestion) == (True, "Wait.")
    assert isinstance(raised.value.__cause__, BusyError)


def test_lack_of_memory_is_never_a_bad_record():
    with pytest.raises(MemoryError):
        policy().handle(RECORD, failure(MemoryError()))


def test_record_that_a_sink_reports_is_tolerated_whatever_the_error_is():
    task = policy()

    assert task.handle(RECORD, failure(AccessError("The row is not mine."), TASK_PUT, SINK_TASK)) is True


def test_tolerated_without_a_queue_is_counted_only():
    task = policy(topic="")

    assert task.handle(RECORD, failure(DataError("Bad."))) is False

    assert (task.failed, task.dead_letters) == (1, [])
    assert task.places == ["orders-2@41 (VALUE_CONVERTER: Bad)"]


@pytest.mark.parametrize("tolerate", [True, False])
def test_record_that_a_sink_drops_deliberately_is_a_dead_letter_whatever_is_tolerated(tolerate):
    task = policy(tolerate=tolerate, max_records=0)
    assert task.leave_out(RECORD, failure(DataError("no value", code="x"), TASK_PUT, SINK_TASK))
    assert task.failed == 0  # errors.max.records counts failures only.
    (letter,) = task.dead_letters
    assert letter["origin"] == ["orders", 2, 41]
    task.raise_pending_error()
    without = policy(tolerate=tolerate, topic="")
    assert not without.leave_out(RECORD, failure(DataError("no value", code="x"), TASK_PUT, SINK_TASK))
    assert without.dead_letters == []
    without.raise_pending_error()


def test_limit_of_failed_records_is_the_number_that_may_fail():
    task = policy(max_records=2)
    for _ in range(2):
        task.handle(RECORD, failure(DataError("Bad.")))

    with pytest.raises(TooManyErrorsError) as raised:
        task.handle(RECORD, failure(DataError("Worse.")))

    assert raised.value.message.startswith("Task 3 had 3 failed records, more than errors.max.records=2 allows.")
    assert "orders-2@41 (VALUE_CONVERTER: Bad); orders-2@41" in raised.value.message
    assert raised.value.config_path == "errors.max.records"


def test_error_that_somebody_swallowed_comes_again():
    task = policy(tolerate=False)
    task.raise_pending_error()
    with pytest.raises(DataError):
        task.handle(RECORD, failure(DataError("Bad.")))

    with pytest.raises(ConnectError, match="orders-2@41"):
        task.raise_pending_error()


LINE = "Error encountered in task sink-3. Executing stage 'VALUE_CONVERTER' with class '" + JSON + "'"


@pytest.mark.parametrize(
    ("enabled", "details", "record", "expected"),
    [
        (False, False, RECORD, []),
        (False, True, RECORD, []),
        (True, False, RECORD, [f"{LINE}. Bad."]),
        (
            True,
            True,
            RECORD,
            [
                (
                    f"{LINE}, where consumed record is {{topic='orders', partition=2, offset=41, "
                    "timestamp=1700000000000, timestampType=CreateTime}. Bad."
                )
            ],
        ),
        (
            True,
            True,
            KafkaRecord("t", 0, 7, None, b"x", None, TIMESTAMP_NOT_AVAILABLE),
            [f"{LINE}, where consumed record is {{topic='t', partition=0, offset=7}}. Bad."],
        ),
    ],
    ids=["off", "details alone", "on", "with details", "without a timestamp"],
)
def test_log_line_has_the_words_of_connect_and_no_content(caplog, enabled, details, record, expected):
    with caplog.at_level(logging.DEBUG):
        policy(log=enabled, log_records=details).handle(record, failure(DataError("Bad.")))

    assert [r.getMessage() for r in caplog.records] == expected
    assert "secret content" not in caplog.text


def raised_by(work):
    """What `work` raises, as code of ours that called it would see it: without the frames of this test."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 (each test looks at it)
        work()
    return caught.value.with_traceback(caught.value.__traceback__.tb_next)


def test_defect_of_ours_in_put_stays_what_it_is_and_one_of_a_plugin_is_told_with_the_record():
    ours = raised_by(partial(parse_properties, None))
    assert put_failed("t-0@7", ours) is ours
    assert ours.__notes__ == ["while the record at t-0@7 was written"]

    theirs = put_failed("t-0@7", raised_by(lambda: {}["region"]))
    assert theirs.code == "task.put_failed"
    assert theirs.message == "Writing the record at t-0@7 failed with KeyError: 'region'."


def test_broken_connection_inside_our_code_is_no_defect():
    error = raised_by(partial(socket.create_connection, ("127.0.0.1", 1)))
    assert put_failed("t-0@7", error).retriable


def test_failed_records_are_counted_by_stage_and_error_whether_they_are_queued_or_skipped():
    with_queue, without = policy(), policy(topic="")
    for task in (with_queue, without):
        task.handle(RECORD, failure(DataError("no", code="data.json_type")))
        task.handle(RECORD, failure(DataError("no"), stage=TRANSFORMATION))
    reasons = [(VALUE_CONVERTER, "data.json_type"), (TRANSFORMATION, "data.invalid")]
    assert [tuple(letter["reason"]) for letter in with_queue.dead_letters] == reasons
    assert (list(without.skipped), without.skipped.total(), with_queue.skipped.total()) == (reasons, 2, 0)
    assert failure(KeyError("x")).reason == (VALUE_CONVERTER, "KeyError")

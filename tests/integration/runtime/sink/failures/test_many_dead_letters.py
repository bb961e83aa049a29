"""A bad producer: dead letters of one run are bounded, the run ends early, and the next ones go on; nothing is lost."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from airflow_connect.planning import limits
from airflow_connect.runtime.executor import error_policy
from tests.integration.runtime.sink.failures.test_errors import TOLERANT, queue_of
from tests.support.copies.s3 import numbered
from tests.support.kafka_data import produce as produce_now
from tests.support.steps import HookedEngine

IS_SOAK = bool(os.environ.get("AIRFLOW_CONNECT_SOAK"))
BROKEN = 1_000_000 if IS_SOAK else 40_000
AT_ONCE = 20_000


def bounded(max_bytes):
    """An engine whose tasks may gather so many bytes of dead letters."""
    return HookedEngine(change=lambda task: replace(task, max_dead_letter_bytes=max_bytes))


def run_until_empty(sink, most):
    reports = []
    while len(reports) <= most:
        reports.append(sink.run())
        if reports[-1].status == "empty":
            return reports[:-1]
    raise AssertionError(f"not done after {most} runs: {[r.dead_lettered for r in reports]}")


@pytest.fixture
def make(make_topic, produce, make_sink, unique_name):
    """`make(rows, partitions, **config)`: a connector with a dead letter queue."""

    def make(rows, partitions=1, **config):
        topic = make_topic(partitions=partitions)
        produce(topic, rows)
        return make_sink(topic, errors_deadletterqueue_topic_name=f"{unique_name}-dlq", **TOLERANT, **config)

    return make


@pytest.mark.parametrize("flush", ["true", "false"])
def test_runs_end_early_and_the_next_ones_go_on(make, flush):
    rows, values = numbered(0, 100)
    broken = [(0, None, f"broken {n}") for n in range(300)]
    sink = make([*rows[:50], *broken, *rows[50:]], flush_on_end=flush, flush_size="40")
    sink.engine = bounded(150_000)

    reports = run_until_empty(sink, 9) if flush == "true" else [sink.run() for _ in range(9)]

    assert max(report.dead_lettered for report in reports) < 150
    assert sum(report.dead_lettered for report in reports) == 300
    assert any("ended early in 1 partition" in note for note in reports[0].notes)
    assert queue_of(sink) == [(None, value.encode()) for _, _, value in broken]
    sink.run(flush_on_end="true")
    sink.assert_exactly_once(values)


def test_partition_without_broken_records_is_copied_to_its_end(make):
    rows = [(0, None, "broken")] * 200 + [(1, None, json.dumps({"n": n})) for n in range(500)]
    sink = make(rows, partitions=2, tasks_max="1")
    sink.engine = bounded(5_000)

    report = sink.run()

    assert (report.records, sink.offsets()[1]) == (500, 500)
    assert 0 < report.dead_lettered == sink.offsets()[0] < 200


def test_every_run_gets_on_in_every_partition_although_one_letter_is_larger_than_the_bound(make):
    rows = [(p, None, "broken " + "x" * 20_000) for p in range(3) for _ in range(2)]
    sink = make(rows, partitions=3, tasks_max="1")
    sink.engine = bounded(1)

    first = sink.run()

    assert (first.dead_lettered, sink.offsets()) == (3, {0: 1, 1: 1, 2: 1})
    assert len(run_until_empty(sink, 3)) == 1
    assert len(queue_of(sink)) == 6


def test_a_bad_producer_fills_neither_driver_nor_transaction(make_topic, make_sink, kafka, unique_name):
    """40,000 broken records and a small bound; in the soak a million, with stack traces, and the real bound."""
    topic = make_topic(partitions=2)
    for start in range(0, BROKEN, AT_ONCE):
        produce_now(kafka.bootstrap, topic, [(n % 2, None, f"broken {n}") for n in range(start, start + AT_ONCE)])
    sink = make_sink(topic, errors_deadletterqueue_topic_name=f"{unique_name}-dlq", **TOLERANT)
    bound = limits.MAX_DEAD_LETTER_BYTES if IS_SOAK else 2 << 20
    sink.config["errors.deadletterqueue.context.headers.enable"] = str(IS_SOAK).lower()
    sink.engine = bounded(bound // 2)

    reports = run_until_empty(sink, 300)

    assert len(reports) > 1
    assert sum(report.dead_lettered for report in reports) == BROKEN
    assert max(report.dead_lettered for report in reports) < 1.1 * bound / 100
    letters = queue_of(sink)
    assert len(letters) == len({value for _, value in letters}) == BROKEN


def test_messages_inside_headers_are_shortened():
    error = error_policy._shortened("x" * 10_000, error_policy.MESSAGE_CHARACTERS)

    assert len(error) < error_policy.MESSAGE_CHARACTERS + 100
    assert "6000 characters omitted" in error

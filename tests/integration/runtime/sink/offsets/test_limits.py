"""`run.max.*`, `run.until.timestamp`, `flush.on.end`: a run ends early, and the next ones get the rest."""

import threading
from dataclasses import replace

import pytest

from tests.support.copies.s3 import numbered
from tests.support.kafka_data import produce as produce_now
from tests.support.steps import HookedEngine

HOUR_MS = 3_600_000
BASE_MS = 1_700_000_000_000 // HOUR_MS * HOUR_MS


def _run_until_empty(sink, most, **overrides):
    reports = []
    while len(reports) <= most:
        report = sink.run(**overrides)
        if report.status == "empty":
            return reports
        reports.append(report)
    raise AssertionError(f"not done after {most} runs: {[r.records for r in reports]}")


def test_max_records_shares_the_limit_and_everything_arrives_over_several_runs(make_topic, produce, make_sink):
    topic = make_topic(partitions=3)
    rows, values = numbered(0, 50, 3)
    produce(topic, rows)
    sink = make_sink(topic)

    reports = _run_until_empty(sink, 10, run_max_records="20")

    assert [r.records for r in reports] == [20, 20, 10]
    assert any("Limits of the run" in note for note in reports[0].notes)
    sink.assert_exactly_once(values)


def test_max_records_over_gaps_still_gets_to_the_end(make_topic, produce, make_sink):
    topic = make_topic()
    for n in range(4):
        produce.transaction(topic, numbered(100, 105)[0], "abort")
        produce.transaction(topic, numbered(n, n + 1)[0], "commit")
    sink = make_sink(topic)

    _run_until_empty(sink, 20, run_max_records="3")

    sink.assert_exactly_once(numbered(0, 4)[1])


def test_max_bytes_ends_each_run_after_the_batch_that_crosses_it(make_topic, produce, make_sink):
    topic = make_topic(partitions=2)
    rows, values = numbered(0, 20_000, 2)
    produce(topic, rows)
    sink = make_sink(topic, flush_size="100000", tasks_max="1")

    reports = _run_until_empty(sink, 100, run_max_bytes="20000")

    assert len(reports) > 1
    assert reports[0].records < 20_000
    sink.assert_exactly_once(values)


def test_max_seconds_publishes_what_was_read_until_then(make_topic, produce, make_sink):
    """A task looks at the clock after each batch, and a batch holds records of one partition."""
    topic = make_topic(partitions=4)
    rows, values = numbered(0, 9000, 4)
    produce(topic, rows)
    sink = make_sink(topic, tasks_max="1")
    seen = []

    def expire_at_once(task):
        seen.append(task.max_seconds)
        return replace(task, max_seconds=1e-6)

    sink.engine = HookedEngine(change=expire_at_once)
    first = sink.run(run_max_seconds="7")
    sink.engine = HookedEngine()
    sink.run()

    assert seen == [7]
    assert 0 < first.records < 9000
    sink.assert_exactly_once(values)


def test_until_timestamp_leaves_later_records_and_the_run_without_it_takes_them(make_topic, produce, make_sink):
    topic = make_topic(partitions=2)
    produce(topic, [(n % 2, None, f'{{"n": {n}}}', BASE_MS + n * 1000) for n in range(20)])
    sink = make_sink(topic)

    first = sink.run(run_until_timestamp=str(BASE_MS + 10_000))
    again = sink.run(run_until_timestamp=str(BASE_MS + 10_000))
    early = {v["n"] for v in sink.values()}
    rest = sink.run()

    assert (first.records, again.status, rest.records) == (10, "empty", 10)
    assert early == set(range(10))
    sink.assert_exactly_once(numbered(0, 20)[1])


def test_endless_producer_does_not_keep_a_run_from_ending(kafka, make_topic, produce, make_sink):
    topic = make_topic(partitions=2)
    produce(topic, numbered(0, 100, 2)[0])
    sink = make_sink(topic)
    stop, written = threading.Event(), [100]

    def go_on():
        while not stop.is_set():
            rows, _ = numbered(written[0], written[0] + 20, 2)
            produce_now(kafka.bootstrap, topic, rows)
            written[0] += 20

    writer = threading.Thread(target=go_on)
    writer.start()
    try:
        reports = [sink.run() for _ in range(4)]
    finally:
        stop.set()
        writer.join()
    sink.run()

    assert all(r.status == "done" for r in reports[:1])
    sink.assert_exactly_once(numbered(0, written[0])[1])


ROTATIONS = [
    {"flush_size": "7"},
    {
        "flush_size": "1000",
        "rotate_interval_ms": "3600000",
        "partitioner_class": "io.confluent.connect.storage.partitioner.TimeBasedPartitioner",
        "path_format": "'hour'=HH",
        "partition_duration_ms": "3600000",
        "locale": "en-US",
        "timezone": "UTC",
        "timestamp_extractor": "Record",
    },
]


@pytest.mark.parametrize("rotation", ROTATIONS, ids=["flush.size", "rotate.interval.ms"])
def test_many_small_runs_make_the_objects_of_one_long_run_when_the_tail_is_left(
    make_topic, produce, make_sink, rotation
):
    topic = make_topic(partitions=2)
    rows = [(n % 2, None, f'{{"n": {n}}}', BASE_MS + n * HOUR_MS // 9) for n in range(60)]
    whole = make_sink(topic, flush_on_end="false", topics_dir="whole", **rotation)
    pieces = make_sink(topic, flush_on_end="false", topics_dir="pieces", **rotation)
    reports = []
    for start in range(0, 60, 11):
        produce(topic, rows[start : start + 11])
        reports.append(pieces.run())

    whole.run()

    def objects(folder):
        return {k.removeprefix(folder): whole.body(k) for k in list(whole.keys()) if k.startswith(folder)}

    assert objects("pieces") == objects("whole") != {}
    assert any(r.left for r in reports)
    assert pieces.uploads() == []
    assert pieces.offsets() == whole.offsets()


def test_scheduled_rotation_flushes_the_tail_once_the_clock_has_ticked(make_topic, produce, make_sink, monkeypatch):
    from airflow_connect.runtime.driver.sink import run

    topic = make_topic()
    produce(topic, numbered(0, 3)[0])
    sink = make_sink(topic, flush_on_end="false", rotate_schedule_interval_ms=str(HOUR_MS), timezone="UTC")
    clock = [BASE_MS + 50 * 60_000]
    monkeypatch.setattr(run, "now_ms", lambda: clock[0])

    before = sink.run()
    clock[0] = BASE_MS + 59 * 60_000
    still = sink.run()
    clock[0] = BASE_MS + 61 * 60_000
    produce(topic, numbered(3, 4)[0])
    after = sink.run()

    assert (before.records, before.left) == (0, 3)
    assert (still.records, still.left) == (0, 3)
    assert (after.records, after.left) == (4, 0)
    sink.assert_exactly_once(numbered(0, 4)[1])

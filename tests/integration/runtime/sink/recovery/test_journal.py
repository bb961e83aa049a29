"""State, manifest and history in the runs topic."""

import json

from airflow_connect.exactly_once.state import VERSION
from airflow_connect.kafka.state.murmur2 import partition_for
from tests.support.copies.s3 import numbered
from tests.support.kafka_data import partition_count


def overwrite(sink, produce, kind, document):
    """Replace a document of the connector in the runs topic by something else."""
    partitions = partition_count(sink.kafka.bootstrap, "connect-runs")
    partition = partition_for(sink.name.encode(), partitions)
    value = json.dumps({"v": 1, "of": 1, "document": document}) if isinstance(document, dict) else document
    produce("connect-runs", [(partition, json.dumps([kind, sink.name, 0], separators=(",", ":")), value)])


def test_history_keeps_the_newest_hundred_runs(make_topic, produce, make_sink, monkeypatch):
    monkeypatch.setattr("airflow_connect.exactly_once.kafka_journal.HISTORY", 4)
    topic = make_topic()
    sink = make_sink(topic)
    ids = []
    for n in range(7):
        produce(topic, numbered(n, n + 1)[0])
        ids.append(sink.run().run_id)

    assert sink.history() == sorted(ids)[-4:]
    sink.assert_exactly_once(numbered(0, 7)[1])


def test_empty_runs_write_nothing_into_the_history(make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, numbered(0, 3)[0])
    sink = make_sink(topic)
    first = sink.run()
    for _ in range(3):
        sink.run()

    assert sink.history() == [first.run_id]


def test_state_of_a_newer_release_stops_the_run_and_is_named(make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, numbered(0, 3)[0])
    sink = make_sink(topic)
    sink.run()
    overwrite(sink, produce, "state", {"v": VERSION + 1, "future": True})

    report = sink.try_run()

    assert report.error["type"] == "StateError"
    assert f"version {VERSION + 1}" in report.error["message"]
    assert sink.engine.jobs == 1


def test_manifest_of_a_newer_release_stops_the_run_and_stays(make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, numbered(0, 3)[0])
    sink = make_sink(topic)
    sink.run()
    overwrite(sink, produce, "manifest", {"v": 99})

    reports = [sink.try_run(), sink.try_run()]

    assert [r.error["type"] for r in reports] == ["StateError", "StateError"]
    assert "manifest" in reports[0].error["message"]


def test_damaged_state_stops_the_run(make_topic, produce, make_sink):
    topic = make_topic()
    sink = make_sink(topic)
    sink.run()
    overwrite(sink, produce, "state", "{not json")

    assert sink.try_run().error["type"] == "StateError"


def test_state_remembers_offsets_topic_ids_and_bytes_per_record(make_topic, produce, make_sink):
    topic = make_topic(partitions=2)
    produce(topic, numbered(0, 10, 2)[0])
    sink = make_sink(topic)
    sink.run()

    state = sink.view().state

    assert {tp.partition: offset for tp, offset in state.committed.items()} == {0: 5, 1: 5} == sink.offsets()
    assert list(state.topic_ids) == [topic]
    assert state.bytes_per_record[topic] == len(b'{"n":1}\n')
    assert (state.phase, state.leftovers) == ("closed", ())


def test_offsets_are_committed_again_once_a_day(make_topic, produce, make_sink, monkeypatch):
    """Kafka drops the offsets of a group without commits after a week."""
    from airflow_connect.runtime.driver.sink import run

    topic = make_topic()
    produce(topic, numbered(0, 3)[0])
    sink = make_sink(topic)
    sink.run()
    later = run.now_ms() + 25 * 3_600_000
    monkeypatch.setattr(run, "now_ms", lambda: later)

    report = sink.run()

    assert (report.status, report.committed) == ("empty", {f"{topic}-0": 3})
    assert sink.run().committed == {}


def test_manifest_and_history_hold_no_secrets(make_topic, produce, make_sink, steps):
    topic = make_topic()
    produce(topic, numbered(0, 3)[0])
    sink = make_sink(topic)
    seen = []
    steps.on("manifest.written", lambda: seen.append(json.dumps(sink.view().manifest.to_json())))

    sink.run()

    assert sink.s3.secret_key not in seen[0]
    assert "s3.bucket.name" in seen[0]

"""Offsets of a sink that are set or deleted by hand: fenced like a run, refused while a run publishes."""

import pytest
from confluent_kafka import Consumer, TopicPartition

from airflow_connect.errors import ConfigError, NotStoppedError, OffsetError, RetriableError
from airflow_connect.runtime.crash_points import AUDITED, MANIFEST_WRITTEN
from airflow_connect.runtime.driver.entry import reset_offsets, set_offsets
from tests.support.copies.s3 import numbered
from tests.support.steps import Crashed, Frozen


@pytest.fixture
def copied(make_topic, produce, make_sink):
    """A connector that has copied 10 records of each of two partitions; their times are 1 to 20 seconds."""
    topic = make_topic(partitions=2)
    produce(topic, [(n % 2, f"key-{n}", f'{{"n": {n}}}', n * 1000 + 1000) for n in range(20)])
    sink = make_sink(topic)
    sink.run()
    return sink


def test_offsets_are_set_by_number_time_and_end_and_the_next_run_starts_there(copied):
    a, b = f"{copied.topic}-0", f"{copied.topic}-1"

    done = set_offsets(copied.spec(), {a: "7", b: "1970-01-01T00:00:17Z"})

    assert done.to_json() == {
        "connector": copied.name,
        "altered": 2,
        "before": {a: 10, b: 10},
        "after": {a: 7, b: 8},  # 18 s is the first record at or after 17 s
    }
    assert copied.offsets() == {0: 7, 1: 8}
    assert copied.run(topics_dir="again").records == 5
    assert set_offsets(copied.spec(), "latest").altered == 0
    assert set_offsets(copied.spec(), "earliest").after == {a: 0, b: 0}
    rest = [{"partition": {"kafka_topic": copied.topic, "kafka_partition": "1"}, "offset": {"kafka_offset": 4}}]
    assert set_offsets(copied.spec(), rest).after == {b: 4}
    assert copied.offsets() == {0: 0, 1: 4}


def test_reset_offsets_are_forgotten_by_group_and_state(copied):
    a, b = f"{copied.topic}-0", f"{copied.topic}-1"

    some = reset_offsets(copied.spec(), [a])

    assert (some.before, some.after) == ({a: 10}, {a: None})
    assert copied.offsets() == {1: 10}
    every = reset_offsets(copied.spec())
    assert every.after == {a: None, b: None}
    assert copied.offsets() == {}
    assert copied.view().state.committed == {}
    assert reset_offsets(copied.spec()).altered == 0
    assert copied.run(topics_dir="again").records == 20


def test_crash_between_deleting_and_writing_again_loses_no_offset(copied, monkeypatch):
    from airflow_connect.runtime.driver.offsets import of_sinks

    delete = of_sinks.consumer_group.delete_group

    def delete_and_die(admin, group):
        delete(admin, group)
        raise KeyboardInterrupt

    monkeypatch.setattr(of_sinks.consumer_group, "delete_group", delete_and_die)
    with pytest.raises(KeyboardInterrupt):
        reset_offsets(copied.spec(), [f"{copied.topic}-0"])
    assert copied.offsets() == {}

    report = copied.run(topics_dir="again")

    assert report.records == 10
    assert any(f"no offset for {copied.topic}-1 any more; resumed at 10" in note for note in report.notes)


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ({"{topic}-1": 99}, OffsetError, "Offset 99 of {topic}-1 is outside the log, which holds [0, 10)"),
        ({"{topic}-5": 1}, OffsetError, "has 2 partitions, and {topic}-5 is not one of them"),
        ({"{topic}s-0": 1}, OffsetError, "does not read topic {topic}s"),
        ({"{topic}-0": "soon"}, ConfigError, "offsets of {topic}-0 is 'soon'"),
        ({"{topic}": 1}, ConfigError, "does not name a partition"),
        ([{"partition": {}, "offset": None}], ConfigError, "REST API"),
        (True, ConfigError, "offsets is True"),
    ],
)
def test_wrong_position_is_refused_with_its_partition(copied, given, kind, words):
    if isinstance(given, dict):
        given = {key.format(topic=copied.topic): value for key, value in given.items()}

    with pytest.raises(kind) as raised:
        set_offsets(copied.spec(), given)

    assert words.format(topic=copied.topic) in str(raised.value)
    assert copied.offsets() == {0: 10, 1: 10}


def test_alteration_fences_a_run_that_copies(copied, produce):
    produce(copied.topic, numbered(20, 24, 2)[0])
    running = Frozen.while_copying(copied)

    set_offsets(copied.spec(), {f"{copied.topic}-0": 9})
    report = running.thaw()

    assert report.error["code"] == "run.fenced"
    assert copied.offsets() == {0: 9, 1: 10}
    assert copied.uploads() == []
    assert copied.run(topics_dir="again").records == 5


def test_alteration_is_refused_while_a_run_publishes_and_does_not_disturb_it(copied, produce, steps):
    produce(copied.topic, numbered(20, 24, 2)[0])
    running = Frozen.at(steps, "manifest.written", copied)

    with pytest.raises(RetriableError) as refused:
        reset_offsets(copied.spec())
    report = running.thaw()

    assert refused.value.code == "offset.run_unfinished"
    assert report.status == "done"
    assert copied.offsets() == {0: 12, 1: 12}


def test_alteration_is_refused_while_a_worker_is_a_member_of_the_group(copied, kafka):
    from confluent_kafka import Consumer

    settings = {"bootstrap.servers": kafka.bootstrap, "group.id": f"connect-{copied.name}", "client.id": "worker-1"}
    worker = Consumer(settings)
    worker.subscribe([copied.topic])
    while not worker.assignment():
        worker.poll(0.1)
    try:
        with pytest.raises(NotStoppedError, match="worker-1"):
            set_offsets(copied.spec(), 0)
    finally:
        worker.close()
    assert copied.offsets() == {0: 10, 1: 10}


def test_offset_that_a_tool_sets_while_a_run_copies_is_not_overwritten(copied, produce, steps):
    produce(copied.topic, [(0, "key", '{"n": 20}')])
    steps.on(AUDITED, lambda: commit(copied, {0: 3}))

    refused = copied.try_run()
    between = (copied.offsets(), len(copied.values()))
    report = copied.run(topics_dir="again")

    assert (refused.error["code"], refused.error["retriable"]) == ("offset.changed_meanwhile", True)
    assert f"The offset of {copied.topic}-0 in group connect-{copied.name} was 10" in refused.error["message"]
    assert "is 3 now" in refused.error["message"]
    assert between == ({0: 3, 1: 10}, 20)
    assert report.records == 8


def test_offset_that_a_tool_sets_while_a_first_run_copies_is_not_overwritten(make_topic, produce, make_sink, steps):
    topic = make_topic()
    produce(topic, numbered(0, 5)[0])
    sink = make_sink(topic)
    steps.on(AUDITED, lambda: commit(sink, {0: 3}))

    refused = sink.try_run()

    assert "did not exist when this run was planned, and is 3 now" in refused.error["message"]
    assert sink.run().records == 2


def test_offset_that_a_tool_sets_after_a_crash_is_named_when_the_manifest_is_closed(copied, produce, steps):
    produce(copied.topic, [(0, "key", '{"n": 20}')])
    steps.crash(MANIFEST_WRITTEN)
    with pytest.raises(Crashed):
        copied.try_run()
    commit(copied, {0: 3})

    report = copied.run()

    (note,) = [note for note in report.notes if "Another client" in note]
    assert f"the offset of {copied.topic}-0 in group connect-{copied.name} to 3" in note
    assert "the offset after them, 11, replaces it" in note
    assert copied.offsets() == {0: 11, 1: 10}
    assert len(copied.values()) == 21


def commit(sink, offsets):
    """Set offsets as Kafka's own tools do."""
    client = Consumer({"bootstrap.servers": sink.kafka.bootstrap, "group.id": f"connect-{sink.name}"})
    places = [TopicPartition(sink.topic, partition, offset) for partition, offset in offsets.items()]
    client.commit(offsets=places, asynchronous=False)
    client.close()

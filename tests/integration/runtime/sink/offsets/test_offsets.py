"""Where a run starts when the committed offset is missing, too old, or of another topic of the same name."""

import pytest
from confluent_kafka.admin import AdminClient

from tests.support.copies.s3 import numbered
from tests.support.kafka_data import create_topic, delete_records, delete_topic
from tests.support.waiting import wait_until


@pytest.fixture
def expired(kafka, make_topic, produce, make_sink):
    """A connector that committed 3 of 10 records; the log now begins at 6."""
    topic = make_topic()
    produce(topic, numbered(0, 10)[0])
    sink = make_sink(topic)
    sink.run(run_max_records="3")
    delete_records(kafka.bootstrap, topic, 0, 6)
    return sink


def test_offset_below_the_log_start_fails_with_both_values(expired):
    report = expired.try_run()

    assert report.error["type"] == "OffsetError"
    assert f"committed offset 3 of {expired.topic}-0" in report.error["message"]
    assert "[6, 10)" in report.error["message"]
    assert report.error["configPath"] == "offsets.out.of.range"
    assert expired.offsets() == {0: 3}


@pytest.mark.parametrize(
    ("policy", "copied"), [("earliest", range(6, 10)), ("nearest", range(6, 10)), ("latest", range(0))]
)
def test_offset_below_the_log_start_follows_the_policy_and_says_so(expired, policy, copied):
    report = expired.run(offsets_out_of_range=policy)

    assert any("outside the log" in note for note in report.notes)
    assert expired.offsets() == {0: 10}
    expired.assert_exactly_once([{"n": n} for n in [0, 1, 2, *copied]])
    assert expired.run().status == "empty"


@pytest.mark.parametrize(
    ("policy", "copied", "end"), [("earliest", range(4), 4), ("nearest", range(0), 4), ("latest", range(0), 4)]
)
def test_offset_beyond_the_log_end_fails_or_follows_the_policy(make_topic, produce, make_sink, policy, copied, end):
    topic = make_topic()
    produce(topic, numbered(0, 4)[0])
    sink = make_sink(topic)
    sink.set_offsets({0: 9})

    refused = sink.try_run()
    report = sink.run(offsets_out_of_range=policy)

    assert refused.error["type"] == "OffsetError"
    assert "9" in refused.error["message"] and "[0, 4)" in refused.error["message"]
    assert sink.offsets() == {0: end}
    assert report.records == len(copied)
    sink.assert_exactly_once([{"n": n} for n in copied])


def test_group_that_kafka_has_forgotten_is_resumed_from_the_state_record(kafka, make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, numbered(0, 5)[0])
    sink = make_sink(topic)
    sink.run()
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    group = f"connect-{sink.name}"
    admin.delete_consumer_groups([group])[group].result(30)
    produce(topic, numbered(5, 7)[0])

    report = sink.run()

    assert report.records == 2
    assert any(f"no offset for {topic}-0 any more; resumed at 5" in note for note in report.notes)
    assert sink.offsets() == {0: 7}
    sink.assert_exactly_once(numbered(0, 7)[1])


def test_operator_who_sets_offsets_back_gets_the_records_again_under_other_keys_only(make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, numbered(0, 5)[0])
    sink = make_sink(topic)
    sink.run()
    sink.set_offsets({0: 3})

    report = sink.run()

    assert report.records == 2
    assert [v["n"] for v in sink.values()] == [0, 1, 2, 3, 4, 3, 4]


def _recreate(kafka, topic, partitions=1):
    delete_topic(kafka.bootstrap, topic)
    create_topic(kafka.bootstrap, topic, partitions)


def test_recreated_topic_fails_until_the_policy_says_where_to_begin(kafka, make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, numbered(0, 5)[0])
    sink = make_sink(topic, topics_dir="first")
    sink.run()
    _recreate(kafka, topic)
    produce(topic, numbered(5, 8)[0])

    refused = sink.try_run()
    report = sink.run(offsets_out_of_range="earliest", topics_dir="second")

    assert refused.error["type"] == "OffsetError"
    assert "was recreated" in refused.error["message"] and f"{topic}-0@5" in refused.error["message"]
    assert report.records == 3
    sink.assert_exactly_once(numbered(0, 8)[1])
    assert sink.run().status == "empty"


def test_topic_recreated_while_it_is_copied_publishes_nothing(kafka, make_topic, produce, make_sink, steps):
    topic = make_topic()
    produce(topic, numbered(0, 5)[0])
    sink = make_sink(topic)
    steps.on("copied", lambda: _recreate(kafka, topic))

    report = sink.try_run()

    assert report.error["type"] == "OffsetError"
    assert "recreated while it was copied" in report.error["message"]
    assert sink.keys() == []


def test_reset_to_latest_copies_nothing_first_and_then_what_came_since(make_topic, produce, make_sink):
    topic = make_topic(partitions=2)
    produce(topic, numbered(0, 6, 2)[0])
    sink = make_sink(topic, consumer_override_auto_offset_reset="latest")

    first = sink.run()
    produce(topic, numbered(6, 10, 2)[0])
    second = sink.run()

    assert (first.status, sink.engine.jobs) == ("empty", 1)
    assert second.records == 4
    sink.assert_exactly_once(numbered(6, 10)[1])


def test_reset_to_none_names_the_partition_without_an_offset(make_topic, make_sink):
    topic = make_topic()

    report = make_sink(topic, consumer_override_auto_offset_reset="none").try_run()

    assert report.error["type"] == "OffsetError"
    assert f"{topic}-0 has no committed offset" in report.error["message"]


def test_retention_that_overtakes_the_copy_fails_the_run_and_publishes_nothing(
    kafka, make_topic, produce, make_sink, steps
):
    topic = make_topic()
    produce(topic, numbered(0, 10)[0])
    sink = make_sink(topic)
    sink.run(run_max_records="2")
    steps.on("begun", lambda: delete_records(kafka.bootstrap, topic, 0, 7))

    report = sink.try_run()

    assert report.error["type"] == "OffsetError"
    assert f"{topic}-0@2" in report.error["message"]
    assert sink.offsets() == {0: 2}
    wait_until(lambda: sink.run(offsets_out_of_range="nearest").status == "empty", "everything copied")
    sink.assert_exactly_once([{"n": n} for n in (0, 1, 7, 8, 9)])


def test_offset_that_another_client_has_changed_is_named_with_what_is_left_out(make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, numbered(0, 5)[0])
    sink = make_sink(topic)
    sink.run()
    produce(topic, numbered(5, 10)[0])
    sink.set_offsets({0: 8})

    report = sink.run()

    (note,) = [note for note in report.notes if "another client" in note]
    assert f"offset of {topic}-0 is 8, and the last run committed 5: another client has changed it." in note
    assert "The 3 offsets in [5, 8) are not copied by this connector" in note
    assert sink.run().notes == ()

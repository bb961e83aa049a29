"""The shortest way through everything: copy, find nothing more, copy what came since."""

import json

from tests.support.copies.s3 import numbered


def test_run_copies_everything_and_a_second_run_nothing(make_topic, produce, make_sink):
    topic = make_topic(partitions=3)
    values = [{"n": n, "text": f"value {n}"} for n in range(100)]
    produce(topic, [(n % 3, str(n), json.dumps(v)) for n, v in enumerate(values)])
    sink = make_sink(topic)

    first = sink.run()
    second = sink.run()

    assert first.records == 100
    assert first.status == "done"
    assert second.status == "empty"
    assert sink.offsets() == {0: 34, 1: 33, 2: 33}
    sink.assert_exactly_once(values)
    assert sink.keys() == [f"topics/{topic}/partition={p}/{topic}+{p}+0000000000.json" for p in range(3)]


def test_later_records_go_to_objects_that_begin_at_the_committed_offset(make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, [(0, None, json.dumps({"n": n})) for n in range(5)])
    sink = make_sink(topic)
    sink.run()
    produce(topic, [(0, None, json.dumps({"n": n})) for n in range(5, 8)])

    report = sink.run()

    assert report.records == 3
    assert sink.keys()[-1].endswith("+0+0000000005.json")
    sink.assert_exactly_once([{"n": n} for n in range(8)])


def test_mistake_in_the_keys_of_a_converter_is_found_before_anything_is_copied(make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, numbered(0, 3)[0])
    sink = make_sink(topic, value_converter="AvroConverter")

    report = sink.try_run()

    assert (report.status, report.error["configPath"]) == ("failed", "value.converter.schema.registry.url")
    assert sink.engine.jobs == 0
    assert sink.keys() == []


def test_second_connector_with_the_group_of_the_first_names_what_it_does_not_copy(make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, numbered(0, 5)[0])
    group = f"shared-{topic}"
    first = make_sink(topic, consumer_override_group_id=group)
    second = make_sink(topic, consumer_override_group_id=group)
    assert not any(group in note for note in first.run().notes)

    told, later = second.run(), second.run()

    (note,) = [note for note in told.notes if group in note]
    assert f"{topic}-0@5. The 5 offsets before it that Kafka still holds are not copied" in note
    assert not any(group in note for note in later.notes)

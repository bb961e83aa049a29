"""Every broken record, through real runs: named when errors are not tolerated, alone in the queue when they are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.integration.broken_records.cases import SETUPS
from tests.integration.connectors.files.s3.objects import records
from tests.integration.runtime.sink.failures.test_errors import read_all
from tests.support.copies.s3 import InProcessEngine

pytestmark = pytest.mark.integration


class RecordByRecord(InProcessEngine):
    """Without the columnar path."""

    def run(self, settings, tasks):
        return super().run(replace(settings, columnar=False), tasks)


WAYS = [
    pytest.param((name, way), id=f"{name}, {way}")
    for name, setup in SETUPS.items()
    for way in (("in columns", "record by record") if setup.columnar else ("record by record",))
]


@pytest.fixture(params=WAYS)
def setup_and_engine(request):
    name, way = request.param
    return SETUPS[name], InProcessEngine() if way == "in columns" else RecordByRecord()


@pytest.fixture
def mixed(request, make_topic, produce, make_sink, unique_name):
    """`(setup, engine) -> sink, offsets of broken records by name, odd ones by name`: each between good records."""

    def make(setup, engine):
        topic = make_topic()
        good = list(setup.good)
        rows, broken, odd = [], {}, {}
        for names, offsets in ((setup.broken, broken), (setup.odd, odd)):
            for name, value in names.items():
                rows.append((0, b"good", good.pop()))
                offsets[name] = len(rows)
                rows.append((0, name, value, 1_700_000_000_000 + len(rows), [("name", name.encode())]))
        rows += [(0, b"good", value) for value in good]
        produce(topic, rows)
        sink = make_sink(topic, flush_size="7", errors_deadletterqueue_topic_name=f"{unique_name}-dlq")
        sink.config.update(setup.config)
        sink.config["errors.deadletterqueue.topic.replication.factor"] = "1"
        sink.config["errors.deadletterqueue.context.headers.enable"] = "true"
        sink.engine = engine
        return sink, broken, odd

    return make


def test_tolerated_broken_records_are_dead_letters_and_their_neighbours_arrive(mixed, setup_and_engine):
    setup, engine = setup_and_engine
    sink, broken, odd = mixed(setup, engine)

    report = sink.run(errors_tolerance="all")

    letters = read_all(sink.kafka.bootstrap, f"{sink.config['errors.deadletterqueue.topic.name']}")
    assert [(m.key().decode(), m.value()) for m in letters] == list(setup.broken.items())
    for letter, (name, offset) in zip(letters, broken.items(), strict=True):
        told = {header: value.decode() for header, value in letter.headers()}
        assert told["name"] == name
        assert told["__connect.errors.offset"] == str(offset), name
        assert told["__connect.errors.stage"] == setup.stages.get(name, "VALUE_CONVERTER"), name
        assert told["__connect.errors.exception.message"], name
        assert letter.timestamp()[1] == 1_700_000_000_000 + offset
    expected = len(setup.good) + len(odd)
    assert (report.records, report.dead_lettered, report.filtered, report.left) == (expected, len(broken), 0, 0)
    assert len(records(sink)) == expected
    assert sink.offsets() == {0: expected + len(broken)}
    assert sink.uploads() == []


def test_untolerated_broken_record_is_named_and_nothing_is_visible_or_lost(mixed, setup_and_engine):
    setup, engine = setup_and_engine
    sink, broken, _odd = mixed(setup, engine)
    for name, offset in broken.items():
        sink.set_offsets({0: offset - 1})

        report = sink.try_run(run_max_records="2")

        message = report.error["message"]
        assert report.status == "failed", name
        assert f"The record at {sink.topic}-0@{offset} failed in " in message, (name, message)
        assert setup.stages.get(name, "VALUE_CONVERTER") in message, (name, message)
        assert report.error["suggestion"], name
        assert "Traceback" not in message
        assert len(message) < 1000, name
        assert sink.offsets() == {0: offset - 1}, name
    assert (sink.keys(), sink.uploads()) == ([], [])


def test_empty_value_is_a_null_value_as_in_connect(make_topic, produce, make_sink, unique_name):
    topic = make_topic()
    produce(topic, [(0, "a", '{"n": 0}'), (0, "b", b""), (0, "c", '{"n": 1}')])
    sink = make_sink(topic, errors_tolerance="all", errors_deadletterqueue_topic_name=f"{unique_name}-dlq")
    sink.config["errors.deadletterqueue.topic.replication.factor"] = "1"

    refused = sink.try_run()
    report = sink.run(behavior_on_null_values="ignore")

    assert (refused.error["code"], refused.error["configPath"]) == ("data.null_value", "behavior.on.null.values")
    assert f"{topic}-0@1" in refused.error["message"]
    assert (report.records, report.dead_lettered) == (2, 1)
    assert [(m.key(), m.value()) for m in read_all(sink.kafka.bootstrap, f"{unique_name}-dlq")] == [(b"b", b"")]


TEN_MEGABYTES = 10_000_000


def test_values_of_ten_megabytes_arrive_and_a_broken_one_is_a_dead_letter(make_topic, produce, make_sink, unique_name):
    large = {"max.message.bytes": "12000000"}
    topic = make_topic(config=large)
    queue = make_topic(config=large, name=f"{unique_name}-dlq")
    good = b'{"n": 0, "text": "' + b"x" * TEN_MEGABYTES + b'"}'
    broken = b'{"n": 1, "text": "' + b"y" * TEN_MEGABYTES
    produce(topic, [(0, "a", good), (0, "b", broken), (0, "c", '{"n": 2}')], {"message.max.bytes": 12_000_000})
    sink = make_sink(topic, errors_tolerance="all", errors_deadletterqueue_topic_name=queue)
    sink.config["errors.deadletterqueue.context.headers.enable"] = "true"

    report = sink.run(producer_override_max_request_size="12000000")

    assert (report.records, report.dead_lettered) == (2, 1)
    assert [(row["n"], len(row.get("text", ""))) for row in records(sink)] == [(0, TEN_MEGABYTES), (2, 0)]
    (letter,) = read_all(sink.kafka.bootstrap, queue)
    assert letter.value() == broken
    assert "y" * 100 not in str(letter.headers())


@pytest.mark.parametrize("engine", [InProcessEngine(), RecordByRecord()], ids=["in columns", "record by record"])
def test_only_the_unencodable_record_of_many_is_left_out(make_topic, produce, make_sink, unique_name, engine):
    """It is found long after its neighbours were handed to the encoder, some of them in files that are complete."""
    topic = make_topic(partitions=2)
    setup = SETUPS["envelopes to avro"]
    half = setup.broken["half a surrogate pair"]
    at = {700, 2500, 2501}
    produce(topic, [(n % 2, str(n), half if n in at else setup.good[n % 40]) for n in range(3000)])
    sink = make_sink(topic, flush_size="100", errors_deadletterqueue_topic_name=f"{unique_name}-dlq", tasks_max="2")
    sink.config.update(setup.config)
    sink.config["errors.deadletterqueue.topic.replication.factor"] = "1"
    sink.engine = engine

    report = sink.run(errors_tolerance="all")

    assert (report.records, report.dead_lettered) == (2997, 3)
    assert len(records(sink)) == 2997
    letters = read_all(sink.kafka.bootstrap, f"{unique_name}-dlq")
    assert sorted(int(m.key()) for m in letters) == sorted(at)
    assert sink.uploads() == []

"""Transformations and predicates in whole runs: what lands where, what is counted, what a crash leaves."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from airflow_connect.runtime import crash_points
from tests.integration.connectors.files.s3.objects import contents
from tests.integration.connectors.files.s3.transformations import Doubling
from tests.integration.runtime.sink.failures.test_errors import read_all
from tests.support.copies.s3 import InProcessEngine, numbered
from tests.support.steps import Crashed, Steps

pytestmark = pytest.mark.integration

HERE = "tests.integration.connectors.files.s3.transformations"
DAY_MS = 86_400_000
TO_MERGED = {
    "transforms": "merge",
    "transforms.merge.type": "org.apache.kafka.connect.transforms.RegexRouter",
    "transforms.merge.regex": "(.*)-(left|right)",
    "transforms.merge.replacement": "$1-merged",
}
BY_DAY = {
    "transforms": "day",
    "transforms.day.type": "org.apache.kafka.connect.transforms.TimestampRouter",
    "transforms.day.topic.format": "${topic}-${timestamp}",
    "transforms.day.timestamp.format": "yyyyMMdd",
}
BY_LETTER = {"transforms": "letter", "transforms.letter.type": f"{HERE}:ByLetter"}
ROUTERS = {"regex": TO_MERGED, "timestamp": BY_DAY}


class CountingEngine(InProcessEngine):
    """Remembers what its tasks opened and closed."""

    def run(self, settings, tasks):
        before = len(Doubling.configured), len(Doubling.closed)
        reports = super().run(settings, tasks)
        self.configured, self.closed = Doubling.configured[before[0] :], Doubling.closed[before[1] :]
        return reports


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """Actions at the named steps of the runs of this test."""
    return Steps(monkeypatch)


@pytest.fixture
def two_topics(make_topic, produce, make_sink, unique_name):
    """A connector that merges two topics of ten records, two partitions each."""
    names = [make_topic(partitions=2, name=f"{unique_name}-{side}") for side in ("left", "right")]
    produce(names[0], numbered(0, 10, 2)[0])
    produce(names[1], numbered(10, 20, 2)[0])
    return make_sink(",".join(names), **{"flush.size": "3", **TO_MERGED})


def crash(sink, steps, point=crash_points.COPIED):
    """A run that dies at `point`."""
    steps.crash(point)
    with pytest.raises(Crashed):
        sink.try_run()


def test_regex_router_merges_two_topics_whose_files_keep_their_own_coordinates(two_topics, unique_name):
    report = two_topics.run()

    assert report.records == 20
    found = contents(two_topics)
    for number, side in enumerate(("left", "right")):
        for partition in (0, 1):
            first = 10 * number + partition
            values = [{"n": n} for n in range(first, first + 10, 2)]
            folder = f"topics/{unique_name}-merged/partition={partition}/{unique_name}-{side}"
            assert found.pop(f"{folder}+{partition}+0000000000.json") == values[:3]
            assert found.pop(f"{folder}+{partition}+0000000003.json") == values[3:]
        assert two_topics.offsets(f"{unique_name}-{side}") == {0: 5, 1: 5}
    assert found == {}
    assert two_topics.run().status == "empty"


def test_timestamp_router_one_writer_has_files_under_several_topics(make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, [(0, None, json.dumps(n), 1 + n % 2 * DAY_MS) for n in range(6)])
    sink = make_sink(topic, **BY_DAY)

    report = sink.run()

    assert contents(sink) == {
        f"topics/{topic}-19700101/partition=0/{topic}+0+0000000000.json": [0, 2, 4],
        f"topics/{topic}-19700102/partition=0/{topic}+0+0000000001.json": [1, 3, 5],
    }
    assert (report.records, sink.offsets()) == (6, {0: 6})


@pytest.fixture
def six_records(make_topic, produce, unique_name):
    """A topic with two records a day."""
    topic = make_topic(name=f"{unique_name}-left")
    produce(topic, [(0, "abc"[n % 3], json.dumps({"n": n}), 1 + n * DAY_MS // 2) for n in range(6)])
    return topic


@pytest.mark.parametrize("router", ROUTERS.values(), ids=ROUTERS)
def test_crash_between_staging_and_manifest_is_swept_under_renamed_topics(six_records, make_sink, steps, router):
    sink = make_sink(six_records, **router)
    other = sink.second(transforms="")
    crash(other, steps)
    theirs = set(sink.uploads())
    crash(sink, steps)
    ours = set(sink.uploads()) - theirs
    assert ours and not any(key.startswith(f"topics/{six_records}/") for key in ours)

    report = sink.run()

    assert (report.swept, report.records) == (len(ours), 6)
    assert set(sink.uploads()) == theirs != set()
    other.run()
    assert sorted(value["n"] for value in sink.values()) == sorted([*range(6), *range(6)])
    assert sink.uploads() == []


def test_crash_is_swept_under_topics_that_only_a_third_party_knows(six_records, make_sink, steps):
    sink = make_sink(six_records, **BY_LETTER)
    crash(sink, steps)
    left = sink.uploads()

    report = sink.run()

    assert [key.split("/")[1] for key in left] == ["letter-a", "letter-b", "letter-c"]
    assert report.swept == 3
    sink.assert_exactly_once([{"n": n} for n in range(6)])


def test_recopy_of_lost_files_applies_the_transformations_of_the_manifest(two_topics, steps, unique_name):
    crash(two_topics, steps, crash_points.MANIFEST_WRITTEN)
    keys = two_topics.uploads()
    client = two_topics.s3.client()
    for upload in client.list_multipart_uploads(Bucket=two_topics.bucket)["Uploads"]:
        client.abort_multipart_upload(Bucket=two_topics.bucket, Key=upload["Key"], UploadId=upload["UploadId"])
    changed = {"transforms": "gone", "transforms.gone.type": "Filter"}
    without = {key: value for key, value in two_topics.config.items() if not key.startswith("transforms")}

    report = replace(two_topics, config={**without, **changed}, engine=InProcessEngine(), events=[]).run()

    assert report.recovered_run_id
    assert two_topics.keys() == keys
    assert all(key.startswith(f"topics/{unique_name}-merged/") for key in keys)
    two_topics.assert_exactly_once([{"n": n} for n in range(20)])


def test_filter_counts_what_it_drops_and_what_fails_becomes_a_dead_letter(
    kafka, make_topic, produce, make_sink, unique_name
):
    topic, queue = make_topic(), f"{unique_name}-dlq"
    values = ['{"n": 1}', None, '{"n": 2}', "[1]", '{"n": 3}', "no json"]
    produce(topic, [(0, f"k{n}", value) for n, value in enumerate(values)])
    sink = make_sink(
        topic,
        **{
            "transforms": "drop,odd,n",
            "transforms.drop.type": "org.apache.kafka.connect.transforms.Filter",
            "transforms.drop.predicate": "null",
            "transforms.odd.type": "org.apache.kafka.connect.transforms.ExtractField$Value",
            "transforms.odd.field": "n",
            "transforms.odd.predicate": "other",
            "transforms.odd.negate": "true",
            "transforms.n.type": "org.apache.kafka.connect.transforms.InsertHeader",
            "transforms.n.header": "seen",
            "transforms.n.value.literal": "true",
            "predicates": "null,other",
            "predicates.null.type": "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
            "predicates.other.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
            "predicates.other.pattern": "some-other-topic",
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": queue,
            "errors.deadletterqueue.topic.replication.factor": "1",
            "errors.deadletterqueue.context.headers.enable": "true",
        },
    )  # fmt: skip

    report = sink.run()

    assert sink.values() == [1, 2, 3]
    assert (report.records, report.filtered, report.dead_lettered) == (3, 1, 2)
    letters = {letter.key(): dict(letter.headers()) for letter in read_all(kafka.bootstrap, queue)}
    assert set(letters) == {b"k3", b"k5"}
    failed = letters[b"k3"]
    assert failed["__connect.errors.stage"] == b"TRANSFORMATION"
    assert failed["__connect.errors.class.name"] == b"org.apache.kafka.connect.transforms.ExtractField$Value"
    assert b"Only Map objects supported in absence of schema for [field extraction]" in failed[
        "__connect.errors.exception.message"
    ]  # fmt: skip
    assert letters[b"k5"]["__connect.errors.stage"] == b"VALUE_CONVERTER"


def test_failure_without_tolerance_names_record_and_stage(make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, [(0, None, '{"n": 1}'), (0, None, "[1]")])
    sink = make_sink(topic, **{"transforms": "n", "transforms.n.type": "ExtractField$Value", "transforms.n.field": "n"})

    report = sink.try_run()

    assert report.status == "failed"
    assert f"{topic}-0@1 failed in TRANSFORMATION" in report.error["message"]
    assert sink.keys() == sink.uploads() == []


def test_topic_that_is_no_legal_name_fails_the_record(make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, numbered(0, 2)[0])
    router = {"transforms": "r", "transforms.r.type": "RegexRouter", "transforms.r.regex": ".*"}
    sink = make_sink(topic, **{**router, "transforms.r.replacement": "../up"})

    report = sink.try_run()

    assert report.status == "failed"
    assert f"{topic}-0@0" in report.error["message"] and "'../up'" in report.error["message"]
    assert report.error["configPath"] == "transforms"
    assert sink.keys() == []


def test_class_of_a_third_party_is_opened_once_per_task_and_closed(make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, numbered(0, 4)[0])
    sink = make_sink(
        topic,
        **{
            "transforms": "twice,thrice",
            "transforms.twice.type": f"{HERE}:Doubling",
            "transforms.thrice.type": f"{HERE}.Doubling",
            "transforms.thrice.times": "3",
            "transforms.thrice.predicate": "odd",
            "predicates": "odd",
            "predicates.odd.type": f"{HERE}:IsOdd",
        },
    )  # fmt: skip
    engine = CountingEngine()

    replace(sink, engine=engine).run()

    sink.assert_exactly_once([{"n": n} for n in (0, 2, 4, 6)])  # doubled numbers are even: none was tripled
    assert (engine.configured, engine.closed) == ([2, 3], [2, 3])
    assert sorted(Doubling.configured) == sorted(Doubling.closed)


def test_class_that_moves_a_record_fails_the_run(make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, numbered(0, 1)[0])

    report = make_sink(topic, **{"transforms": "m", "transforms.m.type": f"{HERE}:Misplacing"}).try_run()

    assert report.status == "failed"
    assert "it changed the offset" in report.error["message"]


WRONG = {
    "variant missing": ({"transforms.a.type": "Cast", "transforms.a.spec": "int8"}, "transforms.a.type", "Cast$Key"),
    "unknown class": ({"transforms.a.type": "Flaten$Value"}, "transforms.a.type", "Flatten$Value"),
    "no predicate": ({"transforms.a.type": "Filter", "transforms.a.negate": "true"}, "transforms.a.type", "negate"),
    "unlisted predicate": (
        {"transforms.a.type": "Filter", "transforms.a.predicate": "q"}, "transforms.a.predicate", "'q'",
    ),
    "path": (
        {
            "transforms.a.type": "ExtractField$Value", "transforms.a.field": "`x",
            "transforms.a.field.syntax.version": "V2",
        },
        "transforms.a.field", "Incomplete backtick pair",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("config", "key", "text"), WRONG.values(), ids=WRONG)
def test_mistake_in_a_transformation_is_found_before_anything_starts(make_sink, config, key, text):
    report = make_sink("nowhere", transforms="a", **config).try_run()

    assert report.status == "failed"
    assert (report.error["type"], report.error["configPath"]) == ("ConfigError", key)
    assert text in report.error["message"] + report.error["suggestion"]

"""Replays: a range is copied again exactly once, and the connector's own offsets and files stay what they are."""

import json
from dataclasses import replace

import pytest

from airflow_connect.errors import ConfigError
from airflow_connect.planning.bounds import approved
from airflow_connect.runtime.driver.entry import plan_connector, run_connector, set_offsets
from airflow_connect.runtime.driver.offsets.replaying import Replay, replay_spec
from tests.support.copies.s3 import numbered
from tests.support.kafka_data import delete_records
from tests.support.steps import Crashed


@pytest.fixture
def copied(make_topic, produce, make_sink):
    """A connector that has copied 10 records of each of two partitions; their times are 1 to 20 seconds."""
    topic = make_topic(partitions=2)
    produce(topic, [(n % 2, f"key-{n}", f'{{"n": {n}}}', n * 1000 + 1000) for n in range(20)])
    sink = make_sink(topic, flush_size="4")
    sink.run()
    return sink


def replayed(sink, start, until=None, name="", **more):
    """One run of a replay, by default to `topics.dir=again`."""
    more = {"into": {"topics.dir": "again"}, **more}
    spec = replay_spec(sink.spec(), Replay(name or f"{sink.name}-replay", start, until, **more))
    report = run_connector(spec, sink.events.append, sink.engine)
    assert report.error is None, report.error["message"]
    return report


def again(sink):
    """Numbers in the replay's place."""
    names = [key for key in sink.identities() if key.startswith("again/")]
    return sorted(json.loads(line)["n"] for key in names for line in sink.body(key).splitlines())


def test_range_is_copied_once_however_often_it_is_replayed(copied, produce):
    before = copied.identities()
    start, until = {f"{copied.topic}-0": 2, f"{copied.topic}-1": "1970-01-01T00:00:11Z"}, {f"{copied.topic}-0": 5}

    first = replayed(copied, start, until)

    assert first.connector == f"{copied.name}-replay"
    assert again(copied) == [4, 6, 8, 11, 13, 15, 17, 19]
    produce(copied.topic, numbered(20, 24, 2)[0])
    assert replayed(copied, start, until).status == "empty"
    assert len(again(copied)) == 8
    assert copied.offsets() == {0: 10, 1: 10}
    assert before.items() <= copied.identities().items()
    assert copied.run().records == 4


def test_range_of_the_first_run_holds_for_all_that_follow(copied, produce, steps):
    steps.crash("manifest.written")
    with pytest.raises(Crashed):
        replayed(copied, "earliest", "latest")
    produce(copied.topic, numbered(20, 24, 2)[0])
    copied.run()

    report = replayed(copied, "earliest", "latest")

    assert report.recovered_run_id
    assert again(copied) == list(range(20))
    with pytest.raises(AssertionError, match="has begun with another range"):
        replayed(copied, "earliest")


def test_limits_divide_a_replay_into_several_runs(copied):
    spec = replay_spec(copied.spec(run_max_records="6"), Replay("r", "earliest", None, {"topics.dir": "again"}))
    spec = replace(spec, connector={**spec.connector, "name": f"{copied.name}-r"})

    reports = [run_connector(spec, copied.events.append, copied.engine).records for _ in range(5)]

    assert reports == [6, 6, 6, 2, 0]
    assert again(copied) == list(range(20))


def test_replay_of_what_was_never_copied_is_empty(make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, numbered(0, 5)[0])
    sink = make_sink(topic)

    assert replayed(sink, "earliest").status == "empty"
    assert replayed(sink, "earliest", "latest", name=f"{sink.name}-all").records == 5


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"start": 3, "into": {}}, "would write where connector"),
        ({"start": 3, "name": "itself"}, "would use group"),
        ({"start": 3, "into": {"topics.dir": "x", "consumer.override.group.id": "own"}}, "would use group"),
    ],
)
def test_replay_that_would_disturb_its_connector_is_refused(copied, arguments, words):
    sink = replace(copied, name="itself", config={**copied.config, "consumer.override.group.id": "own"})
    arguments = {"name": "other", "into": {"topics.dir": "x"}, **arguments}

    with pytest.raises(ConfigError, match=words):
        replay_spec(sink.spec(), Replay(**arguments))


@pytest.mark.parametrize(
    ("start", "until", "words"),
    [
        ({"{t}-7": 1}, None, "{t}-7 is not one of them"),
        ({"{t}-0": 99}, None, "Offset 99 of {t}-0 is outside the log"),
        ({"{t}-0": None}, None, "start has no position for {t}-0"),
        ({"{t}-0": 1}, {"{t}-1": 2}, "until names {t}-1, and start does not"),
    ],
)
def test_wrong_range_is_refused_with_its_partition(copied, start, until, words):
    def of_topic(given):
        return {key.format(t=copied.topic): value for key, value in given.items()} if given else given

    with pytest.raises(AssertionError) as raised:
        replayed(copied, of_topic(start), of_topic(until))

    assert words.format(t=copied.topic) in str(raised.value)


def test_replay_to_the_same_place_writes_missing_objects_and_leaves_equal_ones(copied):
    everything, whole = copied.values(), copied.identities()
    gone = next(key for key in whole if key.endswith("+0+0000000004.json"))
    copied.s3.client().delete_object(Bucket=copied.bucket, Key=gone)

    report = replayed(copied, "earliest", into={}, allow_same_place=True)

    assert report.files == 6
    copied.assert_exactly_once(everything)
    assert {k: v for k, v in copied.identities().items() if k != gone} == {k: v for k, v in whole.items() if k != gone}


def test_replay_to_the_same_place_never_replaces_an_object_that_differs(copied, make_topic):
    """Files end where a run ended, so a replay over several runs may cut them elsewhere."""
    before = copied.identities()
    spec = replay_spec(
        copied.spec(flush_size="5"), Replay(f"{copied.name}-same", "earliest", into={}, allow_same_place=True)
    )

    report = run_connector(spec, copied.events.append, copied.engine)

    assert report.error["code"] == "publish.conflict"
    assert before.items() <= copied.identities().items()


def test_replay_to_the_same_place_ends_where_the_connector_will_go_on(copied, produce):
    produce(copied.topic, numbered(20, 24, 2)[0])

    with pytest.raises(AssertionError, match="has copied it only up to 10"):
        replayed(copied, 8, "latest", into={}, allow_same_place=True)


def test_approved_plan_bounds_a_run(copied, produce):
    produce(copied.topic, numbered(20, 24, 2)[0])
    plan = plan_connector(copied.spec())
    produce(copied.topic, numbered(24, 30, 2)[0])

    spec = replace(copied.spec(), bounds=approved(plan.to_json()).to_json())

    assert run_connector(spec, copied.events.append, copied.engine).records == 4
    assert run_connector(spec, copied.events.append, copied.engine).status == "empty"
    set_offsets(copied.spec(), {f"{copied.topic}-0": 3})
    report = run_connector(spec, copied.events.append, copied.engine)
    assert report.error["code"] == "offset.plan_outdated"
    assert copied.offsets() == {0: 3, 1: 12}


def test_approved_plan_without_ranges_begins_where_latest_was(make_topic, produce, make_sink):
    topic = make_topic(partitions=2)
    produce(topic, numbered(0, 4, 2)[0])
    sink = make_sink(topic, consumer_override_auto_offset_reset="latest")
    plan = json.loads(json.dumps(plan_connector(sink.spec()).to_json()))
    produce(topic, numbered(4, 10, 2)[0])

    bound = run_connector(replace(sink.spec(), bounds=approved(plan).to_json()), sink.events.append, sink.engine)

    assert (bound.status, sink.offsets()) == ("empty", {0: 2, 1: 2})
    assert "the 4 offsets before its end are not copied" in plan["notes"][0]
    assert sink.run().records == 6


def test_approved_plan_that_begins_before_the_run_is_told(kafka, make_topic, produce, make_sink):
    sink = make_sink(make_topic())
    produce(sink.topic, numbered(0, 10)[0])
    bounds = approved(plan_connector(sink.spec()).to_json()).to_json()
    delete_records(kafka.bootstrap, sink.topic, 0, 4)

    report = run_connector(replace(sink.spec(), bounds=bounds), sink.events.append, sink.engine)

    assert report.records == 6
    assert any(f"begins at {sink.topic}-0@0, and the run at 4" in note for note in report.notes)

"""What dead runs staged is discarded; what anybody else stages in the same bucket stays."""

import threading
from dataclasses import replace

import pytest

from airflow_connect.api.publishing import SWEEPS
from airflow_connect.runtime import crash_points
from airflow_connect.runtime.executor.task import run_task
from airflow_connect.stores.s3.publish import S3Publisher
from tests.devstack.s3_faults import Fault, Rule, S3FaultProxy
from tests.support.copies.s3 import InProcessEngine, numbered
from tests.support.steps import Crashed, Frozen

HOURLY = {
    "partitioner_class": "io.confluent.connect.storage.partitioner.HourlyPartitioner",
    "locale": "en-US",
    "timezone": "UTC",
}
OTHERS = {
    "other directory": {"topics_dir": "elsewhere"},
    "directory below": {"topics_dir": "topics/below"},
    "other partitioner": HOURLY,
    "other format": {
        "format_class": "io.confluent.connect.s3.format.bytearray.ByteArrayFormat",
        "value_converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    },
    "other delimiter": {"file_delim": "_"},
}


@pytest.fixture
def sink(make_topic, produce, make_sink):
    """A connector with 30 records in 3 partitions."""
    topic = make_topic(partitions=3)
    produce(topic, numbered(0, 30, 3)[0])
    return make_sink(topic, flush_size="4")


def crash(sink, steps, point=crash_points.COPIED):
    """A run that dies at `point`."""
    steps.crash(point)
    with pytest.raises(Crashed):
        sink.try_run()


@pytest.mark.parametrize("difference", OTHERS.values(), ids=OTHERS)
def test_open_uploads_of_another_connector_on_the_same_topic_stay(sink, steps, difference):
    other = sink.second(**difference)
    crash(other, steps)
    theirs = set(sink.uploads())
    crash(sink, steps)
    ours = set(sink.uploads()) - theirs

    report = sink.run()

    assert len(ours) == 9
    assert report.swept == 9
    assert set(sink.uploads()) == theirs != set()


def test_open_uploads_of_people_stay(sink, steps):
    client = sink.s3.client()
    strange = [
        f"topics/{sink.topic}/partition=0/{sink.topic}+0+0000000000.json.bak",
        f"topics/{sink.topic}/partition=0/notes.txt",
        f"topics/{sink.topic}/partition=0/{sink.topic}+0+0000009999.json",
        f"topics/{sink.topic}-2/partition=0/{sink.topic}-2+0+0000000000.json",
    ]
    for key in strange:
        client.create_multipart_upload(Bucket=sink.bucket, Key=key)
    crash(sink, steps)

    sink.run()

    assert sink.uploads() == sorted(strange)


def test_trial_upload_of_a_run_that_died_in_its_preflight_is_swept(sink, s3, monkeypatch):
    def die(*_):
        raise Crashed

    monkeypatch.setattr("airflow_connect.stores.s3.requests.S3Requests.abort_upload", die)
    with pytest.raises(Crashed):
        sink.try_run()
    monkeypatch.undo()
    left = sink.uploads()

    sink.run()

    assert len(left) == 1 and "preflight" in left[0]
    sink.assert_exactly_once(numbered(0, 30)[1])


def test_uploads_that_arrive_after_the_sweep_are_swept_by_the_run_after_it(sink, steps):
    """The last requests of a killed process may reach the server late."""
    crash(sink, steps, crash_points.BEGUN)
    late = f"topics/{sink.topic}/partition=0/{sink.topic}+0+0000000004.json"
    steps.on(
        crash_points.RECOVERED,
        lambda: sink.s3.client().create_multipart_upload(Bucket=sink.bucket, Key=late),
    )
    sink.run()
    left = sink.uploads()

    report = sink.run()

    assert left == [late]
    assert (report.status, report.swept) == ("empty", 1)
    sink.assert_exactly_once(numbered(0, 30)[1])


def test_fenced_run_takes_away_what_it_staged_after_the_sweep_of_its_successor(sink, steps):
    frozen = Frozen.at(steps, crash_points.BEGUN, sink)
    replace(sink, events=[]).run()

    report = frozen.thaw()

    assert report.error["type"] == "FencedError"
    sink.assert_exactly_once(numbered(0, 30)[1])


def test_leftovers_in_a_bucket_that_the_configuration_no_longer_names_are_mentioned(sink, steps, s3):
    crash(sink, steps)
    other = replace(sink, bucket=f"{sink.bucket}-new", events=[])
    s3.client().create_bucket(Bucket=other.bucket)

    other.run()

    assert any(f"s3://{sink.bucket}" in warning for warning in other.warnings())
    assert len(sink.uploads()) == 9
    other.assert_exactly_once(numbered(0, 30)[1])


def test_leftovers_of_a_run_with_another_directory_are_found_by_its_own_pattern(sink, steps):
    crash(sink, steps)

    report = sink.run(topics_dir="elsewhere")

    assert report.swept == 9
    sink.assert_exactly_once(numbered(0, 30)[1])


@pytest.mark.parametrize("is_preflight", [False, True], ids=["file", "preflight"])
def test_upload_whose_answer_was_lost_does_not_stay(sink, s3, is_preflight):
    """The server made an upload and nobody learned its id: only a listing finds it."""
    with S3FaultProxy.start(s3.endpoint_url) as proxy:
        once = threading.Event()
        proxy.add(
            Rule(
                Fault.LOSE_ANSWER,
                "CreateMultipartUpload",
                matches=lambda request: ("preflight" in request.key) == is_preflight,
                on_hit=lambda _: once.set(),
            )
        )
        report = sink.run(store_url=proxy.endpoint_url)

    assert once.is_set()
    assert (report.records, report.swept) == (30, 1)
    sink.assert_exactly_once(numbered(0, 30)[1])


class LateEngine(InProcessEngine):
    """Has copies of tasks, as Spark's speculation makes them, of which one stages when the test says so."""

    may_leave_duplicates = True

    def run(self, settings, tasks):
        self.stage_late = lambda: [run_task(settings, task, attempt=1) for task in tasks]
        return super().run(settings, tasks)


def test_attempt_that_stages_after_the_commit_is_swept_by_a_later_run(every_sink, produce):
    every_sink.engine = engine = LateEngine()
    every_sink.run()
    engine.stage_late()
    left = every_sink.uploads()
    produce(every_sink.topic, numbered(30, 36, 3)[0])
    second = every_sink.run()
    stage_second_late = engine.stage_late
    every_sink.run()
    stage_second_late()

    last = every_sink.run()

    assert (len(left), second.swept, last.swept) == (9, 9, 3)
    every_sink.assert_exactly_once(numbered(0, 36)[1])


def test_late_attempts_are_looked_for_by_a_bounded_number_of_runs(sink):
    sink.engine = LateEngine()
    sink.run()
    client = sink.s3.client()
    foreign = f"topics/{sink.topic}/partition=0/{sink.topic}+0+0000000000.json.bak"
    client.create_multipart_upload(Bucket=sink.bucket, Key=foreign)

    looked = []
    while sink.view().state.leftovers:
        looked.append(sink.run().status)

    assert looked == ["empty"] * SWEEPS
    assert sink.uploads() == [foreign]


def test_run_without_duplicates_leaves_nothing_to_look_for(sink):
    sink.run()

    assert sink.view().state.leftovers == ()


def test_sweep_of_a_run_that_was_frozen_takes_nothing_from_the_run_that_took_over(sink, steps):
    crash(sink, steps)
    listed = S3Publisher.list_staged

    def hold(stand):
        def stand_then_list(publisher, prefixes):
            steps_monkeypatch.undo()
            stand()
            return listed(publisher, prefixes)

        steps_monkeypatch.setattr(S3Publisher, "list_staged", stand_then_list)

    with pytest.MonkeyPatch.context() as steps_monkeypatch:
        frozen = Frozen(sink, hold)
        newer = Frozen.at(steps, crash_points.COPIED, replace(sink, events=[]))
        staged = sink.uploads()

        report = frozen.thaw()

        assert report.error["type"] == "FencedError"
        assert sink.uploads() == staged
        assert newer.thaw().records == 30
    sink.assert_exactly_once(numbered(0, 30)[1])

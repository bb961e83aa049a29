"""Looks at connectors and topics of a real broker: what is answered, and that nothing is touched."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.errors import ConfigError, ConnectError, OffsetError, TaskFailedError, UnavailableError
from airflow_connect.kafka.admin.consumer_group import group_state
from airflow_connect.kafka.clients.short_lived import admin_client
from airflow_connect.kafka.state import runs_topic
from airflow_connect.observe.watches.conditions import Condition, LagReaches, RunEnds, TimePassed, TopicsHold
from airflow_connect.observe.watches.observation import Observation
from airflow_connect.observe.watches.reader import Answer, ClusterReader, Watch
from airflow_connect.observe.watches.runs import RunFailedError
from airflow_connect.observe.watches.target import Target, target_of
from airflow_connect.runtime.driver.entry import run_connector
from airflow_connect.runtime.spec import LAST_TRY, RunSpec
from tests.support.copies.local import LocalSink, local_sink
from tests.support.kafka_data import TopicProducer, delete_records, delete_topic
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration

HOUR_MS = 3_600_000
T0 = time.time_ns() // 1_000_000 - 2 * 3_600_000


def rows(count: int, partition: int = 0, at_ms: int = T0) -> list[tuple[Any, ...]]:
    return [(partition, None, json.dumps({"n": n}), at_ms + n) for n in range(count)]


def topics_target(kafka: KafkaBroker, **config: str) -> Target:
    connector = {"name": "any", **{key.replace("_", "."): value for key, value in config.items()}}
    return target_of(RunSpec(connector, {"bootstrap.servers": kafka.bootstrap}))


def ask(reader: ClusterReader, target: Target, condition: Condition) -> Answer:
    """The first answer of a round: the partitions of a new topic may have no leader in the first rounds."""
    answers: list[Answer] = []

    def is_answered() -> bool:
        answers[:] = reader.observe([Watch(target, condition)])
        return not isinstance(answers[0], UnavailableError)

    wait_until(is_answered, "an answer")
    return answers[0]


def look(target: Target, condition: Condition, now_ms: int = T0 + HOUR_MS) -> Answer:
    return ask(ClusterReader(target.cluster, lambda: now_ms), target, condition)


def seen(target: Target, condition: Condition, now_ms: int = T0 + HOUR_MS) -> Observation:
    answer = look(target, condition, now_ms)
    assert isinstance(answer, Observation), answer
    return answer


@pytest.fixture
def sink(kafka: KafkaBroker, tmp_path: Path, make_topic: Callable[..., str]) -> LocalSink:
    return local_sink(kafka, tmp_path, make_topic(2))


def test_lag_is_what_a_run_would_copy_before_and_after_runs(sink: LocalSink, produce: TopicProducer) -> None:
    target = target_of(sink.spec())
    reader = ClusterReader(target.cluster, lambda: T0 + HOUR_MS)

    def lag(**bounds: int) -> Observation:
        answer = ask(reader, target, LagReaches(**bounds))
        assert isinstance(answer, Observation), answer
        return answer

    assert not lag(min_records=1).is_reached
    produce(sink.topic, [*rows(3), *rows(2, partition=1)])
    found = lag(min_records=5, min_age_ms=1)
    assert found.is_reached
    assert found.facts == {
        "connector": sink.name,
        "records": 5,
        "bytes": 1000,  # nothing measured yet: 200 bytes per record, as in a plan
        "age_s": HOUR_MS / 1000,
        "offsets": {f"{sink.topic}-0": [0, 3], f"{sink.topic}-1": [0, 2]},
    }
    found_before = found.position
    assert sink.run().records == 5
    copied = lag(min_records=1)
    assert (copied.is_reached, copied.facts["records"]) == (False, 0)

    produce(sink.topic, rows(2, at_ms=T0 + 60_000))
    assert not lag(min_records=3).is_reached
    assert not lag(min_age_ms=HOUR_MS).is_reached
    found = lag(min_age_ms=HOUR_MS - 60_000)
    assert (found.is_reached, found.facts["age_s"]) == (True, (HOUR_MS - 60_000) / 1000)
    measured = len('{"n": 0}')
    assert (found.facts["records"], found.facts["bytes"]) == (2, 2 * measured)
    again = lag(min_bytes=2 * measured)
    assert again.is_reached
    assert again.position == lag(min_records=1).position != found_before
    assert not lag(min_bytes=2 * measured + 1).is_reached
    # One that is set and reached is enough.
    assert lag(min_bytes=10**9, min_records=2).is_reached


def test_watches_of_one_connector_with_other_topics_share_its_offsets(
    sink: LocalSink, produce: TopicProducer, make_topic: Callable[..., str]
) -> None:
    other = make_topic()
    produce(sink.topic, rows(2))
    produce(other, rows(3))
    both = sink.spec(topics=f"{sink.topic},{other}")
    sink.run(topics=f"{sink.topic},{other}")
    produce(other, rows(1))
    targets = [target_of(spec) for spec in (sink.spec(), sink.spec(topics=other), both)]
    reader = ClusterReader(targets[0].cluster)
    watches = [Watch(target, LagReaches(min_records=1)) for target in targets]
    for asked in (watches[:1], watches[1:], watches):
        answers = reader.observe(asked)
        lags = [answer.facts["records"] for answer in answers if isinstance(answer, Observation)]
        assert lags == [0, 1, 1][-len(asked) :] if len(asked) > 1 else lags == [0]


def test_a_look_creates_no_group_and_no_topic(kafka: KafkaBroker, sink: LocalSink, produce: TopicProducer) -> None:
    produce(sink.topic, rows(1))
    target = target_of(RunSpec(sink.connector(), {**sink.worker(), "runs.storage.topic": f"runs-of-{sink.name}"}))
    assert seen(target, LagReaches(min_records=1, min_age_ms=1)).is_reached
    assert not seen(target, RunEnds()).is_reached
    admin = admin_client({"bootstrap.servers": kafka.bootstrap})
    assert group_state(admin, target.group) == ("dead", ())
    assert f"runs-of-{sink.name}" not in admin.list_topics(timeout=10).topics


def test_records_of_open_transactions_are_no_lag_and_those_of_aborted_ones_have_no_age(
    sink: LocalSink, produce: TopicProducer
) -> None:
    target = target_of(sink.spec())
    produce.transaction(sink.topic, rows(3), "abort")
    wait_until(lambda: seen(target, LagReaches(min_age_ms=1)).facts["records"] == 4, "the marker")
    aborted = seen(target, LagReaches(min_age_ms=1))
    assert (aborted.is_reached, aborted.facts["records"], aborted.facts["age_s"]) == (False, 4, None)
    producer = produce.transaction(sink.topic, rows(2, partition=1), "open")
    assert seen(target, LagReaches(min_age_ms=1)).facts["records"] == 4
    producer.commit_transaction()  # returns before the markers are in the log
    wait_until(lambda: seen(target, LagReaches(min_age_ms=1)).is_reached, "the records to be committed")


def test_offsets_outside_the_log_fail_as_the_next_run_would(
    kafka: KafkaBroker, sink: LocalSink, produce: TopicProducer
) -> None:
    produce(sink.topic, rows(2))
    sink.run()
    produce(sink.topic, rows(4))
    delete_records(kafka.bootstrap, sink.topic, 0, 4)
    assert isinstance(look(target_of(sink.spec()), LagReaches(min_records=1)), OffsetError)
    nearest = sink.spec(offsets_out_of_range="nearest")
    assert seen(target_of(nearest), LagReaches(min_records=1)).facts["records"] == 2


def test_one_watch_that_fails_does_not_concern_the_others(
    kafka: KafkaBroker, make_topic: Callable[..., str], produce: TopicProducer, unique_name: str
) -> None:
    topic = make_topic(name=f"{unique_name}-a")
    produce(topic, rows(1))
    good, missing = topics_target(kafka, topics=topic), topics_target(kafka, topics=f"{unique_name}-none")
    regex, broken = topics_target(kafka, topics_regex=f"{unique_name}-.*"), topics_target(kafka, topics_regex="(")
    watches = [Watch(target, TopicsHold()) for target in (missing, good, regex, broken)]
    answers = ClusterReader(good.cluster).observe(watches)
    assert isinstance(answers[0], ConfigError) and answers[0].code == "config.topic_missing"
    assert [answer.facts for answer in answers[1:3] if isinstance(answer, Observation)] == [
        {"records": 1, "topics": {topic: 1}}
    ] * 2
    assert isinstance(answers[3], ConfigError) and "regular expression" in answers[3].message


def test_cluster_that_does_not_answer_is_unavailable(kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_connect.kafka.clients.short_lived.ensure_reachable.__defaults__", (0.5,))
    target = target_of(RunSpec({"name": "c", "topics": "t"}, {"bootstrap.servers": "127.0.0.1:1"}))
    with pytest.raises(UnavailableError, match=r"127\.0\.0\.1:1"):
        look(target, LagReaches(min_records=1))


def test_topics_hold_records_at_all_or_since_a_time(
    kafka: KafkaBroker, make_topic: Callable[..., str], produce: TopicProducer
) -> None:
    topic = make_topic(2)
    target = topics_target(kafka, topics=topic)
    assert not seen(target, TopicsHold()).is_reached
    produce(topic, [*rows(4), *rows(1, partition=1, at_ms=T0 + HOUR_MS)])
    assert seen(target, TopicsHold(min_records=5)).is_reached
    assert not seen(target, TopicsHold(min_records=6)).is_reached
    assert seen(target, TopicsHold(since_ms=T0 + 2)).facts["records"] == 3
    # Two times at once about the same partitions.
    watches = [Watch(target, TopicsHold(since_ms=ms)) for ms in (T0 + 2, T0 + HOUR_MS, T0 + HOUR_MS + 1)]
    answers = ClusterReader(target.cluster).observe(watches)
    assert [answer.facts["records"] for answer in answers if isinstance(answer, Observation)] == [3, 1, 0]


def test_time_has_passed_when_every_partition_has_a_later_record_or_is_idle(
    kafka: KafkaBroker, make_topic: Callable[..., str], produce: TopicProducer
) -> None:
    topic = make_topic(2)
    target = topics_target(kafka, topics=topic)
    produce(topic, [*rows(2), (1, None, "late", T0 - 5)])
    found = seen(target, TimePassed(T0))
    assert (found.is_reached, found.facts["waiting"]) == (False, [f"{topic}-1"])
    idle = TimePassed(T0, idle_ms=HOUR_MS)
    assert not seen(target, idle, now_ms=T0 + HOUR_MS - 1).is_reached
    found = seen(target, idle, now_ms=T0 + HOUR_MS)
    assert (found.is_reached, found.facts["passed"], found.facts["idle"]) == (True, 1, 1)
    producer = produce.transaction(topic, [(1, None, "open", T0 + 7)], "open")
    assert not seen(target, idle).is_reached, "a partition with an open transaction is not idle"
    producer.commit_transaction()  # returns before the markers are in the log
    wait_until(lambda: seen(target, TimePassed(T0)).is_reached, "the record to be committed")


def test_runs_are_found_by_time_and_by_id_and_one_without_a_commit_has_failed(
    sink: LocalSink, produce: TopicProducer
) -> None:
    target = target_of(sink.spec())
    reader = ClusterReader(target.cluster)

    began = time.time_ns() // 1_000_000
    assert not seen(target, RunEnds(began)).is_reached
    produce(sink.topic, rows(3))
    first = sink.run()
    found = ask(reader, target, RunEnds(began))
    assert isinstance(found, Observation) and found.is_reached
    assert (found.facts["run_id"], found.facts["records"]) == (first.run_id, 3)
    after = ask(reader, target, RunEnds(first.started_ms + 1))
    assert isinstance(after, Observation) and not after.is_reached

    produce(sink.topic, [(0, None, "not JSON", T0)])
    assert sink.try_run().status == "failed"
    still = ask(reader, target, RunEnds(run_id="29991231T000000-000000"))
    assert isinstance(still, Observation) and not still.is_reached, "it may still begin"
    (failed_id,) = {event["run_id"] for event in sink.events if event["event"] == "start"}
    again = sink.run(errors_tolerance="all")
    lost = ask(reader, target, RunEnds(run_id=failed_id))
    assert isinstance(lost, RunFailedError) and failed_id in lost.message and not lost.retriable
    waiting = ask(reader, target, RunEnds(run_id=failed_id, on_failure="wait"))
    assert isinstance(waiting, Observation) and not waiting.is_reached
    for condition in (RunEnds(run_id=again.run_id), RunEnds(run_id=first.run_id)):
        found = ask(reader, target, condition)
        assert isinstance(found, Observation) and found.facts["run_id"] == condition.run_id


def test_run_that_finds_nothing_ends_the_wait_and_one_that_fails_for_good_fails_it_at_once(
    sink: LocalSink, produce: TopicProducer
) -> None:
    target = target_of(sink.spec())
    reader = ClusterReader(target.cluster)

    def told(condition: RunEnds) -> Any:
        return ask(reader, target, condition)

    def run_id() -> str:
        (found,) = {event["run_id"] for event in sink.events if event["event"] == "start"}
        return str(found)

    empty = sink.run()
    for condition in (RunEnds(empty.started_ms), RunEnds(run_id=empty.run_id)):
        found = told(condition)
        assert isinstance(found, Observation) and found.is_reached
        assert [found.facts[name] for name in ("run_id", "status", "records")] == [empty.run_id, "empty", 0]
    later = told(RunEnds(empty.started_ms + 1))
    assert isinstance(later, Observation) and not later.is_reached

    produce(sink.topic, [(0, None, "not JSON", T0)])
    failed = sink.try_run()
    assert failed.error is not None
    for condition in (RunEnds(failed.started_ms), RunEnds(run_id=run_id())):
        found = told(condition)
        assert isinstance(found, RunFailedError), found
        assert f"Run {run_id()} of connector {sink.name} has failed with {failed.error['code']}." in found.message
    for condition in (RunEnds(failed.started_ms, on_failure="wait"), RunEnds(run_id=run_id(), on_failure="wait")):
        found = told(condition)
        assert isinstance(found, Observation) and not found.is_reached

    done = sink.run(errors_tolerance="all")
    found = told(RunEnds(empty.started_ms))
    assert isinstance(found, Observation) and found.facts["run_id"] == done.run_id


@pytest.mark.parametrize(
    ("origin", "is_over"),
    [({}, True), ({"task_id": "t"}, False), ({"task_id": "t", LAST_TRY: "true"}, True)],
    ids=["command-line", "retried", "last-try"],
)
def test_failure_that_a_retry_may_repair_is_waited_through_while_there_are_tries(
    sink: LocalSink, produce: TopicProducer, origin: dict[str, str], is_over: bool
) -> None:
    produce(sink.topic, rows(2))
    spec = replace(sink.spec(), origin=origin)
    report = run_connector(spec, engine=EngineThatLosesItsTasks())
    assert report.error is not None and report.error["retriable"]
    target = target_of(spec)
    found = ask(ClusterReader(target.cluster), target, RunEnds(report.started_ms))
    assert isinstance(found, RunFailedError) is is_over
    by_id = ask(ClusterReader(target.cluster), target, RunEnds(run_id=report.run_id))
    assert isinstance(by_id, RunFailedError), "the next try has another id"


def test_many_runs_that_find_nothing_do_not_make_the_next_one_read_more(
    sink: LocalSink, monkeypatch: pytest.MonkeyPatch, produce: TopicProducer
) -> None:
    monkeypatch.setattr("airflow_connect.exactly_once.kafka_journal.WORTH_A_BOOKMARK", 20)
    runs = {"runs.storage.topic": f"runs-of-{sink.name}", "runs.storage.partitions": "1"}
    sink.worker_config.update(runs)
    produce(sink.topic, rows(1))
    sink.run()
    starts: list[int] = []
    read_from = runs_topic.read_from

    def noting(admin: Any, settings: Any, topic: Any, connector: str, start: int) -> Any:
        found = read_from(admin, settings, topic, connector, start)
        starts.append(found.end - start)
        return found

    monkeypatch.setattr("airflow_connect.exactly_once.kafka_journal.runs_topic.read_from", noting)
    for _ in range(40):
        assert sink.run().status == "empty"
    assert max(starts) < 40, starts
    produce(sink.topic, rows(1))
    assert sink.run().records == 1


class EngineThatLosesItsTasks:
    """Spark gives up; the real one takes minutes to do so."""

    may_leave_duplicates = False

    def run(self, settings: Any, tasks: Any) -> list[Any]:
        raise TaskFailedError("Spark gave up.")

    def progress_host(self) -> str:
        return "127.0.0.1"


def test_reader_learns_of_recreated_topics_and_of_documents_that_nobody_asked_for_before(
    kafka: KafkaBroker, sink: LocalSink, produce: TopicProducer, make_topic: Callable[..., str]
) -> None:
    runs = {"runs.storage.topic": f"runs-of-{sink.name}", "runs.storage.partitions": "1"}
    sink.worker_config.update(runs)
    target = target_of(sink.spec())
    reader = ClusterReader(target.cluster, lambda: T0 + HOUR_MS)
    produce(sink.topic, rows(2))
    oldest = ask(reader, target, LagReaches(min_age_ms=1))
    assert isinstance(oldest, Observation) and oldest.facts["age_s"] == HOUR_MS / 1000
    delete_topic(kafka.bootstrap, sink.topic)
    make_topic(2, name=sink.topic)
    produce(sink.topic, rows(2, at_ms=T0 + 60_000))
    oldest = ask(reader, target, LagReaches(min_age_ms=1))
    assert isinstance(oldest, Observation) and oldest.facts["age_s"] == (HOUR_MS - 60_000) / 1000

    report = sink.run()
    copied = ask(reader, target, LagReaches(min_records=1))
    assert isinstance(copied, Observation) and copied.facts["records"] == 0
    ended = ask(reader, target, RunEnds())
    assert isinstance(ended, Observation) and ended.facts["run_id"] == report.run_id
    delete_topic(kafka.bootstrap, runs["runs.storage.topic"])
    gone = ask(reader, target, RunEnds())
    assert isinstance(gone, Observation) and not gone.is_reached
    produce(sink.topic, rows(1))
    second = sink.run()
    ended = ask(reader, target, RunEnds())
    assert isinstance(ended, Observation) and ended.facts["run_id"] == second.run_id


def test_target_without_topics_is_refused(kafka: KafkaBroker) -> None:
    with pytest.raises(ConnectError, match=r"Neither topics nor topics\.regex is set"):
        topics_target(kafka)

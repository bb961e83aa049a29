"""A run that fails by itself leaves nothing staged: not in S3, not on HDFS, not in a directory, whatever the reason."""

from dataclasses import replace

import pytest

from airflow_connect.errors import AccessError, UnavailableError
from airflow_connect.exactly_once.kafka_journal import KafkaJournal
from airflow_connect.kafka.writing.transaction_steps import CommitUnknownError
from airflow_connect.runtime import crash_points
from airflow_connect.stores.s3 import publish as s3_publish
from tests.support.copies.s3 import numbered
from tests.support.steps import Frozen, HookedEngine

GUARANTEES = ["exactly_once", "at_least_once", "at_most_once"]


@pytest.fixture
def s3_sink(make_topic, produce, make_sink):
    """The same in S3."""
    topic = make_topic(partitions=3)
    produce(topic, numbered(0, 30, 3)[0])
    return make_sink(topic, flush_size="4")


def failed(sink, code, **overrides):
    """A run that fails with this code."""
    report = sink.try_run(**overrides)
    assert report.status == "failed"
    assert report.error["code"] == code, report.error


def test_record_that_cannot_be_converted_leaves_nothing_staged(every_sink, produce):
    produce(every_sink.topic, [(2, None, "broken")])

    report = every_sink.try_run()

    assert f"{every_sink.topic}-2@10" in report.error["message"]
    assert (every_sink.uploads(), every_sink.keys(), every_sink.offsets()) == ([], [], {})


def test_null_value_that_must_not_be_leaves_nothing_staged(every_sink, produce):
    produce(every_sink.topic, [(1, "gone", None)])

    failed(every_sink, "data.null_value", behavior_on_null_values="fail")

    assert every_sink.uploads() == []


def test_failed_audit_leaves_nothing_staged(every_sink):
    def lose_a_record(report):
        first, *rest = report.partitions
        return replace(report, partitions=(replace(first, written=first.written - 1), *rest))

    every_sink.engine = HookedEngine(tamper=lose_a_record)

    failed(every_sink, "audit.mismatch")

    assert (every_sink.uploads(), every_sink.keys()) == ([], [])


def test_too_many_failed_records_leave_nothing_staged(every_sink, produce):
    produce(every_sink.topic, [(p, None, "broken") for p in range(3)])

    failed(every_sink, "data.too_many_errors", errors_tolerance="all", errors_max_records="2")

    assert every_sink.uploads() == []


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("point", [crash_points.COPIED, crash_points.AUDITED])
def test_error_in_any_step_before_the_manifest_leaves_nothing_staged(s3_sink, steps, guarantee, point):
    def refuse():
        raise AccessError("The test is refused.", code="test.no")

    steps.on(point, refuse)

    failed(s3_sink, "test.no", delivery_guarantee=guarantee)

    assert (s3_sink.uploads(), s3_sink.keys()) == ([], [])
    s3_sink.run(delivery_guarantee=guarantee)
    s3_sink.assert_exactly_once(numbered(0, 30)[1])


def test_defect_of_our_own_leaves_nothing_staged(s3_sink, steps):
    def defect():
        raise TypeError("a defect")

    steps.on(crash_points.COPIED, defect)
    with pytest.raises(TypeError):
        s3_sink.try_run()

    assert s3_sink.uploads() == []


def test_job_that_failed_without_reports_is_swept(s3_sink):
    """Spark lost the reports of tasks that had staged everything."""

    def lose():
        raise UnavailableError("The job is gone.", code="test.gone")

    honest, s3_sink.engine = s3_sink.engine, HookedEngine(after=lose)
    failed(s3_sink, "test.gone")
    left = s3_sink.uploads()
    s3_sink.engine = honest
    s3_sink.run()

    assert left == []
    s3_sink.assert_exactly_once(numbered(0, 30)[1])


def test_manifest_that_kafka_refused_leaves_nothing_staged(s3_sink, monkeypatch):
    def refuse(*_):
        raise AccessError("Not authorised.", code="test.no")

    monkeypatch.setattr(KafkaJournal, "write_manifest", refuse)
    failed(s3_sink, "test.no")
    monkeypatch.undo()

    assert s3_sink.uploads() == []
    s3_sink.run()
    s3_sink.assert_exactly_once(numbered(0, 30)[1])


def test_manifest_of_which_nobody_knows_whether_it_was_written_keeps_its_files(s3_sink, monkeypatch):
    def lose_the_answer(journal, manifest):
        honest(journal, manifest)
        raise CommitUnknownError("No answer came.")

    honest = KafkaJournal.write_manifest
    monkeypatch.setattr(KafkaJournal, "write_manifest", lose_the_answer)
    failed(s3_sink, "transaction.unknown")
    monkeypatch.undo()

    assert len(s3_sink.uploads()) == 9
    s3_sink.run()
    assert not any("copying them again" in warning for warning in s3_sink.warnings())
    s3_sink.assert_exactly_once(numbered(0, 30)[1])


def test_open_manifest_keeps_its_files_when_publishing_fails(s3_sink, monkeypatch):
    def refuse(*_):
        raise UnavailableError("The store is away.", code="test.away")

    monkeypatch.setattr(s3_publish.S3Publisher, "publish", refuse)
    failed(s3_sink, "test.away")
    monkeypatch.undo()

    assert len(s3_sink.uploads()) == 9
    s3_sink.run()
    assert not any("copying them again" in warning for warning in s3_sink.warnings())
    s3_sink.assert_exactly_once(numbered(0, 30)[1])


@pytest.mark.parametrize("guarantee", ["at_least_once", "at_most_once"])
def test_publishing_that_fails_halfway_leaves_nothing_staged_without_a_manifest(s3_sink, steps, guarantee):
    def refuse():
        raise UnavailableError("The store is away.", code="test.away")

    steps.on(crash_points.PUBLISHING, refuse, skip=3)

    failed(s3_sink, "test.away", delivery_guarantee=guarantee)

    assert s3_sink.uploads() == []


def test_discarding_that_fails_is_a_warning_and_the_reason_stays(s3_sink, produce, monkeypatch):
    def refuse(*_):
        raise AccessError("You may not abort uploads.", code="test.no")

    def lose():
        raise UnavailableError("The job is gone.", code="test.gone")

    monkeypatch.setattr(s3_publish.S3Publisher, "abort", refuse)
    s3_sink.engine = HookedEngine(after=lose)
    failed(s3_sink, "test.gone")
    monkeypatch.undo()

    assert ["You may not abort uploads" in warning for warning in s3_sink.warnings()] == [True]
    assert len(s3_sink.uploads()) == 9
    s3_sink.engine = HookedEngine()
    assert s3_sink.run().swept == 9
    s3_sink.assert_exactly_once(numbered(0, 30)[1])


def test_run_that_fails_late_takes_nothing_from_the_run_that_took_over(s3_sink):
    """The files of both have the same names: only what stood there before anybody else began is discarded."""

    def lose_the_job(stand):
        def fail():
            stand()
            raise UnavailableError("The job is gone.", code="test.gone")

        return replace(s3_sink, engine=HookedEngine(after=fail))

    older = Frozen(s3_sink, lose_the_job)
    newer = Frozen.while_copying(s3_sink)
    staged = set(s3_sink.uploads())

    report = older.thaw()
    left = set(s3_sink.uploads())

    assert report.error["code"] == "run.fenced"
    assert "The job is gone." in report.error["message"]
    assert left == staged
    assert newer.thaw().records == 30
    s3_sink.assert_exactly_once(numbered(0, 30)[1])


def test_values_of_failed_files_are_copied_by_the_next_run(every_sink, produce):
    produce(every_sink.topic, [(0, None, "broken")])
    failed(every_sink, "data.invalid")

    every_sink.run(errors_tolerance="all")

    every_sink.assert_exactly_once(numbered(0, 30)[1])

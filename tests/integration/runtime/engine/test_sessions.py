"""When sessions start, how many, and what becomes of one whose JVM is gone. A process has one at a time."""

from __future__ import annotations

import os
import signal
import threading

import pytest
from pyspark import accumulators

from airflow_connect.runtime.driver.entry import run_connector
from airflow_connect.runtime.driver.stopping import StoppedError, StopRequest
from airflow_connect.runtime.engine import spark
from airflow_connect.runtime.engine.spark import SparkEngine
from tests.support.processes.proc import children_of, freeze
from tests.support.waiting import wait_until


@pytest.fixture
def opened(monkeypatch):
    """Sessions that were opened, in order."""
    sessions = []

    def count(settings):
        sessions.append(open_session(settings))
        return sessions[-1]

    open_session = spark.open_session
    monkeypatch.setattr(spark, "open_session", count)
    return sessions


def test_empty_plan_starts_no_session_and_no_process(make_topic, make_sink, opened):
    sink = make_sink(make_topic(partitions=2))
    before = children_of(os.getpid())
    with SparkEngine({"spark.master": "local[1]"}) as engine:
        sink.engine = engine
        report = sink.run()
        assert children_of(os.getpid()) == before

    assert report.status == "empty"
    assert opened == []


@pytest.fixture
def slow_accumulators(monkeypatch):
    """Pyspark's server for accumulators ends when this event is set, and not before."""
    may_end, end = threading.Event(), accumulators.AccumulatorTCPServer.shutdown

    def wait(server):
        may_end.wait()
        end(server)

    monkeypatch.setattr(accumulators.AccumulatorTCPServer, "shutdown", wait)
    yield may_end
    may_end.set()


def test_connectors_of_a_command_share_one_session_that_ends_with_the_engine(
    make_topic, fill, make_sink, opened, slow_accumulators, capfd
):
    before = children_of(os.getpid())
    sinks, values = [], []
    with SparkEngine({"spark.master": "local[1]"}) as engine:
        for number in range(2):
            topic = make_topic()
            values.append(fill(topic, 1, 20, first=100 * number))
            sinks.append(make_sink(topic, topics_dir=f"dir-{number}"))
            sinks[-1].engine = engine
            assert sinks[-1].run().records == 20
        jvm = opened[0].gateway.process.pid
        assert jvm in children_of(os.getpid())

    # Here only: the engine has not waited for the accumulators, which no task uses.
    slow_accumulators.set()
    wait_until(lambda: "accumulators-stop" not in {thread.name for thread in threading.enumerate()}, "they have ended")
    assert "Traceback" not in capfd.readouterr().err
    assert len(opened) == 1
    assert children_of(os.getpid()) == before
    sinks[0].assert_exactly_once(values[0] + values[1])


@pytest.mark.budget(20)  # Two sessions.
def test_runs_whose_shared_jvm_was_killed_say_so_and_the_next_ones_copy_everything_once(
    make_topic, fill, make_sink, faults, in_background, opened
):
    sinks, values = [], []
    for number in range(2):
        topic = make_topic()
        values += fill(topic, 1, 10, first=100 * number, at={5: {"do": "hold", "times": 2}})
        sinks.append(make_sink(topic, topics_dir=f"dir-{number}", **faults.config()))
    with SparkEngine({"spark.master": "local[2]"}) as engine:
        for sink in sinks:
            sink.engine = engine
        running = [in_background(sink.try_run) for sink in sinks]
        running[0].until(lambda: len(faults.held()) == 2, "both tasks are at work")
        os.kill(opened[0].gateway.process.pid, signal.SIGKILL)
        failed = [run.result() for run in running]
        faults.release()
        again = [sink.run() for sink in sinks]

    for report in failed:
        assert report.error["type"] == "TaskFailedError"
        assert report.error["message"] == "The JVM of Spark was ended by SIGKILL while a job used it."
    assert ([report.records for report in again], len(opened)) == ([10, 10], 2)
    sinks[0].assert_exactly_once(values)


def test_master_that_spark_does_not_know_fails_the_run_with_a_sentence(make_topic, fill, make_sink):
    topic = make_topic()
    fill(topic, 1, 5)
    sink = make_sink(topic)
    before = children_of(os.getpid())
    with SparkEngine({"spark.master": "local[many]"}) as engine:
        sink.engine = engine
        report = sink.try_run()

    assert report.error["type"] == "TaskFailedError"
    assert report.error["message"].startswith("Spark did not start: ")
    assert "spark.master" in report.error["suggestion"]
    assert "\n" not in report.error["message"]
    assert children_of(os.getpid()) == before


@pytest.mark.budget(20)  # Two sessions.
def test_frozen_jvm_keeps_nobody_waiting_who_cancels_a_run_and_is_replaced(
    make_topic, fill, make_sink, faults, in_background, monkeypatch
):
    monkeypatch.setattr("airflow_connect.runtime.engine.cancelling.ANSWERS_WITHIN_S", 0.5)
    topic = make_topic()
    values = fill(topic, 1, 10, at={5: {"do": "hold", "times": 1}})
    sink = make_sink(topic, **faults.config())
    with SparkEngine({"spark.master": "local[1]"}) as engine:
        sink.engine = engine
        stop = StopRequest()
        spec = sink.spec()
        running = in_background(lambda: run_connector(spec, sink.events.append, engine, stop))
        running.until(lambda: faults.held() != [], "the task is at work")
        freeze(engine._open.gateway.process.pid)
        stop.ask(StoppedError("It was stopped."))
        for _ in range(3):
            engine.cancel(spec.run_id)
        stopped = running.result()
        faults.release()
        report = sink.run()

    assert stopped.error["code"] == "run.stopped"
    assert report.records == 10
    sink.assert_exactly_once(values)


def test_session_of_the_program_around_a_run_is_neither_used_nor_stopped(make_topic, fill, make_sink):
    topic = make_topic()
    values = fill(topic, 1, 10)
    sink = make_sink(topic)
    program = spark.open_session({"spark.master": "local[1]"})
    try:
        with SparkEngine({"spark.master": "local[1]"}) as engine:
            sink.engine = engine
            refused = sink.try_run()
        with SparkEngine({"spark.remote": "sc://127.0.0.1:1"}) as engine:
            sink.engine = engine
            refused_remote = sink.try_run()
        assert program.session.range(3).count() == 3
    finally:
        program.stop()
    with SparkEngine({"spark.master": "local[1]"}) as engine:
        sink.engine = engine
        report = sink.run()

    for failed, key in ((refused, "spark.master"), (refused_remote, "spark.remote")):
        assert (failed.error["code"], failed.error["configPath"]) == ("spark.session_in_use", key)
        assert "in_process=True" in failed.error["suggestion"]
    assert report.records == 10
    sink.assert_exactly_once(values)

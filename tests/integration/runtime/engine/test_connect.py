"""A sink through Spark Connect: no JVM of ours, no sparkContext, executors elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from airflow_connect.runtime.driver.entry import run_connector
from airflow_connect.runtime.driver.process_tree import processes_of
from airflow_connect.runtime.driver.stopping import RunTimeoutError, StopRequest
from airflow_connect.runtime.engine.spark import SparkEngine
from tests.integration.runtime.engine.conftest import progress_of
from tests.support.processes.proc import command_lines, descendants_of
from tests.support.servers.spark import ConnectServer

TOKEN = "hunter2-of-the-server"
FAULTY = "tests.support.faulty_converter:FaultyConverter"


@pytest.fixture(scope="module")
def server():
    with ConnectServer.start() as running:
        yield running


def test_server_copies_and_the_driver_starts_no_java(make_topic, fill, make_sink, server, faults, drive, in_background):
    topic = make_topic(partitions=4)
    values = fill(topic, 4, 200, at={0: {"do": "hold", "times": 1}})
    sink = make_sink(topic, tasks_max="4", **faults.config())

    # With a token pyspark wants TLS, except to the name localhost.
    remote = server.remote.replace("127.0.0.1", "localhost")
    running = in_background(lambda: drive(sink, {"spark.remote": f"{remote}/;token={TOKEN}"}))
    running.until(lambda: faults.held() != [], "a task is at work")
    seen = [line for _, line in command_lines()]
    seen += [Path(f"/proc/{pid}/environ").read_text(errors="replace") for pid in descendants_of(os.getpid())]
    faults.release()
    driven = running.result()

    assert (driven.report.status, driven.report.records) == ("done", 200), driven.log
    said = [line for text in (driven.log, server.log) for line in text.splitlines()]
    assert [line for line in [*seen, *said] if TOKEN in line] == []
    assert progress_of(driven.events)[-1]["done"] == 200
    assert sink.s3.secret_key not in driven.log
    assert sink.s3.secret_key not in server.log
    assert processes_of(driven.token) == []
    sink.assert_exactly_once(values)


def test_task_that_dies_once_is_tried_again_by_the_server_and_the_next_run_copies_what_is_new(
    make_topic, fill, make_sink, server, faults, drive
):
    topic = make_topic(partitions=2)
    values = fill(topic, 2, 100, at={60: {"do": "die", "times": 1}})
    sink = make_sink(topic, tasks_max="2", flush_size="5", **faults.config())

    driven = drive(sink, {"spark.remote": server.remote})

    values += fill(topic, 2, 20, first=100)
    second = drive(sink, {"spark.remote": server.remote})

    assert (driven.report.status, driven.report.records) == ("done", 100), driven.log
    assert faults.taken() == 1
    assert second.report.records == 20
    sink.assert_exactly_once(values)


def test_error_of_a_task_comes_back_through_the_server(make_topic, fill, make_sink, server, faults, drive):
    """The other kinds of errors come back in the same text: tests/integration/runtime/engine/test_local.py."""
    topic = make_topic()
    fill(topic, 1, 10, at={5: {"do": "bug", "times": 99}})
    sink = make_sink(topic, **faults.config())

    driven = drive(sink, {"spark.remote": server.remote})

    message = f"{FAULTY} failed with ZeroDivisionError: a defect of somebody."
    located = f"The record at {topic}-0@5 failed in VALUE_CONVERTER: {message}"
    assert (driven.report.error["type"], driven.report.error["message"]) == ("DataError", located)
    assert sink.keys() == []


@pytest.mark.budget(40)  # a server that starts twice
def test_server_that_is_restarted_during_the_copy_fails_the_run_and_the_next_one_ends_it(
    make_topic, fill, make_sink, server, faults, drive, in_background
):
    topic = make_topic(partitions=2)
    values = fill(topic, 2, 100, at={60: {"do": "hold", "times": 1}})
    sink = make_sink(topic, tasks_max="1", flush_size="5", **faults.config())
    running = in_background(lambda: drive(sink, {"spark.remote": server.remote}))
    running.until(lambda: faults.held() != [], "the task is at work")
    server.kill()
    server.launch()
    faults.release()
    failed = running.result()
    driven = drive(sink, {"spark.remote": server.remote})

    assert failed.report.error["type"] == "TaskFailedError"
    assert driven.report.records == 100
    sink.assert_exactly_once(values)


def test_a_run_that_is_stopped_ends_its_job_at_the_server(
    make_topic, fill, make_sink, server, faults, in_background, monkeypatch
):
    for name in ("SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE", "SPARK_LOCAL_REMOTE"):
        monkeypatch.setenv(name, "")  # pyspark sets them, and programs that other tests start must not inherit them.
        monkeypatch.delenv(name)
    topic = make_topic()
    values = fill(topic, 1, 20, at={7: {"do": "hold", "times": 1}})
    sink, request = make_sink(topic, flush_size="5", **faults.config()), StopRequest()
    with SparkEngine({"spark.remote": server.remote}) as engine:
        spec = sink.spec()
        run = in_background(lambda: run_connector(spec, engine=engine, stop=request))
        run.until(lambda: bool(faults.held()), "a copy in the middle")
        request.ask(RunTimeoutError("It took too long."))
        engine.cancel(spec.run_id)
        assert run.result().error["code"] == "run.timeout"
        faults.release()
        sink.engine = engine
        assert sink.run().records == 20
    # What the task that was cancelled stages late is left to the sweep of a later run: Spark Connect says no end of it.
    assert sorted(value["n"] for value in sink.values()) == [value["n"] for value in values]


def test_session_of_the_program_at_the_same_server_stays_its_own(make_topic, fill, make_sink, server, monkeypatch):
    from pyspark.sql.connect.session import SparkSession

    for name in ("SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE", "SPARK_LOCAL_REMOTE"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    topic = make_topic()
    values = fill(topic, 1, 10)
    sink = make_sink(topic)
    program = SparkSession.builder.remote(server.remote).create()
    try:
        with SparkEngine({"spark.remote": server.remote, "spark.sql.shuffle.partitions": "7"}) as engine:
            sink.engine = engine
            assert sink.run().records == 10
            assert engine._open.session.session_id != program.session_id
        fill(topic, 1, 5)
        with SparkEngine({"spark.master": "local[1]"}) as engine:
            sink.engine = engine
            assert sink.try_run().error["code"] == "spark.session_in_use"
        assert program.conf.get("spark.sql.shuffle.partitions") != "7"
        assert program.range(3).count() == 3
    finally:
        program.stop()
    sink.assert_exactly_once(values)

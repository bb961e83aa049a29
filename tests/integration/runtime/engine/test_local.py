"""A sink on `local[2]`: whole copies, failing tasks, and what comes back of their errors."""

from __future__ import annotations

import os
import subprocess
import sys

import pyspark.worker
import pytest

from airflow_connect.errors import AccessError
from airflow_connect.runtime.engine.spark import SparkEngine
from airflow_connect.stores.s3.publish import S3Publisher
from tests.integration.runtime.engine.conftest import progress_of


def test_topics_of_many_partitions_are_copied_by_several_processes(make_topic, fill, make_sink, local_engine, faults):
    topics = [make_topic(partitions=3), make_topic(partitions=2)]
    values = fill(topics[0], 3, 300) + fill(topics[1], 2, 100, first=300)
    sink = make_sink(",".join(topics), tasks_max="2", **faults.config())
    sink.engine = local_engine

    report = sink.run()

    assert (report.records, report.tasks, report.swept) == (400, 2, 0)
    sink.assert_exactly_once(values)
    assert sink.offsets(topics[0]) == {0: 100, 1: 100, 2: 100}
    assert sink.offsets(topics[1]) == {0: 50, 1: 50}
    # This process opened the converters too, to find mistakes before Spark is started, and converted nothing.
    assert {visitor["pid"] for visitor in faults.visitors()} - {os.getpid()}


def test_tasks_of_a_run_work_side_by_side_in_processes_of_their_own(
    make_topic, fill, make_sink, local_engine, faults, in_background
):
    topic = make_topic(partitions=2)
    values = fill(topic, 2, 20, at={0: {"do": "hold", "times": 2}, 1: {"do": "hold", "times": 2}})
    sink = make_sink(topic, tasks_max="2", **faults.config())
    sink.engine = local_engine

    running = in_background(sink.run)
    running.until(lambda: len(faults.held()) == 2, "both tasks are at work")
    faults.release()
    running.result()

    sink.assert_exactly_once(values)


def test_task_that_fails_once_discards_what_it_staged_and_is_tried_again(
    make_topic, fill, make_sink, local_engine, faults
):
    topic = make_topic(partitions=2)
    # Partition 0 has ended six files of five records before the fault, partition 1 is not disturbed.
    values = fill(topic, 2, 100, at={60: {"do": "unavailable", "times": 1}})
    sink = make_sink(topic, tasks_max="2", flush_size="5", **faults.config())
    sink.engine = local_engine

    report = sink.run()

    assert faults.taken() == 1
    assert report.records == 100
    assert report.swept == 0
    sink.assert_exactly_once(values)


def test_task_whose_process_is_killed_is_tried_again(make_topic, fill, make_sink, local_engine, faults):
    topic = make_topic(partitions=2)
    values = fill(topic, 2, 100, at={60: {"do": "die", "times": 1}})
    sink = make_sink(topic, tasks_max="2", flush_size="5", **faults.config())
    sink.engine = local_engine

    report = sink.run()

    assert faults.taken() == 1
    assert 1 <= report.swept <= 6  # how many had been asked for when the process died is chance
    sink.assert_exactly_once(values)


def test_error_worth_a_retry_comes_back_whole_after_the_last_attempt(make_topic, fill, make_sink, local_engine, faults):
    topic = make_topic()
    fill(topic, 1, 10, at={5: {"do": "unavailable", "times": 99}})
    sink = make_sink(topic, **faults.config())
    sink.engine = local_engine

    report = sink.try_run()

    assert faults.taken() == 4
    assert report.status == "failed"
    assert report.error == {
        "code": "test.away",
        "type": "UnavailableError",
        "message": f"The record at {topic}-0@5 failed in VALUE_CONVERTER: The server of the test is away.",
        "suggestion": "Ask the test why.",
        "configPath": "",
        "retriable": True,
    }
    assert sink.keys() == []
    assert sink.offsets() == {}


@pytest.mark.parametrize("other", ["ends", "is at work"])
def test_failed_job_leaves_nothing_of_the_other_tasks(make_topic, fill, make_sink, local_engine, faults, other):
    """Spark ends a task that is at work seconds after the job has failed: until then it may stage."""
    topic = make_topic(partitions=2)
    hold = {99: {"do": "hold", "times": 99}} if other == "is at work" else {}
    fill(topic, 2, 100, at={60: {"do": "unavailable", "times": 99}, **hold})
    sink = make_sink(topic, tasks_max="2", flush_size="5", **faults.config())
    sink.engine = local_engine

    report = sink.try_run()

    assert report.error["code"] == "test.away"
    assert sink.uploads() == []


def test_reports_of_the_other_tasks_tell_what_to_discard(
    make_topic, fill, make_sink, local_engine, faults, monkeypatch
):
    """Where uploads may not be listed, those that are known are discarded all the same."""

    def refuse(*_):
        raise AccessError("You may not list uploads.", code="test.no")

    monkeypatch.setattr(S3Publisher, "list_staged", refuse)
    topic = make_topic(partitions=2)
    fill(topic, 2, 100, at={60: {"do": "refused", "times": 99}})
    sink = make_sink(topic, tasks_max="2", flush_size="5", **faults.config())
    sink.engine = local_engine

    report = sink.try_run()

    assert report.error["code"] == "test.no"
    assert f"{topic}-0@30" in report.error["message"]
    assert ["You may not list uploads" in warning for warning in sink.warnings()] == [True]
    assert sink.uploads() == []


def test_error_that_would_come_again_ends_the_run_after_one_attempt(make_topic, fill, make_sink, local_engine, faults):
    topic = make_topic()
    fill(topic, 1, 10, at={5: {"do": "refused", "times": 99}})
    sink = make_sink(topic, **faults.config())
    sink.engine = local_engine

    report = sink.try_run()

    assert faults.taken() == 1
    assert report.error == {
        "code": "test.no",
        "type": "AccessError",
        "message": f"The record at {topic}-0@5 failed in VALUE_CONVERTER: The test is refused.",
        "suggestion": "Ask the test why.",
        "configPath": "test.key",
        "retriable": False,
    }


def test_bad_record_is_named_by_its_place(make_topic, fill, make_sink, local_engine, faults):
    topic = make_topic()
    fill(topic, 1, 10, at={5: {"do": "bad", "times": 99}})
    sink = make_sink(topic, **faults.config())
    sink.engine = local_engine

    report = sink.try_run()

    assert report.error["type"] == "DataError"
    assert f"{topic}-0@5" in report.error["message"]
    assert "Traceback" not in report.error["message"]


def test_defect_in_a_task_is_told_in_one_line(make_topic, fill, make_sink, local_engine, faults):
    topic = make_topic()
    fill(topic, 1, 10, at={5: {"do": "bug", "times": 99}})
    sink = make_sink(topic, **faults.config())
    sink.engine = local_engine

    report = sink.try_run()

    assert report.error["type"] == "DataError"
    assert report.error["message"] == (
        f"The record at {topic}-0@5 failed in VALUE_CONVERTER: tests.support.faulty_converter:FaultyConverter failed "
        "with ZeroDivisionError: a defect of somebody."
    )


def test_task_whose_process_dies_every_time_fails_the_run_without_a_java_trace(
    make_topic, fill, make_sink, local_engine, faults
):
    topic = make_topic()
    values = fill(topic, 1, 10, at={5: {"do": "die", "times": 4}})
    sink = make_sink(topic, **faults.config())
    sink.engine = local_engine

    failed = sink.try_run()
    report = sink.run()

    assert failed.error["type"] == "TaskFailedError"
    assert "Python worker" in failed.error["message"]
    assert "\tat " not in failed.error["message"] and ".scala:" not in failed.error["message"]
    assert report.records == 10
    sink.assert_exactly_once(values)


def test_progress_ends_at_the_sums_of_all_tasks(make_topic, fill, make_sink, local_engine):
    topic = make_topic(partitions=3)
    values = fill(topic, 3, 90)
    sink = make_sink(topic, tasks_max="3")
    sink.engine = local_engine

    sink.run()

    shown = progress_of(sink.events)
    sizes = sum(len(str(n)) + len(f'{{"n": {value["n"]}}}') for n, value in enumerate(values))
    assert (shown[-1]["done"], shown[-1]["total"], shown[-1]["bytes"]) == (90, 90, sizes)
    assert [event["done"] for event in shown] == sorted(event["done"] for event in shown)


def test_configuration_with_an_unreachable_driver_address_copies_without_progress(
    make_topic, fill, make_sink, local_engine, monkeypatch
):
    """Executors that cannot reach the driver's address show nothing and lose nothing."""
    monkeypatch.setattr(SparkEngine, "progress_host", lambda self: "no-such-host.invalid")
    topic = make_topic(partitions=2)
    values = fill(topic, 2, 20)
    sink = make_sink(topic)
    sink.engine = local_engine

    sink.run()

    assert progress_of(sink.events) == []
    sink.assert_exactly_once(values)


def test_workers_read_pyspark_from_where_it_is_installed(local_engine):
    def where(batches):
        import sys

        import pyarrow as pa
        import pyspark.worker

        for _ in batches:
            archives = [entry for entry in sys.path if entry.endswith((".zip", ".jar")) and "pyspark" in entry]
            yield pa.RecordBatch.from_pydict({"file": [pyspark.worker.__file__], "archives": [len(archives)]})

    frame = local_engine._get_session().range(0, 1, 1, numPartitions=1)
    (found,) = frame.mapInArrow(where, "file string, archives long").collect()

    assert found.file == pyspark.worker.__file__
    assert found.archives == 0


def test_what_the_daemon_of_workers_imports_starts_no_thread():
    code = "import os, pyspark.worker; print(len(os.listdir('/proc/self/task')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"

"""A sink on a standalone cluster of two workers, one core each."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_connect.runtime.driver.process_tree import processes_of
from tests.integration.runtime.engine.conftest import progress_of
from tests.support.processes.proc import command_lines
from tests.support.servers.spark import WORKERS, StandaloneCluster
from tests.support.waiting import wait_until

SECRET = "hunter2-of-the-cluster"


@pytest.fixture(scope="module")
def cluster():
    with StandaloneCluster.start() as servers:
        yield servers


def workers_seen(cluster: StandaloneCluster, faults) -> set[int]:
    """Numbers of the workers whose executors ran a task."""
    folders = {number: cluster.worker_folder(number) for number in range(3)}
    return {
        number
        for visitor in faults.visitors()
        for number, folder in folders.items()
        if Path(visitor["cwd"]).is_relative_to(folder)
    }


@pytest.mark.budget(20)  # a driver, two executors, and the one that Spark starts for the lost one's task
def test_both_workers_copy_and_the_loss_of_one_costs_an_attempt_and_no_record(
    make_topic, fill, make_sink, cluster, faults, drive, in_background
):
    topic = make_topic(partitions=2)
    # Six files of each partition are staged before its task waits. Each waits for the other, so both executors must be
    # there.
    values = fill(topic, 2, 100, at={n: {"do": "hold", "times": 2} for n in (60, 61)})
    sink = make_sink(topic, tasks_max="2", flush_size="5", **faults.config())
    sink.worker_config["spark.hadoop.fs.s3a.secret.key"] = SECRET
    sink.worker_config["spark.driver.extraJavaOptions"] = f"-Dstore.password={SECRET}"

    running = in_background(lambda: drive(sink, cluster.settings()))
    running.until(lambda: len(faults.held()) == 2, "both tasks are at work")
    told = [line for _, line in command_lines() if SECRET in line or sink.s3.secret_key in line]
    assert workers_seen(cluster, faults) == {0, 1}
    cluster.servers.pop().kill()
    faults.release()
    driven = running.result()
    wait_until(lambda: cluster.alive_workers() == WORKERS - 1, "the master misses the worker")

    assert (driven.report.status, driven.report.records) == ("done", 100), driven.log
    assert driven.report.swept >= 5
    assert progress_of(driven.events)[-1]["done"] == 100
    assert told == []
    assert SECRET not in driven.log and sink.s3.secret_key not in driven.log
    assert processes_of(driven.token) == []
    sink.assert_exactly_once(values)

"""A NameNode that keeps its connections and never answers again: runs end, with a sentence, and the next goes on."""

import functools
import os
import signal
import time

import pytest

from airflow_connect.connectors.files.hdfs import config as hdfs_config
from airflow_connect.runtime.crash_points import AUDITED, DRIVER_POINTS, TASK_READING
from airflow_connect.stores.hdfs.settings import JVM, NATIVE, HdfsSettings
from tests.devstack.hdfs import HdfsCluster
from tests.support.copies.hdfs import hdfs_sink
from tests.support.copies.s3 import numbered
from tests.support.processes.proc import freeze
from tests.support.steps import HookedEngine, Steps
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.crash, pytest.mark.integration, pytest.mark.budget(30)]

ANSWER_S = 5
"""Instead of two minutes."""
LONGEST_S = 120
"""Some requests in a row: a trial, the tasks' files, what is tidied up."""
POINTS = (*DRIVER_POINTS, TASK_READING) if os.environ.get("AIRFLOW_CONNECT_SOAK") else (TASK_READING, AUDITED)


@pytest.fixture(scope="module")
def cluster():
    """One for this module alone: others would be frozen with it."""
    with HdfsCluster.start() as running:
        yield running


@pytest.fixture(autouse=True)
def short_answers(monkeypatch):
    monkeypatch.setattr(hdfs_config, "HdfsSettings", functools.partial(HdfsSettings, answer_s=ANSWER_S))


@pytest.mark.parametrize(("point", "publisher"), [*((point, NATIVE) for point in POINTS), (AUDITED, JVM)])
def test_run_ends_when_the_name_node_stops_answering(
    kafka, cluster, make_topic, produce, monkeypatch, point, publisher
):
    topic = make_topic(partitions=3)
    rows, values = numbered(0, 12, 3)
    produce(topic, rows)
    sink = hdfs_sink(kafka, cluster, topic, flush_size="4", hdfs_publisher=publisher)
    sink.engine = HookedEngine()
    steps = Steps(monkeypatch)
    steps.on(point, lambda: freeze(cluster.pid))
    started = time.monotonic()
    try:
        frozen = sink.try_run()
    finally:
        os.kill(cluster.pid, signal.SIGCONT)
    took = time.monotonic() - started
    # What was on its way when it froze is worked off first.
    wait_until(lambda: sink.try_run().status == "empty", "a run that finds nothing more to do")

    # Whatever was done before the freeze may be enough for the run to end well.
    if frozen.status != "done":
        assert (frozen.error["code"], frozen.error["retriable"]) == ("hdfs.no_answer", True), frozen.error
        assert "the next run continues where this one ended" in frozen.error["suggestion"]
    assert took < LONGEST_S, frozen.error
    sink.assert_exactly_once(values)

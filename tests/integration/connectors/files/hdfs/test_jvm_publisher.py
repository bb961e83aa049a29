"""Runs whose files are published by Hadoop's own client."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.runtime import crash_points
from tests.crash.rounds import Victim
from tests.devstack.hdfs import HdfsCluster
from tests.support.copies.hdfs import hdfs_sink
from tests.support.copies.s3 import numbered
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.crash]


@pytest.fixture
def after_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """What pyspark's first session does to every py4j gateway of the process."""
    import py4j.java_gateway
    from pyspark.errors.exceptions.captured import install_exception_handler

    monkeypatch.setattr(py4j.java_gateway, "get_return_value", py4j.java_gateway.get_return_value)
    install_exception_handler()


@pytest.mark.usefixtures("after_spark")
def test_run_copies_everything_and_the_next_finds_nothing(
    kafka: KafkaBroker, hdfs: HdfsCluster, make_topic: Any, produce: Any
) -> None:
    topic = make_topic(partitions=2)
    rows, values = numbered(0, 60, 2)
    produce(topic, rows)
    sink = hdfs_sink(kafka, hdfs, topic, hdfs_publisher="jvm", flush_size="7")
    report = sink.run()

    assert report.status == "done"
    assert sink.run().status == "empty"
    sink.assert_exactly_once(values)
    assert sink.uploads() == []


def test_driver_killed_while_it_publishes_leaves_no_jvm_and_the_next_run_ends_its_work(
    kafka: KafkaBroker, hdfs: HdfsCluster, make_topic: Any, produce: Any
) -> None:
    topic = make_topic(partitions=2)
    rows, values = numbered(0, 40, 2)
    produce(topic, rows)
    sink = hdfs_sink(kafka, hdfs, topic, hdfs_publisher="jvm", flush_size="7")
    victim = Victim(sink, {crash_points.VARIABLE: crash_points.PUBLISHING, crash_points.SKIP: "2"})
    assert victim.wait() is None
    visible = sink.keys()
    wait_until(lambda: victim.is_gone, "the JVM of the dead driver has ended", 60)
    survivor = Victim(sink)
    report = survivor.wait()
    wait_until(lambda: survivor.is_gone, "the JVM has ended with its driver", 60)

    assert report is not None
    assert report.error is None
    assert set(visible) <= set(sink.keys())
    sink.assert_exactly_once(values)
    assert sink.uploads() == []

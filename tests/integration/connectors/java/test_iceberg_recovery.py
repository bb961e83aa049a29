"""Runs of Apache's Iceberg sink that are killed, and a connector that moves to a worker and back; in the soak."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from airflow_connect.runtime import crash_points
from airflow_connect.runtime.driver.entry import run_connector
from tests.conftest import MakeTopic, TopicProducer
from tests.devstack.iceberg_worker import IcebergWorker
from tests.support.copies.java_iceberg import LONGEST_S, JavaIceberg, killed_after, killed_once_offsets_moved, rows
from tests.support.kafka_data import create_topic
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.soak, pytest.mark.budget(180)]

ROUNDS = 6
LONGEST_LIFE_S = 14.0
"""About as long as an undisturbed run takes."""


def test_files_of_a_first_run_that_was_killed_are_not_lost(
    java_iceberg_sink: JavaIceberg, produce: TopicProducer
) -> None:
    """The plugin would begin at the end of its control topic, behind what the killed run had announced."""
    sink = java_iceberg_sink
    produce(sink.config["topics"], rows(range(40)))
    killed_once_offsets_moved(sink)
    produce(sink.config["topics"], rows(range(40, 50)))
    sink.run()
    assert sink.numbers() == Counter(range(50))
    assert sink.run().status == "empty"


def test_run_with_nothing_to_copy_finishes_what_a_killed_one_has_left(
    java_iceberg_sink: JavaIceberg, produce: TopicProducer
) -> None:
    sink = java_iceberg_sink
    produce(sink.config["topics"], rows(range(10)))
    sink.run()
    produce(sink.config["topics"], rows(range(10, 40)))
    killed_once_offsets_moved(sink)
    while sink.run().status != "empty":  # Not all partitions need have been committed.
        pass
    assert sink.numbers() == Counter(range(40))


def test_two_tasks_of_spark(java_iceberg_sink: JavaIceberg, produce: TopicProducer) -> None:
    """Tasks share nothing but the group there."""
    sink = java_iceberg_sink
    produce(sink.config["topics"], rows(range(60)))
    sink.worker_config |= {"spark.master": "local[2]", "spark.ui.enabled": "false"}
    report = run_connector(sink.spec(tasks_max="2"))
    assert (report.status, report.records, report.tasks) == ("done", 60, 2), report.error
    assert sink.numbers() == Counter(range(60))


@pytest.mark.parametrize(
    "point",
    [
        crash_points.TASK_READING,
        crash_points.COPIED,
        crash_points.AUDITED,
        crash_points.MANIFEST_WRITTEN,
        crash_points.PUBLISHED,
        crash_points.COMMITTED,
    ],
)
def test_each_record_is_in_the_table_once_wherever_a_run_is_killed(
    java_iceberg_sink: JavaIceberg, produce: TopicProducer, point: str
) -> None:
    sink = java_iceberg_sink
    produce(sink.config["topics"], rows(range(30)))
    assert sink.start(point).wait() is None
    produce(sink.config["topics"], rows(range(30, 40)))
    sink.run()
    assert sink.numbers() == Counter(range(40))
    assert sink.run().status == "empty"


def test_runs_that_are_killed_at_any_moment_lose_and_double_nothing(
    java_iceberg_sink: JavaIceberg, produce: TopicProducer
) -> None:
    sink, seed = java_iceberg_sink, random.randrange(2**31)
    chance, made, story = random.Random(seed), 0, [f"seed {seed}"]
    for _round in range(ROUNDS):
        count = chance.randrange(1, 40)
        produce(sink.config["topics"], rows(range(made, made + count)))
        made += count
        after_s = chance.uniform(1.0, LONGEST_LIFE_S)
        story.append(f"{count} records, killed after {after_s:.2f} s")
        killed_after(sink, after_s)
    while sink.run().status != "empty":
        pass
    assert sink.numbers() == Counter(range(made)), story


def test_dead_letters_of_a_killed_run_are_found_again(
    java_iceberg_sink: JavaIceberg, produce: TopicProducer, make_topic: MakeTopic
) -> None:
    """Their offsets are committed, but only the run that was killed knew that they had failed."""
    sink = java_iceberg_sink
    letters = make_topic()
    sink.config |= {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": letters}
    topic = sink.config["topics"]
    produce(topic, [*rows(range(20)), (0, None, b"no JSON", 1, []), *rows(range(20, 30))])
    killed_once_offsets_moved(sink)
    again = sink.run()
    assert (again.records, again.dead_lettered) == (30, 1)
    assert sink.numbers() == Counter(range(30))
    assert [message.value() for message in sink.messages(letters)] == [b"no JSON"]
    assert sink.run().status == "empty"


def test_connector_moves_from_a_worker_to_here_and_back(java_iceberg_sink: JavaIceberg, produce: TopicProducer) -> None:
    sink = java_iceberg_sink
    topic = sink.config["topics"]
    produce(topic, rows(range(20)))
    leave_out = ("airflow.java.prefer",)
    config = {key: value for key, value in sink.spec().connector.items() if key != "name" and key not in leave_out}
    config = {**sink.worker_config, **config, "consumer.override.auto.offset.reset": "earliest"}
    with IcebergWorker.start(sink.bootstrap, f"workers-{sink.name}") as worker:
        create_topic(sink.bootstrap, sink.control_topic, 1)
        worker.rest.create(sink.name, config)
        wait_until(lambda: sink.numbers() == Counter(range(20)), "the worker's rows", LONGEST_S, every_s=0.3)
        worker.rest.stop(sink.name)
        sink.wait_for_empty_groups()

        produce(topic, rows(range(20, 30)))
        assert sink.run().records == 10
        assert sink.numbers() == Counter(range(30))

        produce(topic, rows(range(30, 40)))
        worker.rest.resume(sink.name)
        wait_until(lambda: sink.numbers() == Counter(range(40)), "the worker's next rows", LONGEST_S, every_s=0.3)
        worker.rest.delete(sink.name)
    sink.wait_for_empty_groups()
    assert sink.run().status == "empty"
    assert sink.numbers() == Counter(range(40))

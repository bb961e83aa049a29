"""The same with the real driver process, a JVM and Python workers: kills in the driver, in tasks, and of tasks."""

import os
import random

import pytest

from airflow_connect.documents.run import RunReport
from airflow_connect.runtime.crash_points import SKIP, VARIABLE
from airflow_connect.runtime.driver.process import DriverProcess
from airflow_connect.runtime.driver.process_tree import processes_of
from tests.crash.rounds import Watcher
from tests.support.copies.s3 import numbered
from tests.support.faulty_converter import Faults
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.crash,
    pytest.mark.integration,
    pytest.mark.budget(20),
    pytest.mark.usefixtures("spark_classes"),
]

ROUNDS = int(os.environ.get("AIRFLOW_CONNECT_SPARK_ROUNDS", "50" if os.environ.get("AIRFLOW_CONNECT_SOAK") else "1"))
SEED = int(os.environ.get("AIRFLOW_CONNECT_SEED", "20261121"))


@pytest.fixture
def sink(make_topic, produce, make_sink):
    """A connector whose driver starts Spark in local mode, with one retry for every task."""
    topic = make_topic(partitions=2)
    produce(topic, numbered(0, 40, 2)[0])
    made = make_sink(topic, flush_size="5")
    made.worker_config["spark.master"] = "local[2,2]"
    made.worker_config["spark.ui.enabled"] = "false"
    return made


def drive(sink, environment=None):
    """One run in a driver process; returns its report, or the exit code, and the token of its processes."""
    with DriverProcess(sink.spec(), environment) as driver:
        return driver.wait(), driver.token


def assert_done(sink, expected):
    """The rest is copied by runs without Spark: the state is the same for every engine."""
    statuses = [sink.run().status for _ in range(3)]
    assert statuses[-1] == "empty"
    sink.assert_exactly_once(expected)


@pytest.mark.parametrize("number", range(ROUNDS))
def test_driver_with_spark_killed_at_a_random_moment_of_its_copy(sink, number):
    chance = random.Random(SEED + number)
    watcher = Watcher(sink)
    with DriverProcess(sink.spec()) as driver:
        for event in driver.events():
            if event.get("phase") == chance.choice(["copy", "manifest", "publish", "commit"]):
                break
        wait_until(lambda: True, "the next instant", timeout_s=1)
        driver.kill()
        driver.wait()
        token = driver.token
    watcher.end()

    assert processes_of(token) == []
    assert watcher.violations == []
    assert_done(sink, numbered(0, 40)[1])


def test_driver_with_spark_killed_between_manifest_and_publish(sink):
    outcome, token = drive(sink, {VARIABLE: "publishing", SKIP: "3"})

    assert not isinstance(outcome, RunReport)
    assert processes_of(token) == []
    assert sink.view().manifest is not None
    assert_done(sink, numbered(0, 40)[1])


def test_task_that_dies_is_tried_again_and_its_uploads_are_swept(sink, produce, tmp_path):
    """The worker of the first attempt is killed after it has staged files; the second attempt stages them again."""
    faults = Faults(tmp_path)
    sink.config.update({key.replace("_", "."): value for key, value in faults.config().items()})
    produce(sink.topic, [(0, None, '{"n": 40, "do": "die", "times": 1}')])

    outcome, token = drive(sink)

    assert isinstance(outcome, RunReport) and outcome.status == "done", outcome
    assert faults.taken() == 1
    assert outcome.records == 41
    assert processes_of(token) == []
    sink.assert_exactly_once([*numbered(0, 40)[1], {"n": 40, "do": "die", "times": 1}])

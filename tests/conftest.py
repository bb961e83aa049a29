"""Fixtures of all tests. The servers are real, start when first asked for, and serve a whole session.

Every test uses names of its own (`unique_name`, `make_topic`, `bucket`), so that one broker and one S3 server
do for all.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

from airflow_connect.devstack.java_server import JavaServer
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.devstack.process import log_tail
from airflow_connect.devstack.s3 import S3Server
from tests.support.kafka_data import TopicProducer, create_topic
from tests.support.searching import choose_seed, load_profile, repeat_command

if TYPE_CHECKING:
    from airflow_connect.devstack.hdfs import HdfsCluster
    from tests.support.runs import Sink

MakeTopic = Callable[..., str]

# Tests start a thousand processes; each would compile all that it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

load_profile()


_shared_servers: list[JavaServer] = []


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed before Hypothesis asks for it."""
    choose_seed(config)


def pytest_report_header(config: pytest.Config) -> str:
    """Name the seed of the property tests."""
    return f"property tests: --hypothesis-seed={config.option.hypothesis_seed}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say with a failure how to repeat its search, and which of the shared servers is gone, and why.

    Every test after the end of a server fails as well.
    """
    report = yield
    if report.failed:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            report.sections.append(("the same examples again", repeat_command(item.config, item.nodeid)))
        gone = [server for server in _shared_servers if not server.is_running]
        report.sections += [(f"{server.name} has ended by itself", log_tail(server.log_path)) for server in gone]
    return report


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaBroker]:
    """A real Kafka broker, shared by the session: `.bootstrap`, `.pid`. Restart only one of your own."""
    with KafkaBroker.start() as broker:
        _shared_servers.append(broker)
        yield broker
        _shared_servers.remove(broker)
        # Its data goes with it. Told to end in order, it would first write a snapshot for each of a session's thousand
        # topics, which takes most of a minute.
        broker.kill()


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """A real S3 server, shared by the session: `.endpoint_url`, `.access_key`, `.secret_key`, `.client()`."""
    with S3Server.start() as server:
        _shared_servers.append(server)
        yield server
        _shared_servers.remove(server)


@pytest.fixture(scope="session")
def hdfs() -> Iterator[HdfsCluster]:
    """A real HDFS with one DataNode, shared by the session: `.url`. Restart, or fill, only one of your own."""
    from airflow_connect.devstack.hdfs import HdfsCluster

    with HdfsCluster.start() as cluster:
        servers = [cluster.namenode, *cluster.datanodes]
        _shared_servers.extend(servers)
        yield cluster
        for server in servers:
            _shared_servers.remove(server)


@pytest.fixture
def unique_name() -> str:
    """A name that nothing else has; fit for a topic, a bucket, a connector, a group."""
    return f"t-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def bucket(s3: S3Server, unique_name: str) -> str:
    """The name of a new, empty bucket."""
    s3.client().create_bucket(Bucket=unique_name)
    return unique_name


@pytest.fixture
def make_topic(kafka: KafkaBroker) -> MakeTopic:
    """Make a topic that clients see: `make_topic(partitions=1, config=None, name=None) -> name`."""

    def make(partitions: int = 1, config: Mapping[str, str] | None = None, name: str | None = None) -> str:
        topic = name or f"topic-{uuid.uuid4().hex[:12]}"
        create_topic(kafka.bootstrap, topic, partitions, config)
        return topic

    return make


@pytest.fixture
def produce(kafka: KafkaBroker) -> Iterator[TopicProducer]:
    """Write `(partition, key, value, timestamp_ms, headers)` rows; `.transaction(...)` for a transaction."""
    producer = TopicProducer(kafka.bootstrap)
    yield producer
    producer.close()


@pytest.fixture
def make_sink(kafka: KafkaBroker, s3: S3Server, bucket: str) -> Callable[..., Sink]:
    """Make an S3 sink connector: `make_sink(topic, **config) -> Sink`, `_` in a key standing for `.`."""
    from tests.support.runs import Sink

    def make(topic: str, **config: str) -> Sink:
        settings = {key.replace("_", "."): value for key, value in config.items()}
        return Sink(kafka, s3, bucket, f"sink-{uuid.uuid4().hex[:8]}", topic, settings)

    return make

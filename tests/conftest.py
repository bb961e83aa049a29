"""Fixtures of all tests. The servers are real, start when first asked for, and serve a whole session.

That is so however many processes run it: `tests.support.servers.shared`.

Every test uses names of its own (`unique_name`, `make_topic`, `bucket`), so that one broker and one S3 server
do for all.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.devstack.s3 import S3Server
from tests.support.kafka_data import TopicProducer, create_topic
from tests.support.processes.forking import ForkedProcess, end_fork_server
from tests.support.servers.shared import FOLDER, ServerClient, ServerHost
from tests.support.session.durations import Durations, SharedTime, budget_of
from tests.support.session.long_tests import LIST, leave_out, long_tests, runs_all
from tests.support.session.searching import choose_seed, load_profile, repeat_command

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling
    from xdist.workermanage import WorkerController

    from tests.devstack.mariadb import MariaDbServer
    from tests.devstack.postgresql import PostgresServer
    from tests.support.copies.s3 import Sink
    from tests.support.servers.databases import Database

MakeTopic = Callable[..., str]

# Tests start a thousand processes; each would compile all that it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

load_profile()

SERVERS = pytest.StashKey["ServerHost | ServerClient"]()
SHARED_TIME = "shared-time"
_CONNECT = socket.socket.connect


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed before Hypothesis asks for it; own the servers, or know who does."""
    gc.disable()  # until the tests are collected: none of those objects is garbage
    choose_seed(config)
    # A plugin of its own: pytest asks no conftest about fixtures of the session.
    config.pluginmanager.register(SharedTime(), SHARED_TIME)
    if worker := getattr(config, "workerinput", None):
        config.stash[SERVERS] = ServerClient(Path(worker[FOLDER]))
        return
    config.stash[SERVERS] = ServerHost()
    config.pluginmanager.register(Durations.of(config), "durations")


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the servers, after the last process of tests has ended and after Ctrl-C."""
    end_fork_server()
    if (servers := config.stash.get(SERVERS, None)) is not None:
        servers.close()


def pytest_report_header(config: pytest.Config) -> str:
    """Name the seed of the property tests, and say what is left to `make soak`."""
    seed = f"property tests: --hypothesis-seed={config.option.hypothesis_seed}"
    if runs_all(config):
        return seed
    return f"{seed}\nleft to `make soak`: {len(long_tests())} lines of tests/{LIST.name}"


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Tell a process of pytest-xdist where to ask for servers."""
    servers = node.config.stash[SERVERS]
    assert isinstance(servers, ServerHost)
    servers.listen()
    node.workerinput[FOLDER] = str(servers.folder)


def pytest_collection_finish() -> None:
    """Collect garbage from here on, and look no more at the millions of objects of the tests themselves."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    """Leave out the long tests, and sort the others of several processes, so that the longest start first."""
    leave_out(config, items)  # before `-m` chooses by their mark
    yield
    if hasattr(config, "workerinput"):
        from tests.support.session.scheduling import in_order, write_units

        write_units(config.stash[SERVERS].folder, in_order(items))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling | None:
    """Hand out tests in that order, unless the command line asks for another way."""
    if config.getvalue("dist") != "load":
        return None
    from tests.support.session.scheduling import LongestFirst

    return LongestFirst(config, log, config.stash[SERVERS].folder)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say with a failure how to repeat its search, and which of the shared servers is gone, and why.

    Every test after the end of a server fails as well.
    """
    report = yield
    times = item.config.pluginmanager.get_plugin(SHARED_TIME)
    assert isinstance(times, SharedTime)
    report.shared_s = times.take()  # type: ignore[attr-defined]
    report.cpu_s = times.take_cpu()  # type: ignore[attr-defined]
    report.budget_s = budget_of(item)  # type: ignore[attr-defined]
    if report.failed:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            report.sections.append(("the same examples again", repeat_command(item.config, item.nodeid)))
        if socket.socket.connect is _CONNECT:  # Some tests let nothing connect.
            gone = item.config.stash[SERVERS].gone()
            report.sections += [(f"{name} has ended by itself", log) for name, log in gone]
    return report


@pytest.fixture(scope="session")
def servers(pytestconfig: pytest.Config) -> ServerHost | ServerClient:
    """The servers that all tests of the session share: `.get(kind)`."""
    return pytestconfig.stash[SERVERS]


def _shared_server(kind: str, description: str) -> Any:
    """A fixture that gives the server of a kind, started when the first test of the session asks for it."""

    def server(servers: ServerHost | ServerClient) -> Any:
        return servers.get(kind)

    server.__doc__ = description
    return pytest.fixture(scope="session")(server)


kafka = _shared_server("kafka", "A real Kafka broker, shared by all tests: `.bootstrap`. Restart only one of your own.")
upstream_kafka = _shared_server(
    "upstream_kafka", "A second Kafka cluster, shared by all tests that mirror: `.bootstrap`. Do not restart it."
)
s3 = _shared_server(
    "s3", "A real S3 server, shared by all tests: `.endpoint_url`, `.access_key`, `.secret_key`, `.client()`."
)
hdfs = _shared_server(
    "hdfs", "A real HDFS with one DataNode, shared by all tests: `.url`. Restart, or fill, only one of your own."
)
metastore = _shared_server(
    "metastore", "A real Hive metastore, shared by all tests: `.uri`. Restart only one of your own."
)
iceberg_rest = _shared_server(
    "iceberg_rest", "A real REST catalog of Iceberg, shared by all tests: `.uri`. Restart only one of your own."
)
registry_server = _shared_server(
    "registry", "A real Schema Registry, shared by all tests; each has subjects of its own: `.url`."
)
postgresql = _shared_server(
    "postgresql", "A real PostgreSQL server, shared by all tests. Restart only one of your own."
)
mariadb = _shared_server("mariadb", "A real MariaDB server, shared by all tests. Restart only one of your own.")

opensearch = _shared_server(
    "opensearch", "A real OpenSearch node, shared by all tests: `.url`, `.request(...)`. Restart only one of your own."
)


@pytest.fixture
def postgresql_database(postgresql: PostgresServer, unique_name: str) -> Iterator[Database]:
    """An empty database on PostgreSQL: `.url`, `.jdbc_url`, `.rows(query)`."""
    from tests.support.servers.databases import database_on

    with database_on(postgresql, unique_name) as database:
        yield database


@pytest.fixture
def mariadb_database(mariadb: MariaDbServer, unique_name: str) -> Iterator[Database]:
    """An empty database on MariaDB."""
    from tests.support.servers.databases import database_on

    with database_on(mariadb, unique_name) as database:
        yield database


@pytest.fixture
def sqlite_database(tmp_path: Path) -> Database:
    """A database in a file."""
    from tests.support.servers.databases import sqlite_in

    return sqlite_in(tmp_path)


@pytest.fixture(scope="session")
def spark_classes() -> None:
    """For tests that start Spark in a process of its own: the JVM starts four times as fast from then on."""
    from tests.support.session.spark_classes import make_once

    make_once()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Plugin paths that the tests of a file have used are unknown to other files.

    No fixture of a module: it would keep the tests of each file in one process.
    """
    registry, plugin = (
        sys.modules.get(f"airflow_connect.jvm.discovery.{name}") for name in ("registry", "java_plugin")
    )
    names = sys.modules.get("airflow_connect.api.config.plugins")
    if registry is None or plugin is None or names is None or (nextitem is not None and nextitem.path == item.path):
        return
    for known in (registry._catalogues, plugin._by_class, names._added, names._searched):
        known.clear()
    names._additions[0] += 1


@pytest.fixture(autouse=True)
def forked_runs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs in a process of their own (`RunProcess`) are forked, but for tests marked `started_anew`."""
    runs = sys.modules.get("airflow_connect.testing.runs")  # whoever starts such a run has imported it
    if runs is None or request.node.get_closest_marker("started_anew"):
        return

    def fork(arguments: Sequence[str], environment: Mapping[str, str]) -> ForkedProcess:
        return ForkedProcess("airflow_connect.testing.run_once", arguments, environment)

    monkeypatch.setattr(runs, "_start", fork)


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
    from tests.support.copies.s3 import Sink

    def make(topic: str, **config: str) -> Sink:
        settings = {key.replace("_", "."): value for key, value in config.items()}
        return Sink(kafka, s3, bucket, f"sink-{uuid.uuid4().hex[:8]}", topic, settings)

    return make

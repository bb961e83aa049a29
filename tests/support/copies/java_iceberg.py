"""Runs of Apache's Iceberg sink, in Java, into tables that pyiceberg reads."""

from __future__ import annotations

import json
import os
import signal
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchTableError, RESTError

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.kafka.admin.consumer_group import group_state, read_committed_offsets
from airflow_connect.kafka.clients.short_lived import admin_client
from tests.devstack.iceberg_worker import ICEBERG_LOCK, SPARK_JARS
from tests.devstack.jars import fetch_jars
from tests.support.copies.java_plugin import JavaConnector, plugin_folder
from tests.support.waiting import wait_until

COUNT_OF_PARTITIONS = 2
LONGEST_S = 90.0
NAMESPACE = "lake"
CLASS = "org.apache.iceberg.connect.IcebergSinkConnector"
QUICK = {"iceberg.control.commit.interval-ms": "1500"}
SOON_FORGOTTEN = {"iceberg.control.commit.timeout-ms": "5000", "consumer.override.session.timeout.ms": "6000"}
"""For runs that are killed. A slow machine may need longer, so others have the defaults."""


def iceberg_plugin(plugin_path: Path) -> Path:
    """A plugin path with the sink, and the jars of Hadoop that it needs."""
    found = sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))
    spark = [path for path in found if path.name.startswith(SPARK_JARS)]
    return plugin_folder(plugin_path, ICEBERG_LOCK, [*fetch_jars(ICEBERG_LOCK), *spark])


def rows(numbers: Iterable[int]) -> list[Any]:
    """Records with these numbers, for a topic of two partitions."""
    return [(n % COUNT_OF_PARTITIONS, None, json.dumps({"n": n}).encode(), 1000 + n, []) for n in numbers]


@dataclass
class JavaIceberg(JavaConnector):
    """One connector of a test. Values have a number `n`."""

    catalog_uri: str = ""

    @property
    def table_name(self) -> str:
        """Its table."""
        return f"{NAMESPACE}.{self.name.replace('-', '_')}"

    @property
    def control_topic(self) -> str:
        """A topic of its own."""
        return self.config["iceberg.control.topic"]

    def control_exists(self) -> bool:
        """Whether there is a control topic; a broker that creates topics by itself makes it when it is asked."""
        found = admin_client({"bootstrap.servers": self.bootstrap}).list_topics(timeout=LONGEST_S)
        return self.control_topic in found.topics

    @property
    def catalog(self) -> Catalog:
        """The catalog, opened anew."""
        return load_catalog("iceberg", type="rest", uri=self.catalog_uri)

    def numbers(self) -> Counter[int]:
        """How often each number is in the table."""
        try:
            table = self.catalog.load_table(self.table_name)
        except NoSuchTableError:
            return Counter()
        return Counter(table.scan().to_arrow()["n"].to_pylist())

    @property
    def group(self) -> str:
        """Its consumer group."""
        return f"connect-{self.name}"

    def committed(self) -> dict[TopicPartition, int]:
        """Offsets of the group, of both partitions."""
        places = [TopicPartition(self.config["topics"], number) for number in range(COUNT_OF_PARTITIONS)]
        return read_committed_offsets(admin_client({"bootstrap.servers": self.bootstrap}), self.group, places)

    def wait_for_empty_groups(self) -> None:
        """Until Kafka has noticed that members were killed."""
        admin = admin_client({"bootstrap.servers": self.bootstrap})
        for group in (self.group, f"{self.group}-coord"):
            wait_until(lambda group=group: not group_state(admin, group)[1], f"an empty group {group}", LONGEST_S)

    def drop_table(self) -> None:
        """Drop the table."""
        self.catalog.drop_table(self.table_name)


def java_iceberg(bootstrap: str, name: str, plugin_path: Path, topics: str, catalog_uri: str) -> JavaIceberg:
    """A sink into a table of a REST catalog, which commits every one and a half seconds."""
    made = JavaIceberg(bootstrap, name, plugin_path, catalog_uri=catalog_uri)
    made.config = {
        "connector.class": CLASS,
        "airflow.java.prefer": "true",
        "topics": topics,
        "iceberg.tables": made.table_name,
        "iceberg.tables.auto-create-enabled": "true",
        "iceberg.catalog.type": "rest",
        "iceberg.catalog.uri": catalog_uri,
        "iceberg.control.topic": f"control-{name}",
        **QUICK,
    }
    _make_namespace(made.catalog)
    return made


def _make_namespace(catalog: Catalog) -> None:
    """The namespace of all tables: tasks of the plugin that make it at the same moment fail in the test's catalog."""
    try:
        catalog.create_namespace_if_not_exists(NAMESPACE)
    except RESTError:  # Another test makes it at this moment.
        wait_until(lambda: catalog.namespace_exists(NAMESPACE), f"the namespace {NAMESPACE}")


def killed_once_offsets_moved(sink: JavaIceberg) -> None:
    """A run of which every process is killed as soon as its tasks have committed offsets.

    Its files are announced then, and probably in no table.
    """
    before = sink.committed()
    _killed(sink, lambda: wait_until(lambda: sink.committed() != before, "new offsets", LONGEST_S, every_s=0.005))


def killed_after(sink: JavaIceberg, seconds: float) -> None:
    """A run of which every process is killed after a time, if it has not ended before."""
    _killed(sink, lambda: time.sleep(seconds))


def _killed(sink: JavaIceberg, wait: Callable[[], None]) -> None:
    mark = f"-Dmark={uuid.uuid4().hex}"
    sink.config |= SOON_FORGOTTEN
    process = sink.start(airflow_java_options=mark)
    try:
        wait()
    finally:
        kill_marked(mark)
        process.kill()
    sink.wait_for_empty_groups()


def kill_marked(mark: str) -> None:
    """Kill the JVMs with an option."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            is_ours = mark.encode() in (folder / "cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if is_ours and int(folder.name) != os.getpid():
            os.kill(int(folder.name), signal.SIGKILL)

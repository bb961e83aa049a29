"""docs/how-to/migrate-from-confluent-hdfs.md says what happens: its directory is made, its listings are compared."""

from __future__ import annotations

import json
import re
import textwrap
from typing import Any

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.runtime.driver.entry import plan_connector
from tests.devstack.hdfs import HdfsCluster
from tests.docs.pages import ROOT, text_of
from tests.support import hdfs_files
from tests.support.copies.hdfs import hdfs_sink
from tests.support.copies.s3 import numbered
from tests.unit.connectors.files.hdfs.wal_bytes import block, entry, log

pytestmark = pytest.mark.integration

PAGE = text_of(ROOT / "docs" / "how-to" / "migrate-from-confluent-hdfs.md")


def listing(mark: str) -> list[str]:
    """Lines of the block that a comment marks."""
    found = re.search(rf"<!-- {mark} -->\n *```\n(.*?)^ *```$", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None
    return textwrap.dedent(found[1]).splitlines()


def said_by_plan() -> list[str]:
    """The sentences of the plan."""
    return [line.strip() for line in PAGE.splitlines() if line.strip().startswith("orders-")]


def content(partition: int, start: int) -> bytes:
    values = [{"n": 2 * offset + partition} for offset in range(start, start + 3)]
    return "".join(json.dumps(value) + "\n" for value in values).encode()


def test_migrating_as_the_page_tells_it(kafka: KafkaBroker, hdfs: HdfsCluster, make_topic: Any, produce: Any) -> None:
    topic = make_topic(2)
    rows, values = numbered(0, 20, partitions=2)
    produce(topic, rows)
    sink = hdfs_sink(kafka, hdfs, topic, flush_size="3")
    moves = {}
    for path in (line.split()[0].replace("orders", topic) for line in listing("tree")):
        partition = 1 if "partition=1" in path else 0
        if "+tmp" in path:
            hdfs_files.put(f"{sink.base}/{path}", content(partition, 3))
            final = f"topics/{topic}/partition={partition}/{topic}+{partition}+0000000003+0000000005.json"
            moves[partition] = (f"{sink.base}/{path}", f"{sink.base}/{final}")
        elif path.endswith(".json"):
            hdfs_files.put(f"{sink.base}/{path}", content(partition, 0))
    hdfs_files.put(f"{sink.base}/logs/{topic}/0/log", log(block(moves[0])))
    hdfs_files.put(f"{sink.base}/logs/{topic}/1/log", log(block(), entry("BEGIN"), entry(*moves[1])))
    plan_connector(sink.spec())  # Waits for the coordinator of a broker that has just started.
    sink.set_offsets({0: 3})

    said = [line.replace("hdfs://namenode:8020", sink.base).replace("orders", topic) for line in said_by_plan()]
    assert list(plan_connector(sink.spec()).notes) == said
    sink.run()
    keys = sink.keys()
    assert keys == sorted(line.replace("orders", topic) for line in listing("after"))
    found = [json.loads(line) for key in keys if key.endswith(".json") for line in sink.body(key).splitlines()]
    assert sorted(found, key=lambda value: value["n"]) == values
    assert (sink.uploads(), sink.offsets()) == ([], {0: 10, 1: 10})

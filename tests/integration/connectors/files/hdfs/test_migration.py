"""From Confluent's HDFS sink to this one: a directory as it leaves it, and group offsets that lag or lead."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hdfs_native import WriteOptions

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.runtime.driver.entry import plan_connector
from tests.devstack.hdfs import HdfsCluster
from tests.support import hdfs_files
from tests.support.copies.hdfs import HdfsSink, hdfs_sink
from tests.support.copies.s3 import numbered
from tests.unit.connectors.files.hdfs.wal_bytes import block, entry, log

pytestmark = pytest.mark.integration

Migrate = Callable[..., HdfsSink]


@pytest.fixture
def migrate(kafka: KafkaBroker, hdfs: HdfsCluster, make_topic: Any, produce: Any) -> Migrate:
    """Twenty records in two partitions, of which Confluent's sink has published the first of each in files of three."""

    def make(published: int, **config: str) -> HdfsSink:
        topic = make_topic(2)
        produce(topic, numbered(0, 20, partitions=2)[0])
        sink = hdfs_sink(kafka, hdfs, topic, flush_size="3", **config)
        for partition in (0, 1):
            for start in range(0, published, 3):
                put(sink, partition, start, f"topics/{sink.topic}/partition={partition}")
        return sink

    return make


def name(sink: HdfsSink, partition: int, start: int) -> str:
    return f"{sink.topic}+{partition}+{start:010d}+{start + 2:010d}.json"


def put(sink: HdfsSink, partition: int, start: int, directory: str, file: str = "") -> None:
    """Write the file with the records [start, start + 3) of a partition."""
    values = [{"n": 2 * offset + partition} for offset in range(start, start + 3)]
    data = "".join(json.dumps(value) + "\n" for value in values).encode()
    hdfs_files.put(f"{sink.base}/{directory}/{file or name(sink, partition, start)}", data)


def staged(sink: HdfsSink, partition: int, start: int) -> tuple[str, str]:
    """Stage a file as Confluent's sink does; its entry of the log."""
    temporary = f"{partition}-{start}-uuid_tmp.json"
    put(sink, partition, start, f"topics/+tmp/{sink.topic}/partition={partition}", temporary)
    return (
        f"{sink.base}/topics//+tmp/{sink.topic}/partition={partition}/{temporary}",
        f"{sink.base}/topics/{sink.topic}/partition={partition}/{name(sink, partition, start)}",
    )


EVERYTHING = numbered(0, 20)[1]


@pytest.mark.parametrize("group", [None, 0, 9], ids=["no group", "group behind", "group ahead"])
def test_names_of_files_win_over_the_group(migrate: Migrate, group: int | None) -> None:
    sink = migrate(published=6)
    if group is not None:
        plan_connector(sink.spec())  # Waits for the coordinator of a broker that has just started.
        sink.set_offsets({0: group, 1: group})
    report = sink.run()
    sink.assert_exactly_once(EVERYTHING)
    assert (report.records, sink.offsets()) == (8, {0: 10, 1: 10})
    [note, _] = sink.plan().notes
    assert note.startswith(f"{sink.topic}-0 continues at 6, where the files of an earlier connector in {sink.base} end")
    assert ("the group's offset" in note) == (group is not None)


def test_a_log_that_a_crash_left_is_finished_first(migrate: Migrate) -> None:
    sink = migrate(published=3)
    hdfs_files.put(f"{sink.base}/logs/{sink.topic}/0/log", log(block(staged(sink, 0, 3), staged(sink, 0, 6))))
    undecided = log(block(), entry("BEGIN"), entry(*staged(sink, 1, 3)))
    hdfs_files.put(f"{sink.base}/logs/{sink.topic}/1/log", undecided)
    assert sink.run().records == (10 - 9) + (10 - 3)
    keys = sink.keys()
    data = [json.loads(line) for key in keys if key.endswith(".json") for line in sink.body(key).splitlines()]
    assert sorted(value["n"] for value in data) == list(range(20))
    assert sink.uploads() == []
    logs = [key for key in keys if key.startswith("logs/")]
    assert logs == [f"logs/{sink.topic}/{partition}/log.taken-over" for partition in (0, 1)]


def test_a_log_that_a_dead_writer_left_open_is_closed_and_read(migrate: Migrate) -> None:
    sink = migrate(published=3)
    client, base = hdfs_files.split(sink.base)
    # The writer below `FileWriter`: that one closes itself when it is forgotten, which fails here.
    writer = client.inner.create(f"{base}/logs/{sink.topic}/0/log", WriteOptions())
    writer.write(log(block(staged(sink, 0, 3))))
    writer.hsync()
    assert sink.run().records == (10 - 6) + (10 - 3)
    keys = sink.keys()
    assert f"topics/{sink.topic}/partition=0/{name(sink, 0, 3)}" in keys


def test_a_plan_only_looks(migrate: Migrate) -> None:
    sink = migrate(published=3)
    hdfs_files.put(f"{sink.base}/logs/{sink.topic}/0/log", log(block(staged(sink, 0, 3))))
    before = hdfs_files.all_files(sink.base)
    plan = plan_connector(sink.spec())
    assert {r.topic_partition.partition: r.start for r in plan.ranges} == {0: 6, 1: 3}
    assert hdfs_files.all_files(sink.base) == before


def test_files_are_asked_only_until_there_is_state(migrate: Migrate, produce: Any) -> None:
    sink = migrate(published=3)
    sink.run()
    put(sink, 0, 300, f"topics/{sink.topic}/partition=0")
    produce(sink.topic, [(0, None, '{"n": 99}')])
    assert sink.run().records == 1
    assert sink.plan().notes == ()


def test_nothing_to_copy_commits_what_the_files_tell(migrate: Migrate) -> None:
    sink = migrate(published=9)
    for partition in (0, 1):
        hdfs_files.put(
            f"{sink.base}/topics/{sink.topic}/p/{sink.topic}+{partition}+9+9.json",
            json.dumps({"n": 18 + partition}).encode(),
        )
    assert sink.run().status == "empty"
    assert sink.offsets() == {0: 10, 1: 10}
    sink.assert_exactly_once(EVERYTHING)


def test_files_that_end_behind_the_log_fail_the_run(migrate: Migrate) -> None:
    """The topic was made anew: its offsets begin at 0 again."""
    sink = migrate(published=12)
    report = sink.try_run()
    assert f"The committed offset 12 of {sink.topic}-0 is outside the log" in str(report.error)

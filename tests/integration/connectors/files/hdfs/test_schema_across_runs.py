"""One schema counts for a topic-partition across runs: each begins with that of the last file, whatever happens."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.runtime import crash_points
from tests.devstack.hdfs import HdfsCluster
from tests.integration.connectors.files.s3.objects import WITH_SCHEMAS, avro_header, avro_rows, envelope, struct
from tests.support import hdfs_files
from tests.support.copies.hdfs import HdfsSink, hdfs_sink
from tests.support.steps import Crashed, Steps

pytestmark = pytest.mark.integration

FORMATS = "io.confluent.connect.hdfs"
SCHEMAS = {
    1: struct(("n", "int32"), version=1),
    2: struct(("n", "int32"), ("note", {"type": "string", "optional": True, "default": "none"}), version=2),
}
COLUMNS: dict[str, Callable[[bytes], list[str]]] = {
    "parquet.ParquetFormat": lambda data: pq.read_schema(pa.BufferReader(data)).names,
    "orc.OrcFormat": lambda data: orc.ORCFile(pa.BufferReader(data)).schema.names,
}
BACKWARD = {"schema.compatibility": "BACKWARD"}

Evolving = Callable[..., HdfsSink]
Write = Callable[..., None]


@pytest.fixture
def evolving(kafka: KafkaBroker, hdfs: HdfsCluster, make_topic: Any) -> Evolving:
    """A sink of Avro files with one schema for a topic-partition."""

    def make(**config: str) -> HdfsSink:
        sink = hdfs_sink(kafka, hdfs, make_topic(), format_class=f"{FORMATS}.avro.AvroFormat", **config)
        sink.config = {**BACKWARD, **sink.config}
        sink.worker_config = WITH_SCHEMAS
        return sink

    return make


@pytest.fixture
def write(produce: Any) -> Write:
    """`write(sink, version, numbers)`: records of a version of the schema."""

    def put(sink: HdfsSink, version: int, numbers: Iterable[int]) -> None:
        more = {"note": "noted"} if version == 2 else {}
        produce(sink.topic, [(0, None, envelope(SCHEMAS[version], {"n": n, **more})) for n in numbers])

    return put


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """Actions at the named steps of the runs of this test."""
    return Steps(monkeypatch)


def files(sink: HdfsSink) -> list[tuple[int, list[dict[str, Any]]]]:
    """Version of the schema and rows of each file, by first offset."""
    bodies = [sink.body(key) for key in sorted(sink.keys(), key=lambda key: key.rpartition("/")[2])]
    return [(avro_header(body)[1].get("connect.version"), avro_rows(body)) for body in bodies]


def rows(version: int, numbers: Iterable[int], note: str = "noted") -> tuple[int, list[dict[str, Any]]]:
    more = {"note": note} if version == 2 else {}
    return version, [{"n": n, **more} for n in numbers]


def test_an_older_record_of_a_later_run_gets_the_newer_schema(evolving: Evolving, write: Write) -> None:
    sink = evolving()
    for version, numbers in ((2, range(3)), (1, range(3, 6)), (1, range(6, 8))):
        write(sink, version, numbers)
        sink.run()
    assert files(sink) == [rows(2, range(3)), rows(2, range(3, 6), "none"), rows(2, range(6, 8), "none")]


def test_forward_a_newer_record_of_a_later_run_gets_the_older_schema(evolving: Evolving, write: Write) -> None:
    sink = evolving(schema_compatibility="FORWARD")
    write(sink, 1, range(3))
    sink.run()
    write(sink, 2, range(3, 6))
    sink.run()
    assert files(sink) == [rows(1, range(3)), rows(1, range(3, 6))]


def test_without_compatibility_each_record_keeps_its_schema(evolving: Evolving, write: Write) -> None:
    sink = evolving(schema_compatibility="NONE")
    write(sink, 2, range(3))
    sink.run()
    write(sink, 1, range(3, 6))
    sink.run()
    assert files(sink) == [rows(2, range(3)), rows(1, range(3, 6))]


def test_compatibility_that_is_asked_for_later_begins_with_the_last_file(evolving: Evolving, write: Write) -> None:
    sink = evolving()
    write(sink, 2, range(3))
    sink.run(schema_compatibility="NONE")
    write(sink, 1, range(3, 6))
    sink.run()
    assert files(sink) == [rows(2, range(3)), rows(2, range(3, 6), "none")]


@pytest.mark.parametrize("file_format", COLUMNS)
def test_columns_stay_where_the_file_tells_no_version(evolving: Evolving, write: Write, file_format: str) -> None:
    sink = evolving()
    sink.config["format.class"] = f"{FORMATS}.{file_format}"
    write(sink, 2, range(3))
    sink.run()
    write(sink, 1, range(3, 6))
    sink.run()
    names = [COLUMNS[file_format](sink.body(key)) for key in sink.keys()]  # noqa: SIM118 (a sink is no dict)
    assert names == [["n", "note"], ["n", "note"]]


def test_what_is_left_for_the_next_run_begins_with_the_last_file(evolving: Evolving, write: Write) -> None:
    """The first run reads a newer record, but leaves it: its file, the last one, has the older schema."""
    sink = evolving(flush_size="3", flush_on_end="false")
    write(sink, 1, range(3))
    write(sink, 2, [3])
    assert sink.run().records == 3
    write(sink, 2, range(4, 6))
    sink.run()
    assert files(sink) == [rows(1, range(3)), rows(2, range(3, 6))]


def test_offsets_that_are_set_back_begin_without_a_schema(evolving: Evolving, write: Write) -> None:
    sink = evolving()
    write(sink, 1, range(3))
    write(sink, 2, range(3, 6))
    sink.run()
    sink.set_offsets({0: 0})
    sink.run(topics_dir="again")
    again = [key for key in sink.keys() if key.startswith("again/")]  # noqa: SIM118 (a sink is no dict)
    assert [avro_rows(sink.body(key))[0] for key in again] == [{"n": 0}, {"n": 3, "note": "noted"}]


def test_lost_files_are_copied_again_with_the_schema_that_counted(
    evolving: Evolving, write: Write, steps: Steps
) -> None:
    sink = evolving()
    write(sink, 2, range(3))
    sink.run()
    write(sink, 1, range(3, 6))
    steps.crash(crash_points.MANIFEST_WRITTEN)
    with pytest.raises(Crashed):
        sink.try_run()
    hdfs, base = hdfs_files.split(sink.base)
    for name in sink.uploads():
        hdfs.delete(f"{base}/{name}")
    write(sink, 1, range(6, 8))
    sink.run()
    assert files(sink) == [rows(2, range(3)), rows(2, range(3, 6), "none"), rows(2, range(6, 8), "none")]


def test_the_last_file_of_another_connector_tells_the_schema(evolving: Evolving, write: Write) -> None:
    first = evolving()
    write(first, 2, range(3))
    first.run()
    second = evolving(topics_dir="topics")
    second.topic, second.bucket = first.topic, first.bucket
    write(second, 1, range(3, 6))
    assert second.run().records == 3
    assert files(second) == [rows(2, range(3)), rows(2, range(3, 6), "none")]


def test_a_damaged_last_file_fails_the_run_and_is_named(evolving: Evolving, write: Write) -> None:
    sink = evolving()
    name = f"topics/{sink.topic}/partition=0/{sink.topic}+0+0000000000+0000000000.avro"
    hdfs_files.put(f"{sink.base}/{name}", b"no Avro")
    write(sink, 1, range(3))
    report = sink.try_run()
    assert f"{name}, the last file of its topic-partition, cannot be read" in json.dumps(report.error)
    assert sink.keys() == [name]

"""A topic, its backup by a sink, and the topic that is restored from it: byte for byte the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_connect.kafka.reading.message_headers import HEADERS
from airflow_connect.kafka.writing.produced import ProducedColumns
from airflow_connect.kafka.writing.task_producer import TaskProducer
from tests.integration.connectors.files.s3.objects import AVRO_FORMAT, PARQUET_FORMAT
from tests.support.copies.hdfs import HdfsSink
from tests.support.copies.local import local_sink
from tests.support.copies.restore import HDFS_SOURCE, Restore, local_restore_of, restore_of, stored

pytestmark = pytest.mark.integration

ODD_HEADERS = [(b"a", b"1"), (b"na\xffme", None), (b"a", b""), (b"", b"\xff")]
WHOLE = {"store.kafka.records": "true", "flush.size": "4"}
ORC_FORMAT = "io.confluent.connect.hdfs.orc.OrcFormat"
HOURLY = {
    "partitioner.class": "io.confluent.connect.storage.partitioner.HourlyPartitioner",
    "locale": "en",
    "timezone": "UTC",
    "timestamp.extractor": "Record",
    "flush.size": "1000",
}


@pytest.fixture
def filled(kafka: Any, make_topic: Any, produce: Any) -> str:
    """A topic with everything that a backup must keep."""
    topic: str = make_topic(3)
    latest = 1_795_000_000_000
    rows = [(0, b"k", b"v", latest, [("h", b"x"), ("h", None)]), (0, b"k", None, 5, []), (2, None, b"", 1, [])]
    produce(topic, rows)
    produce.transaction(topic, [(0, None, b"", 1_600_000_000_000, []), (1, b"", b"\0\xff", 7, [])], "commit")
    produce.transaction(topic, [(0, b"aborted", b"", 9, [])], "abort")
    # Hours alternate: files of a time partitioner interleave.
    times = [1_700_000_000_000 + (n % 3) * 3_600_000 for n in range(30)]
    produce(topic, [(n % 2, f"{n}", f"value {n}" * n, at, [("n", b"%d" % n)]) for n, at in enumerate(times)])
    producer = TaskProducer({"bootstrap.servers": kafka.bootstrap}, "", 60_000)
    producer.fence()
    headers = pa.array([[{"key": name, "value": value} for name, value in ODD_HEADERS]], HEADERS)
    one = pa.array([b"odd"], pa.binary())
    producer.send_columns(ProducedColumns(topic, one, one, 1, None, headers))
    producer.flush()
    producer.close()
    return topic


@pytest.mark.parametrize("columnar", [True, False], ids=["columns", "records"])
@pytest.mark.parametrize("file_format", [AVRO_FORMAT, PARQUET_FORMAT], ids=["avro", "parquet"])
def test_restored_from_a_bucket(kafka: Any, filled: str, make_sink: Any, file_format: str, columnar: bool) -> None:
    sink = make_sink(filled, **WHOLE, **{"format.class": file_format, "parquet.codec": "zstd"})
    sink.run()
    restore = restore_of(sink, f"{filled}-restored")

    report = restore.run(columnar=columnar)

    originals = stored(kafka.bootstrap, filled)
    assert stored(kafka.bootstrap, restore.target) == originals
    assert report.records == len(originals)
    assert [one for one in report.notes if one.startswith("Created ")]
    again = restore.run()
    assert (again.status, again.records) == ("empty", 0)


def test_restored_from_files_that_interleave(kafka: Any, filled: str, make_sink: Any) -> None:
    sink = make_sink(filled, **{**WHOLE, **HOURLY}, **{"format.class": PARQUET_FORMAT})
    sink.run()
    assert len(sink.keys()) > 6
    restore = restore_of(sink, f"{filled}-restored")
    restore.run(**{"run.max.records": "7"})
    restore.run(columnar=False, **{"run.max.records": "7"})
    restore.run()
    assert stored(kafka.bootstrap, restore.target) == stored(kafka.bootstrap, filled)


def test_restored_from_a_directory_after_each_backup(kafka: Any, filled: str, produce: Any, tmp_path: Path) -> None:
    sink = local_sink(kafka, tmp_path, filled, **WHOLE, **{"format.class": "ParquetFormat"})
    sink.run()
    restore = local_restore_of(sink, f"{filled}-restored")
    restore.run()
    produce(filled, [(n % 3, f"{n}", b"later", 1_700_000_000_000, []) for n in range(10)])
    sink.run()
    report = restore.run()
    assert report.records == 10
    assert stored(kafka.bootstrap, restore.target) == stored(kafka.bootstrap, filled)


def test_restored_from_orc_files_in_hdfs(kafka: Any, filled: str, hdfs: Any, unique_name: str) -> None:
    settings = {**WHOLE, "format.class": ORC_FORMAT}
    sink = HdfsSink(kafka, None, unique_name, f"sink-{unique_name}", filled, settings, hdfs=hdfs)  # type: ignore[arg-type]
    sink.run()
    config = {"connector.class": HDFS_SOURCE, "store.url": sink.base, "format.class": ORC_FORMAT}
    restore = Restore(kafka.bootstrap, filled, f"{filled}-restored", config)
    restore.run()
    assert stored(kafka.bootstrap, restore.target) == stored(kafka.bootstrap, filled)


def test_offset_tells_where_the_restore_is(kafka: Any, filled: str, make_sink: Any) -> None:
    sink = make_sink(filled, **WHOLE, **{"format.class": PARQUET_FORMAT})
    sink.run()
    restore = restore_of(sink, f"{filled}-restored")
    report = restore.run()
    found = restore.offsets()
    assert sorted(found) == [0, 1, 2]
    assert found[2]["position"] == found[2]["first_open"] == 1
    assert found[2]["target"] == restore.target
    assert json.dumps(found[2]) and found[2]["version"] and found[2]["run"] == report.run_id

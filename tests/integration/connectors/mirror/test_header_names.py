"""Names of headers are bytes: producers in C, Go and Rust write any, and a mirror copies them as they are."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from airflow_connect.kafka.clients.short_lived import admin_client
from airflow_connect.kafka.reading.batch_reader import RangeReader
from airflow_connect.kafka.reading.message_headers import HEADERS
from airflow_connect.kafka.reading.topic_contents import ranges_of
from airflow_connect.kafka.writing import task_producer
from airflow_connect.kafka.writing.produced import ProducedColumns
from airflow_connect.kafka.writing.task_producer import TaskProducer
from tests.integration.connectors.mirror.conftest import Mirror

pytestmark = pytest.mark.integration
ODD = [[{"key": b"na\xffme", "value": b"1"}], [], [{"key": b"\xc3", "value": None}, {"key": b"ok", "value": b""}]]


def write_odd(mirror: Mirror, times: int = 1) -> None:
    """Records with such names between others, below Python's client."""
    producer = TaskProducer({"bootstrap.servers": mirror.source}, "", 60_000)
    producer.fence()
    rows = ODD * times
    values: Any = pa.array([str(n).encode() for n in range(len(rows))], pa.binary())
    stamps = pa.array([1_600_000_000_000 + n for n in range(len(rows))], pa.int64())
    producer.send_columns(ProducedColumns(mirror.topic, values, values, 0, stamps, pa.array(rows, HEADERS)))
    producer.flush()
    producer.close()


def raw(bootstrap: str, topic: str) -> list[tuple[bytes, Any]]:
    """Value and headers of all records of partition 0, with names as bytes."""
    settings = {"bootstrap.servers": bootstrap, "isolation.level": "read_committed"}
    reader = RangeReader(settings, ranges_of(admin_client(settings), topic)[:1])
    found: list[tuple[bytes, Any]] = []
    for batch in reader.columns():
        headers = batch.headers()
        rows = [[]] * len(batch) if headers is None else headers.to_pylist()
        found += zip(batch.values.to_pylist(), rows, strict=True)
    return found


@pytest.mark.parametrize("columnar", [True, False], ids=["columnar", "records"])
def test_names_that_are_not_utf8_are_copied_byte_for_byte(mirror: Mirror, columnar: bool) -> None:
    mirror.write(mirror.topic, [(0, None, "before", 1, [("h", b"1")])])
    write_odd(mirror, 20)
    mirror.write(mirror.topic, [(0, None, "after", 1, [("h", b"1")])])

    assert mirror.run(columnar=columnar).records == 62

    assert raw(mirror.target, mirror.remote) == raw(mirror.source, mirror.topic)


def test_names_that_are_not_utf8_pass_a_transformation_unchanged(mirror: Mirror) -> None:
    write_odd(mirror)
    mirror.run(
        transforms="mark",
        transforms_mark_type="org.apache.kafka.connect.transforms.InsertHeader",
        transforms_mark_header="from",
        transforms_mark_value_literal="west",
        header_converter="org.apache.kafka.connect.storage.StringConverter",
    )

    added = {"key": b"from", "value": b"west"}
    copied = raw(mirror.target, mirror.remote)
    assert [[one["key"] for one in headers] for _, headers in copied] == [
        [one["key"] for one in [*headers, added]] for headers in ODD
    ]


def test_batch_that_is_too_large_for_the_queue_is_copied_with_its_names(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_producer, "QUEUE_MESSAGES", 40)
    write_odd(mirror, 10)

    mirror.run()

    assert raw(mirror.target, mirror.remote) == raw(mirror.source, mirror.topic)


def test_name_that_the_python_client_cannot_write_fails_the_run_with_a_sentence(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow_connect.kafka.clients.librdkafka import NotDirectError

    def refuse(*_: object) -> None:
        raise NotDirectError("it is another version")

    write_odd(mirror)
    monkeypatch.setattr(task_producer, "direct_produce", refuse)

    error = mirror.try_run().error

    assert error["code"] == "data.unwritable_header"
    assert "b'na\\xffme'" in error["message"] and "it is another version" in error["message"]
    assert raw(mirror.target, mirror.remote) == []

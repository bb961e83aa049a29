"""Names of headers that are not UTF-8, as producers in C, Go and Rust write them: read on every path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_connect.api.offsets import OffsetRange
from airflow_connect.errors import DataError
from airflow_connect.kafka.clients.librdkafka import NotDirectError
from airflow_connect.kafka.reading import batch_fetch
from airflow_connect.kafka.reading.batch_reader import RangeReader
from airflow_connect.kafka.reading.message_headers import HEADERS
from airflow_connect.kafka.writing.produced import ProducedColumns
from airflow_connect.kafka.writing.task_producer import TaskProducer
from tests.support.copies.local import local_sink

pytestmark = pytest.mark.integration

RAW = [("a", b"0"), (b"na\xffme", b"1"), ("a", None), (b"\xc3\x28\xf0\x9f", b"")]
"""Of each record: a name twice, a null and an empty value, and names that end in the middle of a character."""
TEXT = [("a", b"0"), ("na\ufffdme", b"1"), ("a", None), ("\ufffd(\ufffd", b"")]


def raw(name: str | bytes) -> bytes:
    """A name as bytes."""
    return name if isinstance(name, bytes) else name.encode()


@pytest.fixture
def topic(kafka: Any, make_topic: Any, produce: Any) -> str:
    """Five records; the second and the fourth one have such headers."""
    name: str = make_topic()
    producer = TaskProducer({"bootstrap.servers": kafka.bootstrap}, "", 60_000)
    producer.fence()
    headers = pa.array([[{"key": raw(name), "value": value} for name, value in RAW]], HEADERS)
    for number in range(5):
        if number % 2:
            value = pa.array([b'{"n": %d}' % number], pa.binary())
            producer.send_columns(ProducedColumns(name, pa.array([b"k"], pa.binary()), value, 0, None, headers))
            producer.flush()
        else:
            produce(name, [(0, b"k", b'{"n": %d}' % number, 0, [("ok", b"1")])])
    producer.close()
    return name


def reader(kafka: Any, topic: str) -> RangeReader:
    """Reads all five."""
    return RangeReader({"bootstrap.servers": kafka.bootstrap}, [OffsetRange(topic, 0, 0, 5)])


def text_of(headers: Any) -> list[Any]:
    """Names and values of the headers of each record."""
    return [[(one["key"], one["value"]) for one in record] for record in headers.to_pylist()]


def test_records_have_the_names_that_kafka_connect_would_see(kafka: Any, topic: str) -> None:
    found = [record for _, records in reader(kafka, topic).records() for record in records]

    assert [record.offset for record in found] == [0, 1, 2, 3, 4]
    assert [list(record.headers) for record in found] == [[("ok", b"1")], TEXT, [("ok", b"1")], TEXT, [("ok", b"1")]]


@pytest.mark.parametrize("path", ["direct", "client"])
def test_columns_have_the_bytes_and_their_records_the_text(
    kafka: Any, topic: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if path == "client":
        real, calls = batch_fetch.open_fetch, []

        def not_first(*arguments: Any) -> Any:
            calls.append(arguments)
            if len(calls) == 1:
                raise NotDirectError("of the test")
            return real(*arguments)

        monkeypatch.setattr(batch_fetch, "open_fetch", not_first)

    batches = list(reader(kafka, topic).columns())

    headers = [one for batch in batches for one in text_of(batch.headers())]
    encoded = [one or b"" for batch in batches for one in batch.header_bytes().to_pylist()]
    records = [list(record.headers) for batch in batches for record in batch.records()]
    ok = [(b"ok", b"1")]
    assert headers == [ok, *([[(raw(name), value) for name, value in RAW], ok] * 2)]
    assert records == [[("ok", b"1")], *([TEXT, [("ok", b"1")]] * 2)]
    assert [all((value or b"") in found for _, value in one) for one, found in zip(records, encoded, strict=True)] == (
        [True] * 5
    )


def test_client_that_cannot_read_a_name_fails_with_the_place_and_the_name(
    kafka: Any, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> Any:
        raise NotDirectError("only 64-bit Linux is supported")

    monkeypatch.setattr(batch_fetch, "open_fetch", refuse)

    for read in (lambda: list(reader(kafka, topic).records()), lambda: list(reader(kafka, topic).columns())):
        with pytest.raises(DataError, match=rf"{topic}-0@1 has a header whose name is not UTF-8 \(b'na\\xffme'\)"):
            read()


@pytest.mark.parametrize("tolerance", ["none", "all"])
@pytest.mark.parametrize("path", ["columns", "records"])
def test_sinks_copy_such_records_on_both_paths(
    kafka: Any, topic: str, tmp_path: Path, tolerance: str, path: str
) -> None:
    sink = local_sink(kafka, tmp_path / "out", topic, errors_tolerance=tolerance)
    if path == "records":
        sink.config |= {
            "transforms": "f",
            "transforms.f.type": "org.apache.kafka.connect.transforms.InsertHeader",
            "transforms.f.header": "x",
            "transforms.f.value.literal": "y",
        }

    assert sink.run().records == 5
    sink.assert_exactly_once([{"n": n} for n in range(5)])


def test_stored_headers_have_the_replaced_names(kafka: Any, topic: str, tmp_path: Path) -> None:
    sink = local_sink(kafka, tmp_path / "out", topic, store_kafka_headers="true")

    sink.run()

    keys = sink.keys()
    (stored,) = [key for key in keys if "headers" in key]
    assert "na\ufffdme".encode() in sink.body(stored)

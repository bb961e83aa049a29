"""Headers of many records decoded at once are those that were encoded, and those that are read one by one."""

from __future__ import annotations

import ctypes
from itertools import count

import numpy as np
import pytest
from confluent_kafka import Producer
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.api.offsets import OffsetRange
from airflow_connect.kafka.reading.batch_reader import RangeReader
from airflow_connect.kafka.reading.column_batch import ColumnBatch
from airflow_connect.kafka.reading.message_headers import (
    BrokenHeadersError,
    RecordHeaders,
    as_client_tells,
    headers_array,
    headers_of,
    parse_headers,
)
from tests.support.servers.mock_kafka import MockKafka
from tests.support.session.searching import examples

NAME = (
    st.sampled_from(["a", "trace-id", "", "ü€", "x" * 200]) | st.text(max_size=30).filter(lambda one: "\0" not in one)
).map(str.encode)
VALUE = st.none() | st.binary(max_size=40) | st.binary(min_size=200, max_size=9000)
# Nothing says that a name is UTF-8; the Python client can only write names that are.
RECORDS = st.lists(st.lists(st.tuples(NAME | st.binary(max_size=9), VALUE), max_size=4), min_size=1, max_size=30)
TEXT_RECORDS = st.lists(st.lists(st.tuples(NAME, VALUE), max_size=4), min_size=1, max_size=30)
_TOPIC_NUMBERS = count()


def varint(number: int) -> bytes:
    """Zigzag, seven bits a byte."""
    coded, encoded = (number << 1) ^ (number >> 63), bytearray()
    while coded > 0x7F:
        encoded.append(coded & 0x7F | 0x80)
        coded >>= 7
    return bytes([*encoded, coded])


def encoded(headers: RecordHeaders) -> bytes:
    """As in a record of Kafka."""
    parts = [varint(len(headers))]
    for name, value in headers:
        parts += [varint(len(name)), name, varint(-1 if value is None else len(value)), value or b""]
    return b"".join(parts)


def parsed(blobs: list[bytes]) -> list[RecordHeaders] | None:
    """What `parse_headers` finds in memory."""
    held = [ctypes.create_string_buffer(blob, len(blob) + 1) for blob in blobs]
    addresses = np.array([ctypes.addressof(one) for one in held], np.int64)
    found = parse_headers(addresses, np.array([len(blob) for blob in blobs], np.int64))
    held.clear()
    return None if found is None else [headers_of(found, number) for number in range(len(blobs))]


@given(RECORDS)
def test_headers_are_those_that_were_encoded(records: list[list[tuple[bytes, bytes | None]]]) -> None:
    wanted = [tuple(headers) for headers in records]
    column = headers_array(records)

    assert (parsed([encoded(headers) for headers in records]) or [()] * len(records)) == wanted
    assert column is not None or not any(records)
    assert column is None or [headers_of(column, number) for number in range(len(records))] == wanted


@given(st.binary(min_size=2, max_size=40), RECORDS)
def test_bytes_that_are_no_headers_are_refused_or_read_within_their_bounds(
    junk: bytes, records: list[list[tuple[bytes, bytes | None]]]
) -> None:
    try:
        found = parsed([*(encoded(headers) for headers in records), junk])
    except BrokenHeadersError:
        return
    assert found is not None and found[: len(records)] == [tuple(headers) for headers in records]


@pytest.fixture(scope="module")
def mock() -> MockKafka:
    return MockKafka()


@settings(max_examples=examples(40))
@given(TEXT_RECORDS)
def test_column_of_fetched_messages_has_the_headers_of_their_records(
    mock: MockKafka, records: list[list[tuple[bytes, bytes | None]]]
) -> None:
    topic = f"headers-{next(_TOPIC_NUMBERS)}"
    mock.create(topic)
    producer = Producer({"bootstrap.servers": mock.bootstrap})
    for headers in records:
        producer.produce(topic, b"v", headers=[(name.decode(), value) for name, value in headers])
    producer.flush(30)
    reader = RangeReader(
        {"bootstrap.servers": mock.bootstrap, "group.id": "g", "enable.auto.commit": False},
        [OffsetRange(topic, 0, 0, len(records))],
    )

    batches: list[ColumnBatch] = list(reader.columns())
    found = [found for batch in batches for found in of_batch(batch)]
    sliced = [found for batch in batches for found in of_batch(batch.slice(len(batch) // 2, len(batch)))]

    assert found == [tuple(headers) for headers in records]
    of_records = [record.headers for batch in batches for record in batch.records()]
    assert of_records == [tuple((name.decode(), value) for name, value in headers) for headers in records]
    assert len(batches) > 1 or sliced == found[len(found) // 2 :]


def of_batch(batch: ColumnBatch) -> list[RecordHeaders]:
    """Headers of every record of a batch."""
    column = batch.headers()
    encoded = batch.header_bytes().to_pylist()
    assert len(encoded) == len(batch)
    for number, found in enumerate(encoded):
        values = [value for _, value in (() if column is None else headers_of(column, number))]
        assert all(value in (found or b"") for value in values if value is not None)
    return [() if column is None else headers_of(column, number) for number in range(len(batch))]


def test_names_with_a_zero_byte_are_read_in_full_and_known_as_what_librdkafka_tells():
    headers = ((b"a\0b", b"\0"), (b"\0", None), (b"c", b""))

    read = headers_of(headers_array([headers]), 0)

    assert read == headers
    assert as_client_tells(read) == ((b"a", b"\0"), (b"", None), (b"c", b""))

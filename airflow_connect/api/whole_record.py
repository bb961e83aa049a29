"""A Kafka record as one value that has everything: for backups, from which a topic can be restored byte for byte.

Key, value and headers are the bytes of the log; no converter has touched them, so ids of schemas stay. A tombstone is a
record whose `value` is null, in its place among the others. Null, empty and absent are kept apart, and so are repeated
headers and their order. Names of headers are bytes, because a log may hold names that are not UTF-8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_connect.api.record import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME
from airflow_connect.api.schema import (
    BYTES,
    INT32,
    INT64,
    OPTIONAL_BYTES,
    OPTIONAL_INT64,
    OPTIONAL_STRING,
    STRING,
    array,
    struct,
)
from airflow_connect.errors import DataError

if TYPE_CHECKING:
    from airflow_connect.api.record import KafkaRecord

HEADER = struct(("key", BYTES), ("value", OPTIONAL_BYTES), name="KafkaHeader")
WHOLE_RECORD = struct(
    ("topic", STRING),
    ("partition", INT32),
    ("offset", INT64),
    ("timestamp", OPTIONAL_INT64),
    ("timestamp_type", OPTIONAL_STRING),
    ("key", OPTIONAL_BYTES),
    ("value", OPTIONAL_BYTES),
    ("headers", array(HEADER)),
    name="KafkaRecord",
)
"""`timestamp`: milliseconds since the epoch; a plain number, because producers may write instants that readers of
timestamps refuse. It and `timestamp_type` are null for a record without one, which brokers before 0.10 have written."""

TIMESTAMP_TYPES = {TIMESTAMP_CREATE_TIME: "CreateTime", TIMESTAMP_LOG_APPEND_TIME: "LogAppendTime"}
"""Kafka's names (org.apache.kafka.common.record.TimestampType)."""
_REPLACED = "\ufffd"


def whole_record(record: KafkaRecord) -> dict[str, Any]:
    """The value of WHOLE_RECORD for a message.

    Raises:
        DataError: the name of a header may have lost bytes on the way here, because they are not UTF-8.
    """
    kind = None if record.timestamp is None else TIMESTAMP_TYPES.get(record.timestamp_type)
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": None if kind is None else record.timestamp,
        "timestamp_type": kind,
        "key": record.key,
        "value": record.value,
        "headers": [{"key": _name(record, name), "value": value} for name, value in record.headers],
    }


def _name(record: KafkaRecord, name: str) -> bytes:
    if _REPLACED in name:
        raise DataError(
            f"The record at {record.where} has a header whose name may not be UTF-8 ({name!r}). Read one by one, such"
            " names lose the bytes that are not.",
            code="data.header_name",
            suggestion="Records in columns keep them: use a version of confluent-kafka that this package knows, and"
            " a partitioner of this package.",
        )
    return name.encode()

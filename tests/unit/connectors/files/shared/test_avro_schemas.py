"""Two speeds, one meaning, for Avro messages of any schema, and for values at the edges of their types."""

from __future__ import annotations

import json
import math
import struct
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_connect.api.record import KafkaRecord
from airflow_connect.runtime.executor.sink import loop as sink_loop
from tests.support.session.searching import examples
from tests.unit.connectors.files.shared import avro_messages
from tests.unit.connectors.files.shared.staging import HDFS, NOW_MS, Outcome, copy
from tests.unit.converters.avro.avro_schemas import Made, encoded, records

FORMATS = {
    **{
        name: {"format.class": f"io.confluent.connect.s3.format.{name.lower()}.{name}Format"}
        for name in ("Json", "Avro", "Parquet")
    },
    "Orc": {
        "connector.class": HDFS,
        "store.url": "hdfs://x:1",
        "storage.class": "HdfsStorage",
        "format.class": "io.confluent.connect.hdfs.orc.OrcFormat",
    },
}
START = b"\0\0\0\0\x01"


def _text(data: bytes) -> bytes:
    return bytes([2 * len(data)]) + data


def _decimal(scale: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": scale}


DOUBLES = [struct.pack("<d", n) for n in (0.0, -0.0, math.nan, math.inf, 5e-324, 1e-3, 9.999e-4, 1e7, 1e21, 0.1)]
FLOATS = [struct.pack("<f", n) for n in (0.0, -0.0, math.nan, -math.inf, 1e-45, 1e-3, 1e7, 16777216.0, 0.1)]
TEXTS = [
    _text(t) for t in (b"", b"a\0b", "é€😀\ufeff\u2028\uffff".encode(), b"\xff\xfe", b"\xed\xa0\x80", b'"\\/\x7f\x01')
]
BYTES = [_text(b) for b in (b"", b"\0", b"\xff", b"\0\x80", b"\0\0\x01", b"\xff\xff", b"\x7f" * 8)]
INTS = encoded("int", [0, -1, 127, 128, -129, 32768, 86_399_999, 86_400_000, (1 << 31) - 1, -(1 << 31)])
LONGS = encoded("long", [0, -1, (1 << 53) + 1, (1 << 63) - 1, -(1 << 63), 253_402_300_800_000])
EDGES: list[tuple[Any, list[bytes]]] = [
    ("boolean", [b"\0", b"\x01", b"\x02"]),
    ("int", INTS),
    ({"type": "int", "logicalType": "date"}, INTS),
    ({"type": "int", "logicalType": "time-millis"}, INTS),
    ({"type": "int", "connect.type": "int8"}, INTS),
    ("long", LONGS),
    ({"type": "long", "logicalType": "timestamp-millis"}, LONGS),
    ("float", FLOATS),
    ("double", DOUBLES),
    ("string", TEXTS),
    ("bytes", BYTES),
    (_decimal(0), BYTES),
    (_decimal(7), BYTES),
    (_decimal(-2), BYTES),
    ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, [b"\0", b"\x02", b"\x01", b"\x04"]),
    (["int", "null"], [b"\x02", b"\0\x02", b"\x01\x02", b"\x04"]),
    ([{"type": "string", "connect.default": "d"}, "null"], [b"\x02", b"\0\0"]),
    ([{"type": "bytes", "connect.default": "\xff"}, "null"], [b"\x02", b"\0\0"]),
    ({"type": "array", "items": ["null", "string"]}, [b"\0", b"\x04\0\x02\0\0", b"\x03\x02\x02\0\0"]),
    ({"type": "map", "values": "int"}, [b"\0", b"\x04\x02a\x02\x02a\x04\0"]),
    (
        {"type": "map", "values": {"type": "long", "logicalType": "timestamp-millis"}},
        [b"\x02\x02a" + value + b"\0" for value in LONGS],
    ),
    ({"type": "map", "values": ["null", {"type": "map", "values": "string"}]}, [b"\0", b"\x04\0\0\x02b\x02\0\0"]),
]


def _copied(avro_type: Any, messages: list[bytes], file_format: str, *, columnar: bool) -> Outcome:
    """What one record after the other becomes."""
    batches = [[KafkaRecord("t", 0, n, None, START + data, NOW_MS, 1, ())] for n, data in enumerate(messages)]
    config = {
        **avro_messages.CONVERTER,
        **FORMATS[file_format],
        "flush.size": "1000",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": "dead",
    }
    with (
        patch.object(avro_messages, "SCHEMAS", {1: avro_type}),
        avro_messages.known_schemas(),
        patch.object(sink_loop, "SMALLEST_COLUMN_BATCH", 1),
    ):
        return copy(config, batches, columnar=columnar, check_each=True)[0]


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize(("avro_type", "values"), EDGES, ids=[json.dumps(avro_type) for avro_type, _ in EDGES])
def test_values_at_the_edges_stage_the_same_files_on_both_paths(
    avro_type: Any, values: list[bytes], file_format: str
) -> None:
    record = {"type": "record", "name": "R", "fields": [{"name": "v", "type": avro_type}]}
    by_record, in_columns = (_copied(record, values, file_format, columnar=columnar) for columnar in (False, True))
    assert in_columns == by_record
    assert not by_record.error
    assert sum(file[3] for file in by_record.files) + len(by_record.dead_letters) == len(values)


@pytest.mark.parametrize("file_format", FORMATS)
@settings(max_examples=examples(8), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_messages_of_any_schema_stage_the_same_files_on_both_paths(file_format: str, data: st.DataObject) -> None:
    avro_type, values = data.draw(records(Made(columnar=data.draw(st.booleans()))))
    messages = encoded(avro_type, data.draw(st.lists(values, min_size=1, max_size=4)))
    by_record, in_columns = (_copied(avro_type, messages, file_format, columnar=columnar) for columnar in (False, True))
    assert in_columns == by_record

"""Messages of ProtobufConverter: columns are what is read record by record, or there are none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from airflow_connect.api.schema import Schema
from airflow_connect.errors import DataError, SchemaError, UnavailableError
from airflow_connect.registry.client import AVRO, PROTOBUF, SchemaText
from airflow_connect.registry.converters.protobuf_converter import ProtobufConverter
from airflow_connect.runtime.executor.sink.column_path import column_path
from tests.support.session.searching import examples
from tests.unit.registry.converters.readers import opened, reads_in_columns

HEAD = 'syntax = "proto3"; package shop; import "google/protobuf/wrappers.proto";'
SCHEMAS: Mapping[int, str] = {
    1: f"{HEAD} message Order {{ int64 id = 1; string note = 2; Line line = 3; message Line {{ int32 n = 1; }} "
    "message Empty {} } message Refund { int64 id = 1; bool ok = 2; }",
    2: f"{HEAD} message Order {{ int64 id = 1; repeated string tags = 4; google.protobuf.Int64Value price = 5; }}",
    3: f"{HEAD} message Loop {{ Loop inner = 1; int64 id = 2; }} message Other {{ int64 id = 1; }}",
    4: "this is no schema",
    5: 'syntax = "proto2"; message Old { optional Kind kind = 1; enum Kind { A = 0; B = 1; } extensions 100 to 200; }'
    " extend Old { optional int32 more = 100; }",
    6: 'syntax = "proto2"; message Outer { optional Inner one = 1; repeated Inner many = 2; map<string, Inner> by = 3; '
    "required int32 id = 4; } message Inner { required int64 n = 1; optional string s = 2; required Leaf leaf = 3; }"
    " message Leaf { required bool ok = 1; optional int32 free = 2; }",
}
FOREIGN, UNKNOWN, AWAY, ELSEWHERE = 20, 21, 22, 23
ORDER, LINE, EMPTY, REFUND = b"\0", b"\4\0\0", b"\4\0\2", b"\2\2"
"""Message indexes of the types of the first schema."""


class Registry:
    """Has the schemas; what a registry means is tested with a real one (tests/integration/registry)."""

    def schema(self, schema_id: int) -> SchemaText:
        if schema_id == AWAY:
            raise UnavailableError("The registry is away.")
        if schema_id == FOREIGN:
            return SchemaText(AVRO, '"long"')
        if schema_id == ELSEWHERE:
            return SchemaText(PROTOBUF, f"{HEAD} message Elsewhere {{ int64 id = 1; }}")
        if schema_id not in SCHEMAS:
            raise SchemaError("There is no such schema.")
        return SchemaText(PROTOBUF, SCHEMAS[schema_id])

    def lookup(self, subject: str, schema: SchemaText, *, deleted: bool) -> Any:
        return None if "Elsewhere" in schema.text else type("Found", (), {"version": 3})()

    def referenced(self, schema: SchemaText) -> dict[str, SchemaText]:
        return {}


def converter(**config: str) -> ProtobufConverter:
    return opened(ProtobufConverter(), Registry(), config)


def message(schema_id: int, indexes: bytes, data: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + indexes + data


def one_by_one(reader: ProtobufConverter, messages: Sequence[bytes]) -> list[tuple[Schema | None, Any]] | None:
    """Schemas and values; None: one is an error, or has fields that are left out."""
    found = []
    for data in messages:
        try:
            found.append(tuple(reader.to_connect("t", data)))
        except DataError:
            return None
    return None if reader.unread.found else found


def check(messages: Sequence[bytes], **config: str) -> bool:
    """Compare both; returns whether there are columns."""
    expected = one_by_one(converter(**config), messages)
    reader = converter(**config)
    if not reads_in_columns(reader, messages, expected):
        return False
    assert not reader.unread.rows
    return True


ONE = message(1, ORDER, b"\x08\x05\x12\x01x\x1a\x02\x08\x01")
BODIES = st.sampled_from(
    [b"", b"\x08\x05", b"\x12\x02\xc3\xbc\x08\x01", b"\x08\x05\x12\x01x\x1a\x02\x08\x01", b"\x1a\x00",
     b"\x22\x01a\x22\x00", b"\x2a\x02\x08\x07", b"\x08", b"\x12\x01\xff", b"\x40\x01",
     b"\x10\x01", b"\x08\x01\x08\x02", b"\xa0\x06\x01"]
)  # fmt: skip
INDEXES = st.sampled_from(
    [ORDER, ORDER, ORDER, b"\2\0", LINE, EMPTY, REFUND, b"\2\4", b"\1", b"\x80", b"\x80\x00", b""]
)
MESSAGES = st.builds(message, st.sampled_from([1, 1, 1, *SCHEMAS, FOREIGN, UNKNOWN, ELSEWHERE]), INDEXES, BODIES)
ODD = st.sampled_from([b"", b"\0", b"\0\0\0\0", b"\0\0\0\0\1", b"\1\0\0\0\1\0", b'{"id":1}', ONE[1:]])


@settings(max_examples=examples(500), deadline=None)
@given(
    messages=st.lists(st.builds(message, st.just(1), st.just(ORDER), BODIES), min_size=1, max_size=4)
    | st.lists(MESSAGES | ODD, min_size=1, max_size=4),
    is_strict=st.booleans(),
    wraps=st.booleans(),
)
@example([ONE, ONE, message(2, ORDER, b"\x22\x01a\x22\x00")], True, False)
@example([ONE, message(1, REFUND, b"\x08\x05\x10\x01")], False, False)
def test_columns_are_what_is_read_record_by_record(messages: list[bytes], is_strict: bool, wraps: bool) -> None:
    check(messages, strict_types=str(is_strict).lower(), wrapper_for_nullables=str(wraps).lower())


@pytest.mark.parametrize(
    ("indexes", "data", "in_columns"),
    [
        (ORDER, b"\x08\x05\x12\x01x", True),
        (b"\2\0", b"\x08\x05", True),  # the long form of the first type
        (LINE, b"\x08\x05", True),
        (REFUND, b"\x08\x05\x10\x01", True),
        (EMPTY, b"", False),
        (b"\2\4", b"", False),
        (b"\x80\x00", b"\x08\x05", True),  # a zero of two bytes
        (b"\x8a\x80\x80\x80\x00" + b"\0\0\0\0\0", b"", False),  # five positions, and no such type
        (ORDER, b"\x40\x01", False),
    ],
)
def test_what_is_read_in_columns(indexes: bytes, data: bytes, in_columns: bool) -> None:
    assert check([message(1, indexes, data)] * 3) is in_columns


def test_types_of_one_schema_are_not_mixed_up() -> None:
    order, refund = message(1, ORDER, b"\x08\x05"), message(1, REFUND, b"\x08\x05")
    assert not check([order, refund])
    assert not check([refund, message(1, b"\2\0", b"\x08\x05")])  # indexes of the same length
    reader = converter()
    for data in (order, refund, order):
        (piece,) = reader.to_columns("t", pa.array([data] * 2, pa.binary())) or [None]
        assert piece is not None and piece.schema is not None
        assert piece.schema.name == ("Order" if data == order else "Refund")
        assert piece.schema.version == 3


def test_each_run_of_ids_is_a_piece() -> None:
    other = message(2, ORDER, b"\x2a\x02\x08\x07")
    pieces = converter().to_columns("t", pa.array([ONE, ONE, other, ONE], pa.binary())) or []
    assert [len(piece) for piece in pieces] == [2, 1, 1]
    assert check([ONE, ONE, other, ONE])
    assert not check([ONE, other] * 4 + [ONE])


def test_fields_that_are_left_out_are_named_by_the_record_path() -> None:
    for data in (message(1, ORDER, b"\x40\x01"), message(5, ORDER, b"\xa0\x06\x01"), message(5, ORDER, b"\x08\x07")):
        assert converter().to_columns("t", pa.array([data], pa.binary())) is None
        reader = converter()
        reader.to_connect("t", data)
        assert reader.unread.found
    assert check([message(5, ORDER, b"\x08\x01"), message(5, ORDER, b"")])


def test_types_that_have_no_columns_are_named_until_the_next_batch() -> None:
    reader = converter()
    assert reader.to_columns("t", pa.array([message(1, EMPTY, b"")], pa.binary())) is None
    assert reader.refused_columns == "schema 1 has types that are not read in columns"
    assert reader.to_columns("t", pa.array([message(1, ORDER, b"\x40\x01")], pa.binary())) is None
    assert reader.refused_columns == ""
    assert reader.to_columns("t", pa.array([message(3, ORDER, b"")], pa.binary())) is None  # An error of each record.
    assert reader.refused_columns == ""


def test_no_messages_are_no_pieces() -> None:
    assert converter().to_columns("t", pa.array([], pa.binary())) == []


def test_schemas_that_cannot_be_used_are_left_to_the_records_and_a_registry_that_is_away_is_an_error() -> None:
    for schema_id in (3, 4, FOREIGN, UNKNOWN, ELSEWHERE):
        reader = converter()
        for _ in range(2):
            assert reader.to_columns("t", pa.array([message(schema_id, ORDER, b"")], pa.binary())) is None
    assert check([message(3, b"\2\2", b"\x08\x05")])  # another type of the schema with the recursive one
    with pytest.raises(UnavailableError):
        converter().to_columns("t", pa.array([message(AWAY, ORDER, b"")], pa.binary()))


def test_converter_has_a_columnar_path() -> None:
    assert column_path(converter(strict_types="true"), ()) is not None


_LEAF, _N = b"\x1a\x02\x08\x01", b"\x08\x07"
_INNER = _N + _LEAF


@pytest.mark.parametrize("strict", ["false", "true"])
@pytest.mark.parametrize(
    ("body", "lacks"),
    [
        (b"\x20\x01", ""),
        (b"\x0a\x06" + _INNER + b"\x20\x01", ""),
        (b"\x12\x06" + _INNER + b"\x1a\x0b\x0a\x01k\x12\x06" + _INNER + b"\x20\x01", ""),
        (b"", "id"),
        (b"\x0a\x06" + _INNER, "id"),
        (b"\x0a\x02" + _N + b"\x20\x01", "one.leaf"),
        (b"\x0a\x04" + _LEAF + b"\x20\x01", "one.n"),
        (b"\x0a\x04" + _N + b"\x1a\x00" + b"\x20\x01", "one.leaf.ok"),
        (b"\x12\x06" + _INNER + b"\x12\x00\x20\x01", "many[1].n, many[1].leaf"),
        (b"\x1a\x03\x0a\x01k\x20\x01", "by[k].n, by[k].leaf"),
    ],
)
def test_message_without_a_required_field_is_refused_as_by_java_and_never_a_column(
    body: bytes, lacks: str, strict: str
) -> None:
    config = {"strict.types": strict}
    good, data = message(6, ORDER, b"\x0a\x06" + _INNER + b"\x20\x05"), message(6, ORDER, body)
    assert check([good, good], **config)
    if not lacks:
        assert check([good, data, good], **config)
        return
    assert not check([good, data, good], **config)
    with pytest.raises(DataError) as caught:
        converter(**config).to_connect("t", data)
    assert caught.value.code == "data.truncated"
    assert f"it does not have the required fields {lacks}." in str(caught.value).replace('"', "")

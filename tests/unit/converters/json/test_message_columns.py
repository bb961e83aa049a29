from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.api.schema import BYTES, OPTIONAL_BYTES, STRING, Schema
from airflow_connect.converters.json.converter import JsonConverter
from airflow_connect.runtime.executor.source.columns import _fits
from tests.support.session.searching import examples


def converter(**options: str) -> JsonConverter:
    made = JsonConverter()
    made.configure({"schemas.enable": "false", **options})
    return made


def one_by_one(messages: list[bytes]) -> list[bytes | None]:
    by_record = converter()
    return [by_record.from_connect("t", *by_record.to_connect("t", message)) for message in messages]


def in_columns(messages: list[bytes]) -> list[bytes] | None:
    by_column = converter()
    found = by_column.to_columns("t", pa.array(messages, pa.binary()))
    if found is None:
        return None
    (lines,) = found
    assert lines.schema is None
    written = by_column.from_columns("t", None, lines.values)
    return None if written is None else list(written.to_pylist())


NUMBERS = st.one_of(
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([1e7, 9999999.5, 1e-3, 9.99e-4, 1e16, 1e22, 123456789.25, -0.0, 10.0005, 5e-324, 2.0**63]),
)
DOCUMENTS = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=5), inner, max_size=4)),
    max_leaves=12,
)
SPELLINGS = (
    json.dumps,
    lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")),
    lambda value: json.dumps(value, indent=1).replace("\n", "\r"),
)


@settings(max_examples=examples(200))
@given(st.lists(st.tuples(DOCUMENTS, st.sampled_from(SPELLINGS)), min_size=1, max_size=8))
def test_messages_in_columns_are_those_of_records(found: list[tuple[Any, Any]]) -> None:
    messages = [spelling(value).encode("utf-8", "surrogatepass") for value, spelling in found]
    columns = in_columns(messages)
    if columns is None:
        assert any(message == b"null" or b"\\ud" in message for message in messages), messages
    else:
        assert columns == one_by_one(messages)


@pytest.mark.parametrize(
    "message",
    [
        '{"a":1e7}',
        '{"a":12345678.5}',
        '{"a":0.0005}',
        '{"a":-0.0005}',
        '{"a":1.0E10}',
        '{"a":1e-7}',
        '{"a":"😀"}',
        '{"a":"\\u001f"}',
        '{"a":"\x7f\\n"}',
        '{"a":1700000000000000000}',
        '{"a":9223372036854775807}',
        '{"a":-9223372036854775808}',
        '{"a":9223372036854775808}',
        '{"a":1e400}',
        '{"a":"10.0005 1e5 \\\\u0041"}',
        '{"a":1} and more',
    ],
)
@pytest.mark.parametrize("others", [0, 200])
def test_values_that_have_another_spelling(message: str, others: int) -> None:
    messages = [b'{"n":%d,"t":"x"}' % n for n in range(others)] + [message.encode()]
    assert in_columns(messages) == one_by_one(messages)


def test_documents_of_an_array_that_was_sliced() -> None:
    by_column = converter()
    (lines,) = by_column.to_columns("t", pa.array([b'{"a":%d.5}' % (10**n) for n in range(9)], pa.binary())) or ()
    found = by_column.from_columns("t", None, lines.values[7:])
    assert found is not None and found.to_pylist() == [b'{"a":1.00000005E7}', b'{"a":1.000000005E8}']
    empty = by_column.from_columns("t", None, lines.values[:0])
    assert empty is not None and empty.to_pylist() == []


def test_envelopes_are_written_one_by_one() -> None:
    (lines,) = converter().to_columns("t", pa.array([b'{"a":1}'], pa.binary())) or ()
    assert converter(**{"schemas.enable": "true"}).from_columns("t", None, lines.values) is None


@pytest.mark.parametrize(("schema", "fits"), [(None, False), (BYTES, True), (OPTIONAL_BYTES, True), (STRING, False)])
def test_documents_without_a_schema_are_not_bytes(schema: Schema | None, *, fits: bool) -> None:
    assert _fits(pa.array([b'{"a":1}\n'], pa.binary()), schema, "BYTES") is fits

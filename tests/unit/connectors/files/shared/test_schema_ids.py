"""Ids of schemas in the records of a backup: the same on both paths."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.connectors.files.shared import schema_ids
from airflow_connect.connectors.files.shared.schema_ids import SchemaIds, joined

BYTES = st.none() | st.binary(max_size=3) | st.binary(max_size=7).map(lambda more: b"\0\0\0\0" + more)


@given(
    records=st.lists(st.fixed_dictionaries({"key": BYTES, "value": BYTES}), max_size=20),
    kind=st.sampled_from([pa.binary(), pa.large_binary()]),
    skipped=st.integers(0, 3),
)
def test_both_paths_find_the_same(records: list[dict[str, Any]], kind: Any, skipped: int) -> None:
    one_by_one, in_columns = SchemaIds(), SchemaIds()
    columns = pa.array(records, pa.struct([("key", kind), ("value", kind)]))[skipped:]
    for record in records[skipped:]:
        one_by_one.add(record)
    in_columns.add_columns(columns)
    assert in_columns.to_json() == one_by_one.to_json()


def test_ids_are_those_after_a_zero_byte() -> None:
    found = SchemaIds()
    for data in (b"\0\0\0\1\2", b"\0\xff\xff\xff\xffx", b"\1\0\0\0\1x", b"\0\0\0\1", b"", None):
        found.add({"key": None, "value": data})
    assert found.to_json() == {"value": [258, 4_294_967_295]}


def test_too_many_are_no_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_ids, "MOST_IDS", 2)
    found = SchemaIds()
    for number in range(4):
        found.add({"key": bytes(5), "value": b"\0" + number.to_bytes(4, "big")})
    assert found.to_json() == {"key": [0], "value": None}
    assert joined([found.to_json(), {"key": [1], "value": [1]}]) == {"key": [0, 1], "value": None}
    assert joined([{"key": [0, 1]}, {"key": [2]}]) == {"key": None}


def test_results_are_joined() -> None:
    assert joined([{"key": [2]}, {}, {"key": [1], "value": [3]}]) == {"key": [1, 2], "value": [3]}

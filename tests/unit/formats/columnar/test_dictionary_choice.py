"""Which columns get a dictionary, from the beginning of a long column or all of it."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_connect.api import schema as s
from airflow_connect.formats.columnar import dictionary_choice
from airflow_connect.formats.columnar.dictionary_choice import choose_dictionary_columns
from airflow_connect.formats.parquet import ParquetFormat

ROWS = 100_000


@pytest.mark.parametrize(
    ("values", "is_chosen"),
    [
        ([f"user {n % 5}" for n in range(ROWS)], True),
        ([f"user {n}" for n in range(ROWS)], False),
        ([f"user {n // 2}" for n in range(ROWS)], False),
        ([f"user {n % 10_000}" for n in range(ROWS)], True),
        ([], True),
    ],
    ids=["five", "all different", "pairs", "a tenth", "empty"],
)
def test_column_gets_a_dictionary_if_that_makes_it_smaller(values, is_chosen):
    table = pa.table({"user": pa.array(values, pa.string())})
    assert choose_dictionary_columns(table) == (["user"] if is_chosen else [])


def test_column_whose_rest_has_more_values_is_written_as_it_is(monkeypatch):
    """Its beginning is repeated, so it gets a dictionary; the writer drops that when it is too large."""
    monkeypatch.setattr(dictionary_choice, "_BEGINNING_ROWS", 1024)
    values = ["the same"] * 2_000 + [f"{n:0500}" for n in range(20_000)]
    written = io.BytesIO()
    schema = s.struct(("text", s.STRING))
    encoder = ParquetFormat("none").open(written, schema)
    for start in range(0, len(values), 5_000):
        part = pa.array(values[start : start + 5_000])
        encoder.append_arrow(pa.record_batch([part], schema=ParquetFormat("none").arrow_schema(schema)))
    encoder.finish()
    assert pq.read_table(io.BytesIO(written.getvalue())).column("text").to_pylist() == values

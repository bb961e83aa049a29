"""Values as text: what has one, and what has none. Texts are compared with the original's in `test_original.py`."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from airflow_connect.connectors.iceberg.texts import text_writer, texts

MS = pa.timestamp("ms", "UTC")


def written(value: Any, kind: pa.DataType) -> str:
    write = text_writer(kind)
    assert write is not None
    (found,) = texts(pa.array([value], kind), write).to_pylist()
    return str(found)


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (float("nan"), pa.float64(), "NaN"),
        (1e10, pa.float32(), "1.0E10"),
        (Decimal("0.0000001"), pa.decimal128(10, 7), "1E-7"),
        ({"t": 5, "n": float("inf"), "q": 'ä"'}, pa.struct([("t", MS), ("n", pa.float64()), ("q", pa.string())]),
         '{"t":5,"n":"Infinity","q":"ä\\""}'),
        ({"m": [(1, None)]}, pa.struct([("m", pa.map_(pa.int32(), pa.bool_()))]), '{"m":[[1,null]]}'),
        ([(7, [True])], pa.map_(pa.int64(), pa.list_(pa.bool_())), '{"7":[true]}'),
        ([Decimal("1.10"), None], pa.list_(pa.decimal128(5, 2)), "[1.10,null]"),
    ],
)  # fmt: skip
def test_values_have_the_text_of_java(value: Any, kind: pa.DataType, text: str) -> None:
    assert written(value, kind) == text


@pytest.mark.parametrize(
    "kind",
    [
        MS, pa.date32(), pa.binary(), pa.int64(), pa.list_(MS), pa.list_(pa.binary()), pa.list_(pa.struct([("a", MS)])),
        pa.map_(pa.string(), pa.date32()), pa.map_(pa.float64(), pa.int32()),
    ],
)  # fmt: skip
def test_types_without_a_text_have_no_writer(kind: pa.DataType) -> None:
    assert text_writer(kind) is None


def test_nulls_stay() -> None:
    write = text_writer(pa.float64())
    assert write is not None
    assert texts(pa.array([None, 0.5]), write).to_pylist() == [None, "0.5"]

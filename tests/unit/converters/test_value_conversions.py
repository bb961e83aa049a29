"""Conversions between value types beyond what the recordings hold."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from airflow_connect.api.schema import INT32, STRING, Type, map_of, struct
from airflow_connect.errors import DataError
from tests.support.values.value_conversions import convert_value


@pytest.mark.parametrize(
    ("target", "value", "expected"),
    [
        (Type.INT8, 300, 44),
        (Type.INT8, 200, -56),
        (Type.INT32, 1 << 31, -(1 << 31)),
        (Type.INT64, 1e300, (1 << 63) - 1),
        (Type.INT64, float("-inf"), -(1 << 63)),
        (Type.INT32, float("nan"), 0),
        (Type.INT64, -2.7, -2),
        (Type.INT64, Decimal("1e20"), 10**20 % (1 << 64)),
        (Type.INT64, "1e3", 1000),
        (Type.FLOAT32, "0.1", 0.10000000149011612),
        (Type.FLOAT64, Decimal("0.5"), 0.5),
        (Type.BOOLEAN, 0, False),
        (Type.BOOLEAN, "0.9", False),
        (Type.BOOLEAN, "false", False),
        (Type.MAP, {"a": 1}, {"a": 1}),
        (Type.STRING, [1, "x"], '[1,"x"]'),
    ],
)
def test_value_converted_is_what_java_casts_it_to(target: Type, value: Any, expected: Any) -> None:
    actual = convert_value(target, None, value)
    assert actual == expected and type(actual) is type(expected)


@pytest.mark.parametrize("text", ["", " 1", "1_0", "NaN", "Infinity", "0x1"])
def test_text_that_only_python_reads_as_a_number_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="to a number"):
        convert_value(Type.INT32, None, text)


def test_struct_is_no_map() -> None:
    with pytest.raises(DataError, match=r"Struct\{a=1\}.*MAP"):
        convert_value(Type.MAP, struct(("a", INT32)), {"a": 1})
    assert convert_value(Type.MAP, map_of(STRING, INT32), {"a": 1}) == {"a": 1}

from __future__ import annotations

import pytest

from airflow_connect.config.keys.points_in_time import parse_timestamp_ms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        (" 1700000000123 ", 1_700_000_000_123),
        ("1970-01-01T00:00:01.500Z", 1500),
        ("1970-01-01", 0),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T23:59:59.999", -1),
    ],
)
def test_parse_timestamp_epoch_or_iso_gives_milliseconds(text: str, expected: int) -> None:
    assert parse_timestamp_ms(text) == expected


@pytest.mark.parametrize("text", ["", "yesterday", "1.5", "9" * 19, "2026-13-01", "-5"])
def test_parse_timestamp_anything_else_says_what_is_expected(text: str) -> None:
    with pytest.raises(ValueError, match="milliseconds since the epoch or ISO 8601"):
        parse_timestamp_ms(text)

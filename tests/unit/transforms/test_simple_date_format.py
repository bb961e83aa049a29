"""Holds date patterns against what Java's SimpleDateFormat wrote and read (tests/data/SimpleDatePatterns.java)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.errors import ConfigError, DataError
from airflow_connect.transforms.simple_date_format import SimpleDateFormat

RECORDINGS = Path(__file__).parents[2] / "data" / "simple_date_patterns.jsonl"
# Two-digit years begin 80 years before this instant, as in the recordings: 2000-01-01T00:00:00Z.
NOW_MS = 3_471_292_800_000
WEEKS_OF_A_COUNTRY = frozenset("YwWF")


def recordings(member: str) -> list[Any]:
    with RECORDINGS.open(encoding="utf-8") as lines:
        every = [json.loads(line) for line in lines]
    return [pytest.param(r, id=r["pattern"]) for r in every if member in r]


@pytest.mark.parametrize("recording", recordings("written"))
def test_format_pattern_equals_java(recording: dict[str, Any]) -> None:
    pattern = SimpleDateFormat(recording["pattern"], NOW_MS)
    written = recording["written"]
    assert [[instant, pattern.format(instant)] for instant, _ in written] == written


# Names of zones come from tables of Java's release: docs/transformations.md.
OTHER_ZONES = {("z", "Pacific Standard Time"), ("Z", "Pacific Standard Time"), ("zzzz", "Pacific Standard Time")}


def test_random_patterns_and_texts_equal_java() -> None:
    """1,700 cases of Java 17: writing, reading, texts with one or two characters changed, October 1582, offsets."""
    wrong = []
    for line in RECORDINGS.with_name("simple_date_random.tsv").read_text("utf-8").splitlines():
        kind, pattern, given, expected = line.split("\t")
        compiled = SimpleDateFormat(pattern, NOW_MS)
        ours = compiled.format(int(given)) if kind == "w" else compiled.parse(given)
        if str(ours) != expected.replace("null", "None") and (pattern, given) not in OTHER_ZONES:
            wrong.append((kind, pattern, given, expected, ours))
    assert wrong == []


def test_text_with_several_zones_is_read_as_java_does() -> None:
    """tests/data/SimpleDateZones.java. Digits count more than UTC, and less than any other name behind them."""
    lines = RECORDINGS.with_name("simple_date_zones.tsv").read_text("utf-8").splitlines()
    wrong = [
        (pattern, text, java, ours)
        for pattern, text, java in (line.split("\t") for line in lines)
        if str(ours := SimpleDateFormat(pattern).parse(text)) != java
    ]
    assert wrong == []
    assert len(lines) == 840 and "null" not in {line.rpartition("\t")[2] for line in lines}


@pytest.mark.parametrize("zone", ["CET", "JST", "Pacific Standard Time", "Europe/Berlin"])
def test_zone_name_of_java_tables_is_refused_and_never_taken_for_another(zone: str) -> None:
    assert SimpleDateFormat("yyyy-MM-dd HH:mm z").parse(f"2023-01-15 10:00 {zone}") is None


@pytest.mark.parametrize("recording", [r for r in recordings("read") if not WEEKS_OF_A_COUNTRY & set(r.id)])
def test_parse_text_equals_java(recording: dict[str, Any]) -> None:
    pattern = SimpleDateFormat(recording["pattern"], NOW_MS)
    ours = []
    for text, _ in recording["read"]:
        try:
            ours.append([text, pattern.parse(text)])
        except DataError:
            ours.append([text, "refused"])
    assert ours == recording["read"]


@pytest.mark.parametrize("recording", recordings("refused"))
def test_pattern_broken_raises_config_error(recording: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        SimpleDateFormat(recording["pattern"])
    assert recording["refused"].lower() in caught.value.message.lower()


@pytest.mark.parametrize("letter", sorted(WEEKS_OF_A_COUNTRY))
def test_parse_week_letter_raises_data_error_that_names_it(letter: str) -> None:
    with pytest.raises(DataError, match=f"pattern letter {letter}"):
        SimpleDateFormat(letter).parse("1")


def test_parse_two_digit_year_on_the_century_border_is_within_100_years() -> None:
    pattern = SimpleDateFormat("yy-MM-dd", 1_700_000_000_123)  # the years begin on 1943-11-14
    assert pattern.parse("43-11-13") == SimpleDateFormat("yyyy-MM-dd").parse("2043-11-13")
    assert pattern.parse("43-11-15") == SimpleDateFormat("yyyy-MM-dd").parse("1943-11-15")


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_parse_what_was_written_gives_the_same_instant(instant_ms: int) -> None:
    for text in ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "DDD yyyy K:mm:ss,SSS a Z", "EEEE d MMMM yyyy kk.mm.ss SSS z"):
        pattern = SimpleDateFormat(text)
        assert pattern.parse(pattern.format(instant_ms)) == instant_ms

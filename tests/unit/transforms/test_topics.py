"""RegexRouter, TimestampRouter, Filter and the predicates: names of topics, in records and in columns."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.api import schema as schemas
from airflow_connect.api.record import Header, SinkRecord
from airflow_connect.errors import ConfigError, DataError
from airflow_connect.java.patterns.compiled import Replacement, compile_java_pattern
from airflow_connect.transforms.filter import Filter
from airflow_connect.transforms.predicates import HasHeaderKey, RecordIsTombstone, TopicNameMatches
from airflow_connect.transforms.simple_date_format import SimpleDateFormat
from airflow_connect.transforms.topics.regex_router import RegexRouter
from airflow_connect.transforms.topics.timestamp_router import TimestampRouter
from tests.support.values.columns import assert_same_both_ways, records_of, to_columns


def configured(kind: type, **config: str) -> Any:
    plugin = kind()
    plugin.configure({key.replace("_", "."): value for key, value in config.items()})
    return plugin


def record(topic: str = "orders", **parts: Any) -> SinkRecord:
    return SinkRecord(topic=topic, partition=0, offset=1, **parts)


@pytest.mark.parametrize(
    ("regex", "replacement", "topic", "expected"),
    [
        ("(.*)-eu", "$1", "orders-eu", "orders"),
        ("(?<name>.*)-eu", "eu.${name}", "orders-eu", "eu.orders"),
        (".*", "all", "orders", "all"),
        ("order", "x", "orders", "orders"),  # not the whole name
        ("o|orders", "x", "orders", "xrders"),  # the first match is shorter than the name
        ("(a)(b)?.*", "$2-$1", "a1", "-a"),  # a group that took no part
        ("(o)rders", "$12", "orders", "o2"),  # there is no group 12
        (r"\Qa.b\E", r"\$1", "a.b", "$1"),
        (r"\p{Alpha}+\d", "x", "orders1", "x"),
        (r"[\p{Alpha}.]+", "x", "or.ders", "x"),
    ],
)
def test_regex_router_renames_as_java_does(regex: str, replacement: str, topic: str, expected: str) -> None:
    router = configured(RegexRouter, regex=regex, replacement=replacement)
    routed = router.apply(record(topic))
    assert (routed.topic, routed.original_topic) == (expected, topic)
    assert router.apply_columns(to_columns([record(topic, value_schema=schemas.INT8, value=1)])).topic == expected


@pytest.mark.parametrize("replacement", ["$2", "$", "x\\", "${name}", "$x"])
def test_regex_router_replacement_without_group_is_a_configuration_error(replacement: str) -> None:
    with pytest.raises(ConfigError) as caught:
        configured(RegexRouter, regex="(.*)", replacement=replacement)
    assert caught.value.config_path == "replacement"


@pytest.mark.parametrize("pattern", ["(", r"\p{Klingon}", "a**", r"\b{g}x", "{", "a{,2}"])
def test_pattern_that_is_refused_is_refused_in_the_configuration(pattern: str) -> None:
    with pytest.raises(ConfigError, match="Invalid regex: "):
        configured(TopicNameMatches, pattern=pattern)
    with pytest.raises(ConfigError, match="Invalid regex: "):
        configured(RegexRouter, regex=pattern, replacement="x")


@given(st.text(max_size=20))
def test_replacement_of_any_quoted_text_is_that_text(text: str) -> None:
    pattern = compile_java_pattern("(.)")
    quoted = re.sub(r"([\\$])", r"\\\1", text)
    found = pattern.search("x")
    assert found is not None
    assert Replacement(quoted, pattern).expand(found) == text


def test_timestamp_router_formats_in_utc_also_before_1970() -> None:
    router = configured(TimestampRouter, topic_format="${timestamp}_${topic}", timestamp_format="yyyy-MM-dd")
    topics = [router.apply(record(timestamp=ms)).topic for ms in (-1, 0, 86_400_000)]
    assert topics == ["1969-12-31_orders", "1970-01-01_orders", "1970-01-02_orders"]


def test_timestamp_router_record_without_timestamp_is_refused() -> None:
    with pytest.raises(DataError, match="Timestamp missing on record: orders-0@1"):
        configured(TimestampRouter).apply(record())


def test_timestamp_router_unknown_letter_names_the_key() -> None:
    with pytest.raises(ConfigError) as caught:
        configured(TimestampRouter, timestamp_format="QQQ")
    assert caught.value.config_path == "timestamp.format"


@settings(deadline=None)
@given(st.lists(st.none() | st.integers(0, 9), min_size=1, max_size=6), st.sampled_from(["orders", "x.*", "o.*"]))
def test_predicates_columns_equal_records(values: list[int | None], pattern: str) -> None:
    records = records_of(schemas.OPTIONAL_INT64, values)
    batch = to_columns(records)
    for predicate in (configured(RecordIsTombstone), configured(TopicNameMatches, pattern=pattern)):
        answer = np.broadcast_to(predicate.test_columns(batch), len(records))
        assert answer.tolist() == [predicate.test(r) for r in records]


def test_filter_drops_all_in_both_forms() -> None:
    assert assert_same_both_ways(configured(Filter), records_of(schemas.INT8, [1, 2, 3]))


def test_has_header_key_compares_whole_names() -> None:
    predicate = configured(HasHeaderKey, name="h")
    assert predicate.test(record(headers=(Header("x", None, 1), Header("h", None, None))))
    assert not predicate.test(record(headers=(Header("H", None, 1),)))


PATTERNS = {
    "yyyyMMdd": 86_400_000, "yyyy-MM-dd HH": 3_600_000, "HHmm": 60_000, "hh a": 3_600_000, "yyyyMMdd a": 3_600_000,
    "yyyyMMddHHmmss": 1000, "SSS": 1, "'S'yyyy": 86_400_000, "EEE": 86_400_000, "w": 86_400_000, "K": 3_600_000,
    "zzz": 86_400_000, "k": 3_600_000,
}  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_texts_are_equal_within_the_unit_of_a_pattern(pattern: str) -> None:
    compiled = SimpleDateFormat(pattern)
    assert compiled.unit_ms == PATTERNS[pattern]
    for first in range(0, 3 * 86_400_000, compiled.unit_ms if compiled.unit_ms > 1000 else 21_600_000):
        texts = {compiled.format(first + part) for part in (0, compiled.unit_ms // 2, compiled.unit_ms - 1)}
        assert texts == {compiled.format(first)}


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 4 * 86_400_000), min_size=1, max_size=5).map(sorted),
    st.integers(0, 20_000),
    st.sampled_from([*PATTERNS]),
    st.booleans(),
)
def test_timestamp_router_in_columns_equals_records(stamps: list[int], day: int, pattern: str, same_day: bool) -> None:
    router = configured(TimestampRouter, timestamp_format=pattern, topic_format="x-${topic}-${timestamp}")
    moved = [(stamp % 86_400_000 if same_day else stamp) + 86_400_000 * day for stamp in stamps]
    records = [
        one.changed(timestamp=stamp) for one, stamp in zip(records_of(schemas.INT64, stamps), moved, strict=True)
    ]
    names = {router.apply(one).topic for one in records}
    assert assert_same_both_ways(router, records) is (len(names) == 1)


def test_timestamp_router_in_columns_needs_timestamps() -> None:
    router = configured(TimestampRouter)
    assert router.apply_columns(to_columns([record(value_schema=schemas.INT8, value=1)])) is None
    early = record(value_schema=schemas.INT8, value=1, timestamp=-1)
    assert router.apply_columns(to_columns([early])) is None


def test_timestamps_of_many_units_are_left_to_the_records() -> None:
    router = configured(TimestampRouter, timestamp_format="SSS")
    records = [one.changed(timestamp=1000 * n) for n, one in enumerate(records_of(schemas.INT64, list(range(101))))]
    assert router.apply_columns(to_columns(records[:100])) is not None
    assert router.apply_columns(to_columns(records)) is None

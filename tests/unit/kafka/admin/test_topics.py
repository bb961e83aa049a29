from __future__ import annotations

import pytest

from airflow_connect.errors import ConfigError
from airflow_connect.kafka.admin.topics import java_pattern


@pytest.mark.parametrize(
    ("regex", "name", "matches"),
    [
        ("orders.*", "orders-eu", True),
        ("orders", "orders-eu", False),
        ("a|b", "ab", False),
        (r"logs\.\d+", "logs.17", True),
        (r"logs\.\d+", "logsx17", False),
        ("(?<env>dev|prod)-x", "prod-x", True),
        ("(?<=a)b|(?<!a)c", "c", True),
        ("(?i)ORDERS", "orders", True),
        (r"[\w.-]+", "A_1.b-c", True),
        (r"\[x", "[x", True),
        ("x++", "xx", True),
        ("(?iu)orders-.*", "ORDERS-1", True),
        ("[a-z&&[^b]]+", "acd", True),
        ("[a-z&&[^b]]+", "abc", False),
        (r"\Qa.b\E", "a.b", True),
        (r"\p{Alpha}+", "abc", True),
    ],
)
def test_java_pattern_matches_whole_names_as_java_does(regex: str, name: str, matches: bool) -> None:
    assert bool(java_pattern(regex).fullmatch(name)) is matches


@pytest.mark.parametrize("regex", [r"\b{g}x", "(?c)a", "(", "*", "{", "a{4294967296}"])
def test_java_pattern_that_is_refused_is_named(regex: str) -> None:
    with pytest.raises(ConfigError) as caught:
        java_pattern(regex)
    assert caught.value.config_path == "topics.regex"
    assert regex in str(caught.value)

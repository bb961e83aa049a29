"""Patterns of java.util.regex against a recording of Java 17 (tests/data/JavaPatterns.java)."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.config.keys import sink as sink_keys
from airflow_connect.config.keys import source as source_keys
from airflow_connect.config.resolved.source import TopicGroup
from airflow_connect.config_providers.environment import EnvVarConfigProvider
from airflow_connect.errors import ConfigError
from airflow_connect.java.patterns import compiled
from airflow_connect.java.patterns.compiled import JavaPattern, Match, Replacement, compile_java_pattern
from airflow_connect.java.patterns.nodes import PatternError
from airflow_connect.kafka.admin.topics import java_pattern

RECORDED = [
    json.loads(line)
    for line in Path(__file__).parents[2].joinpath("data/java_patterns.jsonl").read_text("utf-8").splitlines()
]
REPLACED = [
    json.loads(line)
    for line in Path(__file__).parents[2].joinpath("data/java_replacements.jsonl").read_text("utf-8").splitlines()
]
# What docs/compatibility.md lists.
NOT_SUPPORTED = (
    "is not supported",
    "are not supported",
    "Look-behind group does not have an obvious maximum length",
    "Bad class syntax",
)


def shown(found: Match | None) -> str:
    if found is None:
        return "-"
    groups = range(len(found.groups()) + 1)
    return ",".join("x" if found.start(n) < 0 else f"{found.start(n)}:{found.end(n)}" for n in groups)


def compiled_or_reason(pattern: str) -> JavaPattern | str:
    try:
        return JavaPattern(pattern)
    except PatternError as error:
        return str(error)


def test_recorded_patterns_are_accepted_and_refused_as_in_java() -> None:
    wrong, not_supported = [], 0
    for pattern, *texts in RECORDED:
        ours = compiled_or_reason(pattern)
        if not texts:
            wrong += [pattern] if isinstance(ours, JavaPattern) else []
        elif isinstance(ours, str):
            not_supported += 1
            wrong += [] if any(reason in ours for reason in NOT_SUPPORTED) else [(pattern, ours)]
    assert wrong == []
    assert not_supported < len(RECORDED) / 25  # most of them generated look-behinds


def test_recorded_patterns_match_and_capture_as_in_java() -> None:
    wrong, left_over, count = [], 0, 0
    for pattern, *texts in RECORDED:
        ours = compiled_or_reason(pattern)
        if isinstance(ours, str):
            continue
        for text, whole, first in ((*each, "-", "-")[:3] for each in texts):
            for java, found in ((whole, ours.fullmatch(text)), (first, ours.search(text))):
                count += 1
                if (here := shown(found)) == java:
                    continue
                left_over += 1
                if not differs_in_left_over_groups(java, here):
                    wrong.append((pattern, text, java, here))
    # Which of several empty repetitions a group keeps.
    assert [each for each in wrong if each[0] != "(|a){3}"] == []
    assert count > 12_000 and left_over < 30


def differs_in_left_over_groups(java: str, ours: str) -> bool:
    """Java does not always clear what a group has captured in an attempt that failed."""
    pairs = list(zip(java.split(","), ours.split(","), strict=False))
    return pairs[0][0] == pairs[0][1] and all(a == b or b == "x" for a, b in pairs)


@pytest.mark.parametrize("regex", ["(?iu)orders-.*", "[a-z&&[^b]]+", "(?<region>eu|us)-orders", r"\p{IsLatin}+"])
def test_topics_regex_is_checked_and_used_with_one_meaning(regex: str) -> None:
    problems = sink_keys.sink_keys().validate({"name": "s", "topics.regex": regex})
    assert [p for p in problems if p.name == "topics.regex" and p.errors] == []
    assert java_pattern(regex) is compile_java_pattern(regex)


@pytest.mark.parametrize(
    ("regex", "reason"),
    [
        ("a{4294967296}", "Illegal repetition range"),
        ("a{65536}", "Counts above 65535 are not supported"),
        (r"\b{g}a", r"\\b\{g\} is not supported"),
        ("(?P<a>x)", "Unknown inline modifier"),
        ("(?#c)", "Unknown inline modifier"),
        ("{", "Illegal repetition"),
        ("(" * 200 + ")" * 200, "More than 100 groups inside one another"),
        ("[" * 200 + "a" + "]" * 200, "More than 100 classes inside one another"),
        (r"\p{IsKlingon}", "Unknown character property name"),
        ("(?<=(a|bc))d", "Look-behinds of varying length"),
    ],
)
def test_refused_pattern_is_refused_where_the_configuration_is_checked(regex: str, reason: str) -> None:
    with pytest.raises(PatternError, match=reason):
        JavaPattern(regex)
    found = {p.name: p.errors for p in sink_keys.sink_keys().validate({"name": "s", "topics.regex": regex})}
    assert any("Invalid regex: " in error for error in found["topics.regex"])


def test_dead_letter_topic_is_matched_as_the_topics_are() -> None:
    config = {"name": "s", "topics.regex": "(?iu)DEAD-.*", "errors.deadletterqueue.topic.name": "dead-letters"}
    found = {p.name: p.errors for p in sink_keys.sink_keys().validate(config)}
    assert any("may not be matched by the regex" in error for error in found["topics.regex"])


def test_topic_creation_groups_and_the_environment_take_java_patterns() -> None:
    group = TopicGroup("g", (r"(?<a>x)\k<a>.*", "[a-z&&[^x]]+"), (r"\Qa.b\E.*",), 1, 1)
    assert [group.takes(topic) for topic in ("xx1", "ab", "ax", "a.bc")] == [True, True, False, False]
    creation = {"topic.creation.groups": "g", "topic.creation.g.include": "a**"}
    keys = source_keys.with_topic_creation(source_keys.source_keys(), creation)
    errors = {p.name: p.errors for p in keys.validate(creation)}
    assert any("Invalid regex: " in error for error in errors["topic.creation.g.include"])

    provider = EnvVarConfigProvider({"KAFKA_A": "1", "OTHER": "2"})
    provider.configure({"allowlist.pattern": r"\QKAFKA_\E[A-Z&&[^B]]"})
    assert provider.get("", ["KAFKA_A"]) == {"KAFKA_A": "1"}
    with pytest.raises(ConfigError, match="does not match"):
        provider.get("", ["OTHER"])


def test_pattern_without_end_is_given_up_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "MATCH_TIMEOUT_S", 0.2)
    with pytest.raises(ConfigError, match="took longer") as caught:
        JavaPattern("(a|aa)+c").fullmatch("a" * 60 + "bc")
    assert caught.value.code == "config.regex_too_slow" and "possessive" in str(caught.value.suggestion)


def test_pattern_can_be_pickled() -> None:
    again: Any = pickle.loads(pickle.dumps(JavaPattern("(?P<a_b>x)", python_names=True)))
    assert again.names == {"a_b": 1} and again.fullmatch("x")


def test_replacement_takes_groups_by_number_and_name() -> None:
    pattern = JavaPattern("(?<a>x)(y)?")
    found = pattern.search("x")
    assert found is not None
    assert Replacement(r"[${a}$1$2\$1\\$12]", pattern).expand(found) == r"[xx$1\x2]"


def replaced_or_reason(pattern: JavaPattern, text: str, replacement: str) -> tuple[str | None, str | None]:
    """The text with its first match replaced, or the words of the refusal."""
    found = pattern.search(text)
    assert found is not None
    try:
        put_in = Replacement(replacement, pattern).expand(found)
    except PatternError as error:
        return None, str(error)
    return text[: found.start()] + put_in + text[found.end() :], None


def test_recorded_replacements_are_made_and_refused_as_in_java() -> None:
    """tests/data/JavaReplacements.java: groups, names, backslashes, trailing signs, characters beyond the BMP."""
    wrong = [
        (pattern, text, replacement, ours)
        for pattern, text, replacement, *java in REPLACED
        if (ours := replaced_or_reason(compile_java_pattern(pattern), text, replacement)) != tuple(java)
    ]
    assert wrong == []
    refused = [reason for *_, reason in REPLACED if reason]
    assert (len(REPLACED), len(refused)) == (2000, 1016)
    assert len({reason.partition("{")[0].rstrip(" 0123456789") for reason in refused}) >= 7


def test_group_in_an_empty_repetition_keeps_what_docs_compatibility_says() -> None:
    """Java's answers: `[]` for each of them."""
    ours = {regex: replaced_or_reason(JavaPattern(regex), "a", "[$1]")[0] for regex in ("^(|a){3}$", "^(a|){3}$")}
    assert ours == {"^(|a){3}$": "[a]", "^(a|){3}$": "[]"}
    assert replaced_or_reason(JavaPattern("^(a?){3}$"), "a", "[$1]") == ("[]", None)

"""Recommenders of a ConfigDef, in the order of Kafka Connect's ConfigDef.validate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, ConfigValue, Type
from airflow_connect.api.config.values import InvalidValueError
from airflow_connect.errors import ConfigError


class Recommender:
    """Answers what it is told to, and remembers the order of questions."""

    def __init__(self, asked: list[str], values: Callable[[Mapping[str, Any]], Sequence[Any]]) -> None:
        self.asked, self.values = asked, values

    def valid_values(self, name: str, parsed: Mapping[str, Any]) -> Sequence[Any]:
        self.asked.append(name)
        return self.values(parsed)

    def visible(self, name: str, parsed: Mapping[str, Any]) -> bool:
        return parsed["parent"] != "hide"


def validated(asked: list[str], *keys: ConfigKey, **raw: str) -> dict[str, ConfigValue]:
    return {value.name: value for value in ConfigDef().define(*keys).validate(raw)}


def key(name: str, asked: list[str], values: Sequence[Any] = (), dependents: tuple[str, ...] = ()) -> ConfigKey:
    recommender = Recommender(asked, lambda parsed: values)
    return ConfigKey(name, Type.STRING, "", dependents=dependents, recommender=recommender)


def test_parents_are_asked_before_their_dependents() -> None:
    asked: list[str] = []
    keys = (
        key("grandchild", asked),
        key("child", asked, dependents=("grandchild",)),
        key("parent", asked, dependents=("child",)),
    )
    values = validated(asked, *keys, parent="hide")
    assert asked == ["parent", "child", "grandchild"]
    assert list(values) == ["grandchild", "child", "parent"]
    assert not any(value.visible for value in values.values())


def test_two_parents_leave_the_values_that_both_answers_have() -> None:
    asked: list[str] = []
    answers = iter([["a", "b"], ["b", "c"]])
    child = ConfigKey("child", Type.STRING, "", recommender=Recommender(asked, lambda parsed: next(answers)))
    parents = [ConfigKey(name, Type.STRING, "", dependents=("child",)) for name in ("parent", "other")]
    values = validated(asked, child, *parents)
    assert asked == ["child", "child"]
    assert values["child"].recommended_values == ["b"]


def test_dependent_that_nobody_defines_is_an_error_with_connects_text() -> None:
    values = validated([], ConfigKey("parent", Type.STRING, "", dependents=("missing",)))
    assert values["missing"].errors == ["missing is referred in the dependents, but not defined."]
    assert values["missing"].visible is False


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        (InvalidValueError("Not like that."), "Not like that."),
        (ConfigError("The server names no tables."), "The server names no tables."),
        (ZeroDivisionError("hunter22"), "No values can be recommended for parent: ZeroDivisionError."),
    ],
)
def test_what_a_recommender_raises_becomes_an_error_of_its_key(raised: Exception, message: str) -> None:
    def fail(parsed: Mapping[str, Any]) -> Sequence[Any]:
        raise raised

    parent = ConfigKey("parent", Type.STRING, "x", recommender=Recommender([], fail))
    assert validated([], parent)["parent"].errors == [message]


def test_keys_that_depend_on_each_other_end() -> None:
    asked: list[str] = []
    root = key("parent", asked, dependents=("one",))
    one, two = key("one", asked, dependents=("two",)), key("two", asked, dependents=("one",))
    validated(asked, root, one, two)
    assert asked == ["parent", "one", "two"]

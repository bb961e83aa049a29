"""What the real ConfigDef of Kafka Connect 4.3.1 answers (tests/data/configdef.jsonl), asked of ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.api.config.config_def import REQUIRED, ConfigDef, ConfigKey, Password, Type
from airflow_connect.api.config.plugins import PluginKind, resolve
from airflow_connect.api.config.validators import (
    CaseInsensitiveValidString,
    Composite,
    ListSize,
    NonEmptyString,
    NonEmptyStringWithoutControlChars,
    NonNull,
    Range,
    ValidList,
    ValidString,
)
from airflow_connect.api.config.values import InvalidValueError, convert_to_string, java_double, parse_type
from airflow_connect.errors import ConfigError

RECORDINGS = Path(__file__).parents[3] / "data" / "configdef.jsonl"
CASES = [json.loads(line) for line in RECORDINGS.read_text("utf-8").splitlines()]

REPLAYED_ELSEWHERE = "ConfigTransformer"
"""Replayed in tests/unit/config_providers/test_resolving.py."""

FITTING_INTEGERS_ARE_TAKEN = {135, 180, 181}
"""Java refuses 5L for INT, and 5 for SHORT; Python has one integer type, which is taken wherever it fits."""

SMALL_INTEGERS_ARE_CALLED_INTEGER = {89, 411}
"""For the same reason the message about a misplaced 5L says Integer."""

HIDDEN_HERE = range(410, 415)
"""A PASSWORD that is not text: Connect prints the value, here it is `[hidden]`."""

NO_NULL_POINTER = {531}
"""Connect fails with a NullPointerException, here null is refused in a sentence."""

VALIDATORS = {
    "atLeast(1)": Range(1),
    "between(1,10)": Range(1, 10),
    "atLeast(0L)": Range(0),
    "ValidString(a,b)": ValidString("a", "b"),
    "CaseInsensitiveValidString(Aa,b)": CaseInsensitiveValidString("Aa", "b"),
    "ValidList.in(a,b)": ValidList("a", "b"),
    "ValidList.anyNonDuplicateValues(true,false)": ValidList(empty_allowed=True, null_allowed=False),
    "ValidList.anyNonDuplicateValues(false,false)": ValidList(empty_allowed=False, null_allowed=False),
    "NonEmptyString": NonEmptyString(),
    "NonEmptyStringWithoutControlChars": NonEmptyStringWithoutControlChars(),
    "NonNullValidator": NonNull(),
    "ListSize.atMostOfSize(1)": ListSize(1),
    "CompositeValidator(NonNull,NonEmpty)": Composite(NonNull(), NonEmptyString()),
}


def python_value(recorded: Any) -> Any:
    """A value of the recordings: tagged numbers and lists."""
    if not isinstance(recorded, dict) or not recorded:
        return recorded
    tag, value = next(iter(recorded.items()))
    if tag in ("float32", "float64"):
        return float(value.replace("Infinity", "inf"))
    return list(value) if tag == "list" else value


def comparable(value: Any) -> Any:
    """NaN equals NaN here, and a password is what it hides."""
    if isinstance(value, Password):
        return {"password": value.value, "toString": str(value)}
    return java_double(value) if isinstance(value, float) else value


def cases(operation: str) -> list[Any]:
    chosen = [case for case in CASES if case["op"].split(" ")[0] == operation]
    assert chosen, operation
    return [pytest.param(case, id=f"{case['id']} {case['op']}") for case in chosen]


def the_definition() -> ConfigDef:
    """The definition that the recording program used."""
    return ConfigDef().define(
        ConfigKey("req", Type.STRING, REQUIRED),
        ConfigKey("i", Type.INT, 5, validator=Range(1, 9)),
        ConfigKey("l", Type.LIST, "a,b"),
        ConfigKey("b", Type.BOOLEAN, False),
        ConfigKey("pw", Type.PASSWORD, None),
        ConfigKey("e", Type.STRING, "x", validator=ValidString("x", "y")),
    )


def test_recordings_every_operation_is_replayed_or_listed() -> None:
    replayed = {"parse", "toString", "ensureValid", "convertToString", "validate", "parse-all"}
    assert {case["op"].split(" ")[0] for case in CASES} == replayed | {REPLAYED_ELSEWHERE}


@pytest.mark.parametrize("case", cases("parse"))
def test_parse_recorded_input_gives_recorded_outcome(case: dict[str, Any]) -> None:
    kind = Type(case["op"].split(" ")[1])
    given = python_value(case["input"])

    def parse() -> Any:
        return parse_type("k", given, kind, lambda name: resolve(PluginKind.FORMAT, name))

    if case["id"] in FITTING_INTEGERS_ARE_TAKEN:
        assert parse() == given
        return
    if "error" not in case:
        expected = case["output"]
        assert comparable(parse()) == (
            expected if isinstance(expected, dict) and "password" in expected else comparable(python_value(expected))
        )
        return
    with pytest.raises(InvalidValueError) as caught:
        parse()
    message = case["error"]["message"]
    if case["id"] in HIDDEN_HERE:
        message = message.replace(f"Invalid value {message.split()[2]} ", "Invalid value [hidden] ")
    if case["id"] in SMALL_INTEGERS_ARE_CALLED_INTEGER:
        message = message.replace("java.lang.Long", "java.lang.Integer")
    # The class behind List.of() is an accident of the JVM.
    assert str(caught.value) == message.replace("java.util.ImmutableCollections$List12", "java.util.List")


@pytest.mark.parametrize("case", cases("ensureValid"))
def test_validator_recorded_input_gives_recorded_outcome(case: dict[str, Any]) -> None:
    validator = VALIDATORS[case["op"].partition(" ")[2]]
    given = python_value(case["input"])
    if "error" not in case:
        validator.check("k", given)
        assert case["output"] == "ok"
        return
    with pytest.raises(InvalidValueError) as caught:
        validator.check("k", given)
    if case["id"] in NO_NULL_POINTER:
        assert str(caught.value) == "Invalid value null for configuration k: entry must be non null"
    else:
        assert str(caught.value) == case["error"]["message"]


@pytest.mark.parametrize("case", cases("toString"))
def test_validator_description_is_the_recorded_one(case: dict[str, Any]) -> None:
    assert str(VALIDATORS[case["op"].partition(" ")[2]]) == case["output"]


@pytest.mark.parametrize("case", cases("convertToString"))
def test_convert_to_string_recorded_value_gives_recorded_text(case: dict[str, Any]) -> None:
    kind = Type(case["op"].split(" ")[1])
    assert convert_to_string(python_value(case["input"]), kind) == case["output"]


@pytest.mark.parametrize("case", cases("validate"))
def test_validate_recorded_config_gives_recorded_values_and_errors(case: dict[str, Any]) -> None:
    ours = {value.name: value for value in the_definition().validate(case["input"])}
    for recorded in case["output"]:
        value = ours.pop(recorded["name"])
        assert value.errors == recorded["errors"]
        shown = str(value.value) if isinstance(value.value, Password) else value.value
        assert shown == python_value(recorded["value"])
    assert not ours


@pytest.mark.parametrize("case", cases("parse-all"))
def test_parse_recorded_config_gives_recorded_values_or_names_the_recorded_error(case: dict[str, Any]) -> None:
    definition = the_definition()
    if "error" in case:
        with pytest.raises(ConfigError) as caught:
            definition.parse(case["input"])
        # Connect stops at the first error, here all of them are named.
        assert case["error"]["message"] in caught.value.message
        assert caught.value.config_path
        return
    parsed = definition.parse(case["input"])
    assert {k: str(v) if isinstance(v, Password) else v for k, v in parsed.items()} == {
        name: python_value(value) for name, value in case["output"].items()
    }

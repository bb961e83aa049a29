"""References and what keeps their values from being shown."""

from __future__ import annotations

import json
import pickle
import re
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.api.config.config_def import REQUIRED, ConfigDef, ConfigKey, Password, Problem, Type
from airflow_connect.api.config.references import (
    SHORTEST_HIDDEN,
    Reference,
    ResolvedReferences,
    ResolvedText,
    as_written,
    is_reference,
    references_in,
)
from airflow_connect.api.config.validators import Lambda, Range, ValidList, ValidString
from airflow_connect.api.config.values import invalid
from airflow_connect.errors import AccessError, ConfigError

SECRET = "hunter22"
REFERENCES = ResolvedReferences({"${file:/p:k}": SECRET, "${env:N}": "12"})


def test_references_in_text_are_taken_apart() -> None:
    assert references_in("a${file:/p:k}b${env:N}${x}") == [
        Reference("${file:/p:k}", "file", "/p", "k"),
        Reference("${env:N}", "env", "", "N"),
    ]


def test_resolve_keeps_what_was_written_beside_the_value() -> None:
    resolved = REFERENCES.resolve({"a": "x${file:/p:k}", "b": "${vault:y}", "c": 1, "d": None})
    assert resolved == {"a": "xhunter22", "b": "${vault:y}", "c": 1, "d": None}
    assert as_written(resolved) == {"a": "x${file:/p:k}", "b": "${vault:y}", "c": 1, "d": None}
    assert as_written(REFERENCES.resolve(resolved)) == as_written(resolved)
    assert SECRET not in repr(resolved)
    assert SECRET not in repr(REFERENCES)


def test_resolved_text_is_ordinary_text_that_remembers_through_pickling() -> None:
    text = pickle.loads(pickle.dumps(ResolvedText(SECRET, "${file:/p:k}")))
    assert (text, text.reference, type(text)) == (SECRET, "${file:/p:k}", ResolvedText)
    assert json.dumps(text) == f'"{SECRET}"'
    assert type(str(text)) is str


LONG = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=SHORTEST_HIDDEN, max_size=30).filter(
    lambda text: len(text.strip()) >= SHORTEST_HIDDEN and text.strip() not in "${file:/p:k}"
)


@given(LONG, st.sampled_from([str, lambda t: json.dumps(t)[1:-1], lambda t: quote(t, safe=""), str.strip]))
def test_hide_finds_a_value_in_every_shape(secret: str, shape: Any) -> None:
    references = ResolvedReferences({"${file:/p:k}": secret})
    assert references.hide(f"<{shape(secret)}>") == "<${file:/p:k}>"


def test_hide_finds_lines_and_list_members_as_they_are_printed() -> None:
    references = ResolvedReferences({"${dir:/p:pem}": "-----BEGIN\nMIIabcdef\n-----END", "${env:TOPICS}": "alpha,beta"})
    hidden = references.hide("log: MIIabcdef, topics=[alpha, beta]")
    assert hidden == "log: ${dir:/p:pem}, topics=[${env:TOPICS}]"


def test_hide_leaves_short_values_because_holes_would_tell_them() -> None:
    assert REFERENCES.hide("12 records of 12 partitions") == "12 records of 12 partitions"


def test_hiding_errors_keeps_kind_code_and_key() -> None:
    with pytest.raises(AccessError) as caught, REFERENCES.hiding_errors():
        raise AccessError("hunter22 is refused.", code="s3.x", suggestion="Not hunter22.", config_path="k")
    error = caught.value
    assert (str(error), error.code, error.config_path) == (
        "${file:/p:k} is refused. Not ${file:/p:k}.", "s3.x", "k",
    )  # fmt: skip
    assert SECRET not in str(error.args)


def refuse(name: str, value: Any) -> None:
    raise invalid(name, value, f"it begins with {str(value)[:4]}")


def definition() -> ConfigDef:
    return (
        ConfigDef()
        .define(
            ConfigKey("number", Type.INT, 1, "Number.", Range(1)),
            ConfigKey("mode", Type.STRING, "a", "Mode.", ValidString("a", "b")),
            ConfigKey("list", Type.LIST, "", "List.", ValidList("a", "b")),
            ConfigKey("class", Type.CLASS, None, "Class."),
            ConfigKey("odd", Type.STRING, None, "Odd.", Lambda(lambda n, v: refuse(n, v) if v else None, "even")),
            ConfigKey("sasl.password", Type.PASSWORD, None, "Secret."),
            ConfigKey("free", Type.STRING, REQUIRED, "Free."),
        )
        .define_rule(("free",), lambda parsed: [Problem("free", f"free is {parsed['free']}", f"Not {parsed['free']}.")])
    )


@pytest.mark.parametrize("key", ["number", "mode", "list", "odd", "free"])
@pytest.mark.parametrize("written", ["${file:/p:k}", " ${file:/p:k},${file:/p:k}"])
def test_validate_message_shows_the_reference_and_no_part_of_the_value(key: str, written: str) -> None:
    raw = REFERENCES.resolve({"free": "x", key: written})
    values = {value.name: value for value in definition().validate(raw)}
    told = f"{values[key].errors} {values[key].suggestions}"
    assert values[key].errors
    assert "${file:/p:k}" in told
    assert SECRET[:4] not in told
    with pytest.raises(ConfigError) as caught:
        definition().parse(raw)
    assert SECRET[:4] not in str(caught.value.to_json())


def test_validate_reference_to_a_wrong_number_says_what_is_accepted() -> None:
    (value,) = [v for v in definition().validate(REFERENCES.resolve({"number": "${file:/p:k}"})) if v.name == "number"]
    assert value.errors == [
        "Invalid value ${file:/p:k} for configuration number: the resolved value is not INT, [1,...]"
    ]


def test_masked_puts_references_back() -> None:
    raw = REFERENCES.resolve({"number": "${env:N}", "sasl.password": "${file:/p:k}", "mode": "x${file:/p:k}"})
    assert definition().masked(raw) == {
        "number": "${env:N}", "sasl.password": "${file:/p:k}", "mode": "x${file:/p:k}",
    }  # fmt: skip


def test_parse_gives_what_references_stand_for() -> None:
    raw = REFERENCES.resolve({"number": "${env:N}", "sasl.password": "${file:/p:k}", "free": "x"})
    plain = ConfigDef().define(*definition().keys.values())
    parsed = plain.parse(raw)
    assert (parsed["number"], parsed["sasl.password"]) == (12, Password(SECRET))


KAFKAS_PATTERN = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}")
"""org.apache.kafka.common.config.ConfigTransformer."""


@given(st.text(alphabet="${}:ab\n", max_size=24))
def test_references_are_those_that_kafkas_pattern_finds(text: str) -> None:
    expected = [(m[0], m[1], m[3] or "", m[4]) for m in KAFKAS_PATTERN.finditer(text)]
    assert references_in(text) == expected
    values = {reference.text: f"<{n}>" for n, reference in enumerate(references_in(text))}
    resolved = ResolvedReferences(values).resolve({"key": text})["key"]
    assert resolved == KAFKAS_PATTERN.sub(lambda m: values[m[0]], text)
    assert is_reference(text) == (re.fullmatch(r"\$\{[^}]*:[^}]*\}", text) is not None)

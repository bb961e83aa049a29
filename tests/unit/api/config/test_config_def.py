from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.api.config.config_def import (
    NULL_VALUE,
    REQUIRED,
    ConfigDef,
    ConfigKey,
    KeyFamily,
    Password,
    Problem,
    Type,
)
from airflow_connect.api.config.validators import EnumString, Lambda, OneOf, Range, ValidString
from airflow_connect.api.config.values import (
    HIDDEN,
    InvalidValueError,
    coerce_config,
    coerce_json,
    invalid,
    is_secret_name,
    java_double,
    masked,
    parse_type,
)
from airflow_connect.config.keys.sink import sink_keys
from airflow_connect.errors import ConfigError


def definition() -> ConfigDef:
    return (
        ConfigDef()
        .define(
            ConfigKey("flush.size", Type.INT, REQUIRED, "Records per file. More text.", Range(1)),
            ConfigKey("store.password", Type.PASSWORD, None, "Secret."),
            ConfigKey("shutdown.ms", Type.LONG, 3000, "Time.", ignored="Nothing is shut down."),
            ConfigKey("mode", Type.STRING, "a", "Mode.", ValidString("a", "b")),
        )
        .define_family(KeyFamily("value.converter.", "Nested."), KeyFamily("old.", "Old.", "It is old."))
    )


def test_parse_several_wrong_keys_names_all_and_points_at_the_first() -> None:
    with pytest.raises(ConfigError) as caught:
        definition().parse({"flush.size": "many", "mode": "c"})
    error = caught.value
    assert error.config_path == "flush.size"
    assert "Invalid value many for configuration flush.size: Not a number of type INT." in error.message
    assert "Invalid value c for configuration mode: String must be one of: a, b." in error.message
    assert error.suggestion == ("Set flush.size (INT, [1,...]): Records per file. Set mode (STRING, [a, b]): Mode.")
    assert error.exit_code == 2


def test_parse_json_numbers_and_booleans_are_taken_as_jackson_does() -> None:
    key = ConfigKey("text", Type.STRING, REQUIRED)
    assert ConfigDef().define(key).parse({"text": 1.50}) == {"text": "1.5"}
    assert coerce_json("k", True) == "true"
    assert coerce_json("k", 5) == "5"
    assert coerce_json("k", 1e10) == "1.0E10"
    assert coerce_json("k", None) is None
    assert coerce_config({"a": 1, "b": Password("x")}) == {"a": "1", "b": "x"}


@pytest.mark.parametrize(("value", "kind"), [([1], "an array"), ({"a": 1}, "an object")])
def test_parse_json_array_or_object_is_refused_by_key(value: Any, kind: str) -> None:
    with pytest.raises(ConfigError) as caught:
        definition().parse({"flush.size": "1", "mode": value})
    assert caught.value.config_path == "mode"
    assert kind in caught.value.message


def test_validate_null_value_gives_connects_text() -> None:
    errors = {v.name: v.errors for v in definition().validate({"flush.size": None})}
    assert errors["flush.size"] == [NULL_VALUE]


@pytest.mark.parametrize("value", [5, True, 2.5])
def test_list_that_is_neither_text_nor_list_is_refused_in_connects_words(value: object) -> None:
    """Asked of ConfigDef.parseType of Kafka 4.3.1."""
    shown = str(value).lower()
    with pytest.raises(
        InvalidValueError, match=f"Invalid value {shown} for configuration k: Expected a comma separated list"
    ):
        parse_type("k", value, Type.LIST)


def test_hexadecimal_double_beyond_every_double_is_infinite_as_in_java() -> None:
    assert parse_type("k", "0x1p99999999999", Type.DOUBLE) == float("inf")
    assert parse_type("k", "-0x1p99999999999", Type.DOUBLE) == float("-inf")


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_java_double_any_number_reads_back_as_itself(number: float) -> None:
    text = java_double(number)
    assert float(text) == number
    assert parse_type("k", text, Type.DOUBLE) == number
    mantissa, _, exponent = text.partition("E")
    assert "." in mantissa
    if exponent:
        assert len(mantissa.lstrip("-").partition(".")[0]) == 1


@pytest.mark.parametrize(
    ("number", "text"),
    [(1e7, "1.0E7"), (0.001, "0.001"), (0.0001, "1.0E-4"), (123456789.5, "1.234567895E8"), (-0.0, "-0.0")],
)
def test_java_double_borders_of_decimal_notation_are_javas(number: float, text: str) -> None:
    assert java_double(number) == text


@given(st.integers(-(1 << 70), 1 << 70), st.sampled_from([Type.SHORT, Type.INT, Type.LONG]))
def test_parse_integer_out_of_range_is_refused(number: int, kind: Type) -> None:
    bits = {Type.SHORT: 16, Type.INT: 32, Type.LONG: 64}[kind]
    fits = -(1 << bits - 1) <= number < 1 << bits - 1
    values = ConfigDef().define(ConfigKey("k", kind)).validate({"k": f" {number} "})
    assert (values[0].value == number) if fits else values[0].errors


def test_unknown_keys_gives_nearest_name_also_inside_families() -> None:
    unknown = definition().unknown_keys(
        ["flush.size", "flush.sise", "value.convertor.schemas.enable", "value.converter.x", "zzz"]
    )
    assert unknown == [
        ("flush.sise", "flush.size"),
        ("value.convertor.schemas.enable", "value.converter.schemas.enable"),
        ("zzz", ""),
    ]


def test_ignored_keys_only_given_ones_with_reason() -> None:
    assert definition().ignored_keys(dict.fromkeys(["flush.size", "shutdown.ms", "old.key"], "1")) == [
        ("shutdown.ms", "Nothing is shut down."),
        ("old.key", "It is old."),
    ]


def test_key_without_meaning_beside_another_value_is_ignored_there_only() -> None:
    known = ConfigDef().include(
        definition().define_unused(["flush.size", "delay"], beside=("mode", "Quiet"), reason="All is quiet.")
    )
    assert known.ignored_keys({"flush.size": "1", "mode": " quiet "}) == [("flush.size", "All is quiet.")]
    assert known.ignored_keys({"flush.size": "1", "mode": "loud"}) == []
    assert known.ignored_keys({"flush.size": "1"}) == []


def test_ignored_key_with_wrong_value_is_still_refused() -> None:
    with pytest.raises(ConfigError, match=r"Invalid value soon for configuration shutdown\.ms"):
        definition().parse({"flush.size": "1", "shutdown.ms": "soon"})


def test_rule_runs_only_when_its_keys_are_right() -> None:
    seen: list[Any] = []

    def rule(parsed: Any) -> list[Problem]:
        seen.append(parsed["mode"])
        return [Problem("mode", "Mode and size do not fit", "Change one.")]

    rules = definition().define_rule(("mode", "flush.size"), rule)
    assert [v.errors for v in rules.validate({"flush.size": "x"}) if v.name == "mode"] == [[]]
    assert seen == []
    with pytest.raises(ConfigError) as caught:
        rules.parse({"flush.size": "1"})
    assert (caught.value.message, caught.value.suggestion) == ("Mode and size do not fit.", "Change one.")
    assert seen == ["a"]


def test_define_same_key_twice_is_an_error_of_the_author() -> None:
    with pytest.raises(ConfigError, match="defined twice"):
        definition().define(ConfigKey("mode", Type.STRING, "a"))


def test_define_default_that_its_validator_refuses_is_an_error_of_the_author() -> None:
    with pytest.raises(ConfigError, match="default of configuration n is not valid"):
        ConfigDef().define(ConfigKey("n", Type.INT, 0, validator=Range(1)))


def test_include_takes_keys_families_and_rules() -> None:
    other = definition().define_rule(("mode",), lambda parsed: [Problem("mode", "never")])
    both = ConfigDef().define(ConfigKey("own", Type.STRING, "")).include(other)
    assert list(both.keys)[:2] == ["own", "flush.size"]
    assert both.unknown_keys(["value.converter.x"]) == []
    with pytest.raises(ConfigError, match="never"):
        both.parse({"flush.size": 1})


def test_recommender_fills_values_and_visibility() -> None:
    class Modes:
        def valid_values(self, name: str, parsed: Any) -> list[str]:
            return [name, str(parsed["n"])]

        def visible(self, name: str, parsed: Any) -> bool:
            return bool(parsed["n"] > 1)

    keys = ConfigDef().define(
        ConfigKey("n", Type.INT, 1), ConfigKey("m", Type.STRING, "", recommender=Modes(), group="G")
    )
    values = {v.name: v for v in keys.validate({"n": "2"})}
    assert (values["m"].recommended_values, values["m"].visible) == (["m", "2"], True)
    assert keys.validate({})[1].visible is False
    assert keys.groups == ["G"]
    assert keys.defaults() == {"n": 1, "m": ""}


@pytest.mark.parametrize(
    ("validator", "good", "bad", "text"),
    [
        (EnumString("ignore", "fail"), "IGNORE", "x", "String must be one of: ignore, fail"),
        (OneOf("none", "gzip"), "gzip", "GZIP", "Value must be one of: none, gzip"),
        (OneOf("none", nullable=True), None, "x", "Value must be one of: none"),
    ],
)
def test_confluent_enum_validators_give_confluents_texts(validator: Any, good: Any, bad: str, text: str) -> None:
    validator.check("k", good)
    with pytest.raises(Exception, match=text) as caught:
        validator.check("k", bad)
    assert str(caught.value) == f"Invalid value {bad} for configuration k: {text}"


def test_password_never_shows_itself_and_survives_pickling() -> None:
    secret = Password("s3cr3t")
    assert f"{secret}{secret!r}{[secret]}" == f"{HIDDEN}{HIDDEN}[{HIDDEN}]"
    assert pickle.loads(pickle.dumps(secret)) == secret
    assert secret.value == "s3cr3t"


def test_password_that_was_shown_and_comes_back_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"store\.password: It stands for a secret that was not shown\. Write the sec"
    ):
        definition().parse({"flush.size": "1", "store.password": " [hidden] "})
    assert definition().parse({"flush.size": "1", "store.password": "hidden"})["store.password"].value == "hidden"


@pytest.mark.parametrize(
    "name",
    ["sasl.password", "ssl.keystore.key", "sasl.jaas.config", "aws.secret.access.key", "x.token", "api.key",
     "value.converter.basic.auth.user.info", "ssl.key.passphrase", "s3.sse.customer.key"],
)  # fmt: skip
def test_secret_name_is_recognised_by_its_sound(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name", ["key.converter", "store.kafka.keys", "s3.sse.kms.key.id", "flush.size", "keys.format.class"]
)
def test_secret_name_harmless_names_are_shown(name: str) -> None:
    assert not is_secret_name(name)


def test_masked_hides_secrets_and_keeps_references() -> None:
    raw = {
        "store.password": "x",
        "sasl.jaas.config": "y",
        "a.token": "${file:/p:k}",
        "b.token": "p${file:/p:k}",
        "n": "1",
    }
    assert definition().masked(raw) == {
        "store.password": HIDDEN, "sasl.jaas.config": HIDDEN, "a.token": "${file:/p:k}", "b.token": HIDDEN, "n": "1",
    }  # fmt: skip
    assert masked({"plain": "x"}, ["plain"]) == {"plain": HIDDEN}


SECRET = st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=3)
"""Characters that no message of ours contains."""


def refuse(name: str, value: Any) -> None:
    raise invalid(name, value, "never right")


@given(SECRET, st.sampled_from(list(Type)))
def test_messages_never_contain_a_secret(secret: str, kind: Type) -> None:
    keys = ConfigDef().define(
        ConfigKey("sasl.password", kind, REQUIRED, "", Lambda(refuse, "")),
        ConfigKey("plain", Type.PASSWORD, REQUIRED, "", Lambda(refuse, "")),
    )
    raw = {"sasl.password": secret, "plain": secret}
    with pytest.raises(ConfigError) as caught:
        keys.parse(raw)
    assert secret not in str(caught.value.to_json())
    assert secret not in str(keys.masked(raw))
    assert secret not in str(keys.validate({"plain": secret, "sasl.password": Password(secret)})[1])


def test_masked_address_with_password_is_hidden() -> None:
    shown = ConfigDef().masked({"s3.proxy.url": "http://me:pw@proxy:3128", "store.url": "http://proxy:3128"})

    assert shown == {"s3.proxy.url": HIDDEN, "store.url": "http://proxy:3128"}


@pytest.mark.parametrize(
    "value",
    [
        "password=pw123;user=x", "user=x,db.password=pw123", "Endpoint=sb://x;SharedAccessKey=pw123",
        "Accept: a/b, Authorization: Basic eDp5", "bearer abc.def",
    ],
)  # fmt: skip
def test_masked_text_with_a_login_is_hidden(value: str) -> None:
    assert ConfigDef().masked({"other": value, "query": "SELECT a FROM b WHERE token = 3 AND c=1"}) == {
        "other": HIDDEN,
        "query": "SELECT a FROM b WHERE token = 3 AND c=1",
    }


@pytest.mark.parametrize("name", ["my.pwd", "db.pass", "my.credentials", "gcs.credentials.json", "azure.account.key"])
def test_names_that_suggest_a_secret_are_masked(name: str) -> None:
    others = {"basic.auth.credentials.source": "USER_INFO", "aws.credentials.provider.class": "a.B", "bypass": "x"}
    assert ConfigDef().masked({name: "pw123", **others}) == {name: HIDDEN, **others}


def test_parse_contradiction_gives_the_whole_suggestion_once() -> None:
    with pytest.raises(ConfigError) as caught:
        sink_keys().parse({"name": "n", "connector.class": "S3Sink", "topics": "a", "topics.regex": "b"})
    assert caught.value.suggestion == (
        "Set topics to a comma separated list, or topics.regex to a regular expression, and not both."
    )


def test_validate_never_fails_whatever_plugins_do() -> None:
    def fail(*arguments: Any) -> Any:
        raise KeyError("hunter22")

    broken = ConfigDef().define(
        ConfigKey("a", Type.STRING, REQUIRED, "A.", Lambda(fail, "")),
        ConfigKey("b", Type.INT, 1, "B."),
        ConfigKey("bb", Type.INT, 1, "B."),
        ConfigKey("c", Type.INT, REQUIRED, "C.", Lambda(fail, "")),
    )
    broken.define_rule(("b", "bb"), fail)
    told = {value.name: value.errors for value in broken.validate({"a": "x", "c": ["many"]})}
    assert told["a"] == ["The value of a cannot be checked: KeyError."]
    assert told["b"] == ["The combination of b, bb cannot be checked: KeyError."]
    assert len(told["c"]) == 1
    assert "hunter22" not in str(told)


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:mysql://u:a/hush@db/shop",
        "jdbc:mysql://u:a@/hush@db/shop",
        "jdbc:mysql://u:a?hush@db/shop",
        "jdbc:postgresql://u:12/b==hush@db:5432/shop?ssl=1",
        "jdbc:postgresql:u:hush@db/shop",
        "jdbc:oracle:oci:u/hush@db",
        "https://u:a/hush@search:9200",
    ],
)
def test_password_in_a_url_is_hidden_whatever_characters_it_has(url: str) -> None:
    assert ConfigDef().masked({"connection.url": url}) == {"connection.url": HIDDEN}


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:postgresql://db:5432/shop?user=me@corp",
        "jdbc:oracle:thin:@db:1521:XE",
        "jdbc:oracle:thin:@//db:1521/shop",
        "https://one:9200,https://two:9200",
        "jdbc:postgresql:shop",
    ],
)
def test_url_without_a_password_is_shown(url: str) -> None:
    assert ConfigDef().masked({"connection.url": url}) == {"connection.url": url}

"""Keys of transformations and predicates, held against what Kafka Connect 4.3.1 answered to `validate`."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, KeyFamily, Problem, Type
from airflow_connect.api.config.validators import Range
from airflow_connect.api.transform import Predicate, Transformation
from airflow_connect.config.keys.sink import sink_keys
from airflow_connect.config.keys.transforms import with_chain
from airflow_connect.config.resolved.sink import SinkConnectorConfig
from airflow_connect.config.resolved.transforms import transforms_of
from airflow_connect.errors import ConfigError

RECORDINGS = Path(__file__).parents[3] / "data" / "transform_validation.jsonl"
MINIMAL: dict[str, Any] = {"name": "n", "connector.class": "S3SinkConnector", "topics": "t"}

# Where we mean to differ: case of the recording -> (key, our message, or "" for none).
DIFFERENCES = {
    # A task of Connect fails with `Unknown configuration` only when it starts.
    "pred-undefined": ("transforms.a.predicate", "names the predicate 'q', but predicates is empty."),
    # Aliases of both variants are unique, so they may be used.
    "smt-alias": ("transforms.a.type", ""),
    # A task of Connect fails with it when it starts.
    "smt-tsc-noformat": ("transforms.r.format", "TimestampConverter requires format option to be specified"),
    # The reasons are in the words of Python.
    "smt-regex-bad": ("transforms.r.regex", "Invalid value ( for configuration regex: Invalid regex: "),
    "pred-badregex": ("predicates.p.pattern", "Invalid value [ for configuration pattern: Invalid regex: "),
    "smt-cast-bad": ("transforms.a.spec", "Invalid type found in casting spec: decimal"),
}


class Scaling(Transformation):
    """A transformation of a third party with every kind of key."""

    config_def = (
        ConfigDef()
        .define(
            ConfigKey("factor", Type.INT, validator=Range(1), documentation="Factor, at least 1."),
            ConfigKey("limit", Type.INT, 100, "Largest result."),
            ConfigKey("password", Type.PASSWORD, None, "Password of the server that knows factors."),
        )
        .define_family(KeyFamily("by.", "Factor of one field."))
        .define_rule(
            ("factor", "limit"),
            lambda parsed: (
                [Problem("limit", "The limit is below the factor.", "Raise limit.")]
                if parsed["limit"] < parsed["factor"]
                else []
            ),
        )
    )

    def apply(self, record: Any) -> Any:
        """Unchanged."""
        return record


class Never(Predicate):
    """Holds for nothing."""

    def test(self, record: Any) -> bool:
        """No."""
        return False


class Unfinished(Transformation):
    """Has no `apply`."""


def chain(**config: str) -> dict[str, Any]:
    """A connector with keys in which `_` stands for `.`."""
    return MINIMAL | {key.replace("_", "."): value for key, value in config.items()}


def error_of(raw: dict[str, Any]) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        SinkConnectorConfig.from_config(raw)
    return caught.value


def recordings() -> list[dict[str, Any]]:
    with RECORDINGS.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize("recording", recordings(), ids=lambda recording: recording["case"])
def test_validation_of_recorded_chains_equals_connect(recording: dict[str, Any]) -> None:
    raw = MINIMAL | recording["config"]
    definition = with_chain(sink_keys(), raw)
    found = {value.name: value for value in definition.validate(raw)}
    differing, message = DIFFERENCES.get(recording["case"], ("", ""))

    names = [name for name in found if name.startswith(("transforms", "predicates"))]
    if recording["case"] != "smt-alias":
        assert names == [key["name"] for key in recording["keys"]]
    for key in recording["keys"]:
        if key["name"] == differing:
            errors = found[differing].errors
            assert message in errors[0] if message else errors == []
            continue
        # Connect lets validators speak of a missing value too; once is enough for a reader.
        theirs = key["errors"][:1] if "Missing required" in "".join(key["errors"]) else key["errors"]
        assert [error.rstrip(".") for error in found[key["name"]].errors] == [error.rstrip(".") for error in theirs]
        ours, form = definition.keys[key["name"]], key["definition"]
        if ours.name.count(".") < 2:
            continue  # `transforms` and `predicates` themselves stand among other keys of the connector
        assert (ours.type.value, ours.is_required, ours.importance.value, ours.group, ours.order) == (
            form["type"], form["required"], form["importance"], form["group"], form["order_in_group"],
        )  # fmt: skip


def test_differences_name_recorded_cases() -> None:
    assert DIFFERENCES.keys() <= {recording["case"] for recording in recordings()}


def test_chain_typed_form_has_plugins_settings_predicates_in_order() -> None:
    config = SinkConnectorConfig.from_config(
        chain(
            transforms="b, a", transforms_a_type="HoistField$Value", transforms_a_field="f",
            transforms_a_plugin_version="4.3.1", transforms_a_predicate="p", transforms_a_negate="true",
            transforms_b_type="org.apache.kafka.connect.transforms.Filter",
            predicates="p", predicates_p_type="TopicNameMatches", predicates_p_pattern="x.*",
        )
    )  # fmt: skip

    first, second = config.transforms
    assert (first.alias, first.plugin.path, first.predicate) == ("b", "airflow_connect.transforms.filter:Filter", None)
    assert (second.alias, dict(second.settings), second.negate) == ("a", {"field": "f"}, True)
    assert second.plugin.path == "airflow_connect.transforms.fields.hoist_field:HoistField.Value"
    assert second.predicate is not None
    assert (second.predicate.alias, dict(second.predicate.settings)) == ("p", {"pattern": "x.*"})
    assert [name for name, _ in config.ignored] == ["transforms.a.plugin.version"]
    assert pickle.loads(pickle.dumps(config.transforms)) == config.transforms
    assert transforms_of({}) == ()


@pytest.mark.parametrize("name", ["Cast", "org.apache.kafka.connect.transforms.Cast"])
def test_class_with_variants_error_names_both(name: str) -> None:
    error = error_of(chain(transforms="a", transforms_a_type=name, transforms_a_spec="int8"))
    assert error.config_path == "transforms.a.type"
    assert "transforms.Cast$Key, org.apache.kafka.connect.transforms.Cast$Value?" in error.message


def test_class_with_variants_by_dotted_path_error_names_both() -> None:
    error = error_of(chain(transforms="a", transforms_a_type="airflow_connect.transforms.fields.cast:Cast"))
    assert "Cast$Key" in error.message and "Cast$Value" in error.message


def test_unknown_class_error_has_the_nearest_name() -> None:
    error = error_of(chain(transforms="a", transforms_a_type="Flaten$Value"))
    assert error.message.startswith("Invalid value Flaten$Value for configuration transforms.a.type: Class")
    assert "Did you mean Flatten$Value" in error.suggestion


@pytest.mark.parametrize("name", [f"{__name__}:Never", f"{__name__}:Unfinished", "TopicNameMatches", "json:loads"])
def test_class_of_another_kind_is_named(name: str) -> None:
    error = error_of(chain(transforms="a", transforms_a_type=name))
    assert error.config_path == "transforms.a.type"
    assert name in error.message


def test_third_party_keys_rules_and_families_are_checked_under_the_alias() -> None:
    mine = {"transforms": "s", "transforms_s_type": f"{__name__}:Scaling"}
    assert error_of(chain(**mine)).config_path == "transforms.s.factor"
    assert (
        "for configuration factor: Value must be at least 1" in error_of(chain(**mine, transforms_s_factor="0")).message
    )
    error = error_of(chain(**mine, transforms_s_factor="7", transforms_s_limit="5"))
    assert (error.config_path, error.message) == ("transforms.s.limit", "The limit is below the factor.")

    raw = chain(**mine, transforms_s_factor="7", transforms_s_by_price="2", transforms_s_facto="1")
    config = SinkConnectorConfig.from_config(raw, sink_keys())
    assert config.unknown == (("transforms.s.facto", "transforms.s.factor"),)


def test_secrets_of_a_third_party_are_hidden_and_aliases_are_no_secrets() -> None:
    raw = chain(
        transforms="token", transforms_token_type=f"{__name__}:Scaling", transforms_token_factor="2",
        transforms_token_password="geheim",
    )  # fmt: skip
    masked = with_chain(sink_keys(), raw).masked(raw)
    assert masked["transforms.token.password"] == "[hidden]"
    assert masked["transforms.token.factor"] == "2"
    assert "geheim" not in repr(SinkConnectorConfig.from_config(raw))


def test_keys_of_aliases_that_are_not_listed_are_reported() -> None:
    raw = chain(transforms="a", transforms_a_type="Filter", transforms_b_type="Filter", predicates_p_type="x")
    assert SinkConnectorConfig.from_config(raw).ignored == (
        ("transforms.b.type", "`transforms` lists only a."),
        ("predicates.p.type", "No predicate is listed in `predicates`."),
    )


def test_definition_without_chain_is_the_same_object() -> None:
    base = sink_keys()
    assert with_chain(base, MINIMAL) is base
    raw = chain(transforms="a", transforms_a_type="Filter")
    enriched = with_chain(base, raw)
    assert with_chain(enriched, raw) is enriched
    assert "transforms.a.type" not in base.keys


@pytest.mark.parametrize("value", [None, 5, ["a"], [{}], "a,,a", "  "])
def test_validation_of_a_broken_list_never_raises(value: Any) -> None:
    raw = MINIMAL | {"transforms": value, "transforms.a.type": value, "transforms.a.negate": value}
    found = {v.name: v.errors for v in with_chain(sink_keys(), raw).validate(raw)}
    assert "transforms" in found

"""ConfigInfos against the answers of the real Kafka Connect (tests/data/sink_validation.jsonl)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Type
from airflow_connect.api.config.infos import config_infos, config_key_infos
from airflow_connect.api.config.references import ResolvedReferences
from airflow_connect.config.keys.sink import sink_keys

LINES = [
    json.loads(line)
    for line in (Path(__file__).parents[3] / "data" / "sink_validation.jsonl").read_text("utf-8").splitlines()
]
DEFINITIONS = {line["definition"]["name"]: line["definition"] for line in LINES if "definition" in line}
CASES = [line["case"] for line in LINES if "case" in line]
OURS = {info["name"]: info for info in config_key_infos(sink_keys())}
SAME = ("name", "type", "required", "importance", "group", "width", "display_name", "dependents")


@pytest.mark.parametrize("name", sorted(DEFINITIONS.keys() & OURS.keys()))
def test_key_info_has_the_recorded_members_and_values(name: str) -> None:
    recorded, ours = DEFINITIONS[name], OURS[name]
    assert ours.keys() - {"documentation"} == recorded.keys() - {"documentation"}
    assert {member: ours[member] for member in SAME} == {member: recorded[member] for member in SAME}


def test_places_in_a_group_rise_in_the_order_of_definition() -> None:
    errors = [info["order_in_group"] for info in OURS.values() if info["group"] == "Error Handling"]
    assert errors == sorted(errors)
    assert errors[0] == 1


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_infos_of_a_recorded_configuration_have_the_recorded_errors(case: dict[str, Any]) -> None:
    raw = {**case["config"], "connector.class": "S3SinkConnector"}
    infos = config_infos("S3SinkConnector", sink_keys(), raw)
    assert list(infos) == ["name", "error_count", "groups", "configs"]
    found = {info["value"]["name"]: info["value"]["errors"] for info in infos["configs"]}
    assert infos["error_count"] == sum(map(len, case["errors"].values()))
    assert {name for name, errors in found.items() if errors} == case["errors"].keys()


def test_values_are_text_and_secrets_and_references_are_not_told() -> None:
    keys = ConfigDef().define(
        ConfigKey("n", Type.INT, 5, "", group="G"),
        ConfigKey("list", Type.LIST, "a,b"),
        ConfigKey("password", Type.PASSWORD, None),
        ConfigKey("other.password", Type.PASSWORD, None),
        ConfigKey("url", Type.STRING, None),
    )
    references = ResolvedReferences({"${file:/p:k}": "hunter22"})
    raw = references.resolve({"password": "open-sesame", "other.password": "${file:/p:k}", "url": "h://${file:/p:k}"})
    infos = config_infos("X", keys, raw)
    assert {info["value"]["name"]: info["value"]["value"] for info in infos["configs"]} == {
        "n": "5", "list": "a,b", "password": "[hidden]", "other.password": "${file:/p:k}", "url": "h://${file:/p:k}",
    }  # fmt: skip
    (plain,) = [info["definition"] for info in infos["configs"] if info["definition"]["name"] == "list"]
    told = [plain[member] for member in ("group", "order_in_group", "width", "display_name")]
    assert told == [None, -1, "NONE", "list"]


def test_classes_are_recommended_by_their_full_names() -> None:
    infos = config_infos("X", sink_keys(), {})
    (value,) = [info["value"] for info in infos["configs"] if info["value"]["name"] == "value.converter"]
    assert "org.apache.kafka.connect.json.JsonConverter" in value["recommended_values"]
    assert value["recommended_values"] == sorted(value["recommended_values"])

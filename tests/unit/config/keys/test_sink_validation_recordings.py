"""What the real Kafka Connect 4.3.1 says about a sink's common keys (tests/data/sink_validation.jsonl).

The recordings are answers of `PUT /connector-plugins/FileStream*Connector/config/validate`, reduced to keys that every
sink has; configurations of sources have `topics` in place of `topic`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.api.config.config_def import Type
from airflow_connect.api.config.values import convert_to_string
from airflow_connect.config.keys.sink import sink_keys

LINES = [
    json.loads(line)
    for line in (Path(__file__).parents[3] / "data" / "sink_validation.jsonl").read_text("utf-8").splitlines()
]
DEFINITIONS = {d["definition"]["name"]: d["definition"] for d in LINES if "definition" in d}
CASES = [d["case"] for d in LINES if "case" in d]

OTHER_CONNECTOR = {"file"}
WORKER_DEFAULTS = {"key.converter", "value.converter", "header.converter"}
"""Connect shows the worker's converter as the default; the connector's own default is null."""


@pytest.mark.parametrize("name", sorted(DEFINITIONS.keys() - OTHER_CONNECTOR))
def test_definition_of_common_key_equals_recorded(name: str) -> None:
    recorded, key = DEFINITIONS[name], sink_keys().keys[name]
    assert key.type is Type(recorded["type"])
    assert key.is_required is recorded["required"]
    assert key.importance.value == recorded["importance"]
    assert key.group == recorded["group"]
    assert key.width.value == recorded["width"]
    if name not in WORKER_DEFAULTS and not name.endswith("plugin.version"):
        # The version of Connect's own plugins is a default there.
        assert convert_to_string(key.parsed_default, key.type) == recorded["default_value"]


@pytest.mark.parametrize("case", [pytest.param(case, id=str(case["id"])) for case in CASES])
def test_validate_recorded_config_gives_recorded_errors(case: dict[str, Any]) -> None:
    values = sink_keys().validate({**case["config"], "connector.class": "S3SinkConnector"})
    ours = {value.name: value.errors for value in values if value.errors}
    assert ours.keys() == case["errors"].keys()
    for name, errors in case["errors"].items():
        # What is wrong with a regular expression is said by the language's own engine.
        expected = [error.partition(": Invalid regex: ")[0] for error in errors]
        assert [error.partition(": Invalid regex: ")[0] for error in ours[name]] == expected

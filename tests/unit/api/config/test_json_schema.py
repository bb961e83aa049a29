"""The JSON Schema of configurations, held against the definition that validates them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from airflow_connect.api.config.json_schema import json_schema
from airflow_connect.api.config.values import Type
from tests.support.values.broken_configs import DATA, broken_configs, definitions, valid

ROOT = Path(__file__).parents[4]
DEFINITIONS = definitions()
SCHEMAS = {name: Draft202012Validator(json_schema(definition, name)) for name, definition in DEFINITIONS.items()}


def wrong_keys(name: str, raw: dict[str, Any]) -> set[str]:
    """Keys that the schema refuses in a configuration."""
    errors = list(SCHEMAS[name].iter_errors(raw))
    at_root = {key for error in errors if not error.path for key in error.validator_value if key not in raw}
    return at_root | {str(error.path[0]) for error in errors if error.path}


@pytest.mark.parametrize("name", DATA)
def test_schema_is_one_and_accepts_what_is_valid(name: str) -> None:
    Draft202012Validator.check_schema(SCHEMAS[name].schema)
    assert wrong_keys(name, valid(name)) == set()
    assert json.loads(json.dumps(SCHEMAS[name].schema)) == SCHEMAS[name].schema


@pytest.mark.parametrize("name", DATA)
def test_schema_refuses_nothing_that_the_definition_accepts(name: str) -> None:
    definition = DEFINITIONS[name]
    for case in broken_configs(name, definition):
        refused = {value.name for value in definition.validate(case.raw) if value.errors}
        assert wrong_keys(name, case.raw) <= refused, case.name


@pytest.mark.parametrize("name", DATA)
def test_schema_refuses_wrong_types_and_what_is_missing(name: str) -> None:
    definition = DEFINITIONS[name]
    seen = set()
    for case in broken_configs(name, definition):
        what = case.name.partition(": ")[2]
        key = definition.keys.get(case.key)
        if key is None or key.type is Type.CLASS:
            continue
        if what in ("missing", "array", "object", "null") or what.startswith("wrong type"):
            assert case.key in wrong_keys(name, case.raw), case.name
            seen.add(what)
    assert len(seen) > 5


def test_numbers_and_booleans_may_be_json_text_or_references() -> None:
    (name,) = [name for name in DATA if name.endswith("S3SinkConnector")]
    for value in (5, "5", " +5 ", "${env:SIZE}"):
        assert wrong_keys(name, valid(name) | {"flush.size": value}) == set()
    for value in (True, "TRUE", " false", "${file:/p:k}"):
        assert wrong_keys(name, valid(name) | {"flush.on.end": value}) == set()
    assert wrong_keys(name, valid(name) | {"flush.size": 1 << 31, "tasks.max": 0}) == {"flush.size", "tasks.max"}


def test_secrets_have_no_default_and_are_marked() -> None:
    (name,) = [name for name in DATA if name.endswith("S3SinkConnector")]
    secret = SCHEMAS[name].schema["properties"]["aws.secret.access.key"]
    assert (secret["format"], secret["writeOnly"], "default" in secret) == ("password", True, False)


def test_connector_of_the_repository_fits() -> None:
    (name,) = [name for name in DATA if name.endswith("S3SinkConnector")]
    assert wrong_keys(name, json.loads((ROOT / "dags" / "meetups-to-s3.json").read_text("utf-8"))) == set()

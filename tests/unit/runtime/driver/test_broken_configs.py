"""Every key of every connector, wrong in every way: a sentence that names the key, and nothing is started."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.api.config.plugins import PluginKind, built_in
from airflow_connect.runtime.driver.entry import validate_connector
from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration
from airflow_connect.runtime.spec import RunSpec
from tests.support.session.many_cases import check_each
from tests.support.values.broken_configs import DATA, SECRET, WORKER, Broken, broken_configs, definitions, valid

ROOT = Path(__file__).parents[4]
CONNECTORS = [name for name in DATA if name != WORKER]
DEFINITIONS = definitions()
CASES = {
    name: list(broken_configs(name, definition, DEFINITIONS[CONNECTORS[0]])) for name, definition in DEFINITIONS.items()
}
PYTHONS_WORDS = re.compile(r"Traceback|object at 0x|NoneType|<class '|(?<!All, )(?<!`)\bNone\b|KeyError|TypeError")
"""`None` is also the name of an override policy, the second after All."""


@pytest.fixture(autouse=True)
def nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """No connection, process or thread comes of looking at a configuration."""

    def refuse(*args: object, **more: object) -> None:
        raise AssertionError("A configuration that is only looked at starts something.")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(subprocess.Popen, "__init__", refuse)
    monkeypatch.setattr(threading.Thread, "start", refuse)


def spec_of(name: str, raw: dict[str, Any]) -> RunSpec:
    if name == WORKER:
        return RunSpec(connector=valid(CONNECTORS[0]), worker=raw)
    return RunSpec(connector=raw, worker=valid(WORKER))


def errors_of(name: str, raw: dict[str, Any]) -> list[dict[str, Any]]:
    return [finding for finding in validate_connector(spec_of(name, raw)) if finding["level"] == "error"]


def test_every_connector_has_an_entry() -> None:
    assert set(CONNECTORS) >= set(built_in(PluginKind.CONNECTOR))


@pytest.mark.parametrize("name", DATA)
def test_configuration_that_is_called_valid_is_valid(name: str) -> None:
    assert errors_of(name, valid(name)) == []


@pytest.mark.parametrize("name", CASES)
def test_broken_configuration_is_told_by_key_and_with_what_is_accepted(name: str) -> None:
    check_each(CASES[name], lambda case: case.name, lambda case: check_broken(name, case))


def check_broken(name: str, case: Broken) -> None:
    errors = errors_of(name, case.raw)
    if case.is_certain:
        assert case.key in [error["key"] for error in errors]
    for error in errors:
        told = f"{error['message']} {error['suggestion']}"
        assert error["key"], error
        assert error["key"] in told
        assert error["message"].endswith((".", "?", "!"))
        assert error["suggestion"].endswith((".", "?", "!")), error
        assert PYTHONS_WORDS.search(told) is None, told
        assert SECRET not in told
        assert len(told) < 2_000, "nobody reads that"


SAMPLE = ["tasks.max: wrong type 'many'", "flush.size: missing", "secret without its key id", "s3.region: null"]


@pytest.mark.parametrize("what", SAMPLE)
def test_command_gives_exit_code_two_and_no_traceback(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    (case,) = [case for case in CASES[CONNECTORS[0]] if case.name == what]
    files = [tmp_path / "worker.json", tmp_path / "connector.json"]
    files[0].write_text(json.dumps(valid(WORKER)))
    files[1].write_text(json.dumps(case.raw))
    command = [sys.executable, "-m", "airflow_connect.cli", "validate", *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 2
    assert f"✗ {case.key}" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert "secret-key" not in done.stdout + done.stderr


KEYS = sorted(
    {*definitions()[CONNECTORS[0]].keys, "value.converter.schemas.enable", "consumer.override.client.id", "x"}
)
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20),
    st.sampled_from(["", " ", "a,b", "TimeBasedPartitioner", "${env:HOME}", "${vault:x}", "${airflow:a:b}", "0", "-1"]),
    st.lists(st.text(max_size=3), max_size=2), st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6))
def test_findings_of_anything_are_sentences_with_keys(changes: dict[str, Any]) -> None:
    for finding in SinkConfiguration.findings(spec_of(CONNECTORS[0], {**valid(CONNECTORS[0]), **changes})):
        assert finding["key"]
        assert finding["message"].endswith((".", "?", "!"))
        assert PYTHONS_WORDS.search(finding["message"]) is None


@pytest.mark.parametrize("value", [False, True, 7, 1.5])
@pytest.mark.parametrize("key", ["transforms", "predicates"])
def test_json_scalar_as_a_list_of_aliases_is_its_text(key: str, value: Any) -> None:
    alias = json.dumps(value)
    errors = errors_of(CONNECTORS[0], {**valid(CONNECTORS[0]), key: value})
    assert [error["key"] for error in errors] == [f"{key}.{alias}.type"]

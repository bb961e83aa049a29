"""References in configurations, against recordings of the real ConfigTransformer (tests/data/configdef.jsonl)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from airflow_connect.config_providers.resolving import look_up, resolve_references
from airflow_connect.errors import ConfigError, ConnectError, UnavailableError

RECORDINGS = Path(__file__).parents[2] / "data" / "configdef.jsonl"
CASES = [json.loads(line) for line in RECORDINGS.read_text("utf-8").splitlines() if "ConfigTransformer" in line]


class Recorded:
    """Answers as the provider of the recording program did: `<path|key>`, and nothing for `missing`."""

    asked: ClassVar[list[tuple[str, tuple[str, ...]]]] = []
    closed = 0

    def configure(self, settings: Mapping[str, str]) -> None:
        if settings.get("wrong"):
            raise ConfigError("The setting is wrong.", config_path="wrong")

    def get(self, path: str, keys: Collection[str]) -> Mapping[str, str]:
        Recorded.asked.append((path, tuple(keys)))
        return {key: f"<{path}|{key}>" for key in keys if key != "missing"}

    def close(self) -> None:
        Recorded.closed += 1


class Failing(Recorded):
    """Fails in the way that its path names."""

    def get(self, path: str, keys: Collection[str]) -> Mapping[str, str]:
        if path == "away":
            raise UnavailableError("The vault did not answer.")
        raise ValueError("cannot parse hunter22")


class Picky(Recorded):
    """Cannot be configured."""

    def configure(self, settings: Mapping[str, str]) -> None:
        raise KeyError(settings["token"])


WORKER = {"config.providers": "p", "config.providers.p.class": f"{__name__}:Recorded"}


@pytest.fixture(autouse=True)
def nothing_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The counters begin anew."""
    monkeypatch.setattr(Recorded, "asked", [])
    monkeypatch.setattr(Recorded, "closed", 0)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['id']} {case['input']}")
def test_resolve_recorded_value_gives_recorded_value(case: dict[str, Any]) -> None:
    found = look_up({"k": case["input"]}, {}, providers={"p": Recorded})
    assert found.references.resolve({"k": case["input"]}) == {"k": case["output"]}
    # Kafka Connect leaves a key that a provider does not have as it is; here that is an error, which names it.
    missing = [problem.config_path for problem in found.problems]
    assert missing == (["k"] if "missing}" in case["input"] else [])


def test_providers_are_asked_once_per_place_and_closed() -> None:
    connector = {"a": "${p:x:one}", "b": "${p:x:two}-${p:x:one}", "c": "${p:three}", "n": 3, "null": None}
    references = resolve_references(connector, {**WORKER, "sasl.password": "${p:x:four}"})
    assert sorted(Recorded.asked) == [("", ("three",)), ("x", ("one", "two", "four"))]
    assert references.resolve(connector) == {
        "a": "<x|one>", "b": "<x|two>-<x|one>", "c": "<|three>", "n": 3, "null": None,
    }  # fmt: skip
    assert Recorded.closed == 3  # one try-out of the setting, two places


def test_what_a_reference_stands_for_is_not_resolved_again() -> None:
    class Echo(Recorded):
        def get(self, path: str, keys: Collection[str]) -> Mapping[str, str]:
            return dict.fromkeys(keys, "${p:again}")

    found = resolve_references({"k": "${p:x}"}, {}, providers={"p": Echo})
    assert found.resolve({"k": "${p:x}"}) == {"k": "${p:again}"}


def test_known_references_are_not_asked_for() -> None:
    found = resolve_references({"k": "${airflow:s3:password}"}, {}, known={"${airflow:s3:password}": "hunter22"})
    assert found.resolve({"k": "${airflow:s3:password}"}) == {"k": "hunter22"}


def test_settings_of_providers_are_no_place_for_references() -> None:
    assert look_up({}, {**WORKER, "config.providers.p.param.token": "${p:x}"}).references.values == {}


def test_unknown_provider_leaves_the_text_and_is_told() -> None:
    found = look_up({"k": "${vault:a:b}"}, WORKER)
    assert found.problems == []
    assert found.references.resolve({"k": "${vault:a:b}"}) == {"k": "${vault:a:b}"}
    (unknown,) = found.unknown
    assert unknown.sentence() == (
        "The value of k names the config provider 'vault', which config.providers of the worker does not list;"
        " ${vault:a:b} stays as it is."
    )


def test_airflow_outside_airflow_says_how() -> None:
    with pytest.raises(ConfigError, match="only Airflow knows") as caught:
        resolve_references({"k": "${airflow:s3:password}"}, {})
    assert caught.value.config_path == "k"
    assert "config.providers.airflow.class" in caught.value.suggestion


def test_provider_of_the_worker_wins_over_one_that_is_always_there() -> None:
    worker = {"config.providers": "airflow", "config.providers.airflow.class": f"{__name__}:Recorded"}
    found = resolve_references({"k": "${airflow:s3:password}"}, worker, providers={"airflow": Failing})
    assert found.values == {"${airflow:s3:password}": "<s3|password>"}


def test_missing_values_are_all_named_with_key_and_reference() -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_references({"a": "${p:f:missing}", "b": "${p:missing}", "c": "${p:f:there}"}, WORKER)
    for part in ("(1) Configuration a refers to ${p:f:missing}", "(2) Configuration b refers to ${p:missing}"):
        assert part in caught.value.message
    assert caught.value.config_path == "a"
    assert "there" not in caught.value.message


def test_server_of_a_provider_that_is_away_is_worth_a_retry() -> None:
    worker = {**WORKER, "config.providers": "p,f", "config.providers.f.class": f"{__name__}:Failing"}
    with pytest.raises(UnavailableError, match=r"b refers to \$\{f:away:k\}\. The vault did not answer\."):
        resolve_references({"a": "${p:missing}", "b": "${f:away:k}"}, worker)


def test_unexpected_failure_of_a_provider_is_told_without_its_text() -> None:
    worker = {"config.providers": "f", "config.providers.f.class": f"{__name__}:Failing"}
    with pytest.raises(ConfigError, match="'f' failed with ValueError") as caught:
        resolve_references({"a": "${f:x:k}"}, worker)
    assert "hunter22" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "key", "text"),
    [
        ({}, "config.providers.v.class", "Missing required configuration"),
        ({"class": " "}, "config.providers.v.class", "Missing required configuration"),
        ({"class": "NoSuch"}, "config.providers.v.class", "There is no config provider called 'NoSuch'"),
        ({"class": f"{__name__}:NoSuch"}, "config.providers.v.class", "cannot be loaded"),
        ({"class": f"{__name__}:Recorded", "param.wrong": "x"}, "config.providers.v.param.wrong", "setting is wrong"),
        ({"class": f"{__name__}:Picky", "param.token": "hunter22"}, "config.providers.v.class", "KeyError"),
        ({"class": f"{__name__}:Picky"}, "config.providers.v.class", "KeyError"),
    ],
)
def test_provider_that_cannot_be_set_up_is_refused_by_key(settings: dict[str, str], key: str, text: str) -> None:
    worker = {"config.providers": "v", **{f"config.providers.v.{name}": value for name, value in settings.items()}}
    with pytest.raises(ConfigError, match=text) as caught:
        resolve_references({}, worker)
    error: ConnectError = caught.value
    assert error.config_path == key
    assert "hunter22" not in str(error)

"""Config providers that are Java classes of a plugin path."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from airflow_connect.config_providers.resolving import look_up, resolve_references
from airflow_connect.errors import ConfigError, UnavailableError
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.budget(20)]

TOKEN = "s3same-token"


def worker(plugin_path: Path, **more: str) -> dict[str, str]:
    own = {
        "plugin.path": str(plugin_path),
        "config.providers": "vault",
        "config.providers.vault.class": "plugins.Vault",
        "config.providers.vault.param.token": TOKEN,
    }
    return {**own, **more}


def test_values_come_from_the_class_and_what_it_prints_is_hidden(
    plugin_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "airflow_connect.java")
    connector = {"password": "${vault:db/prod:password}", "user": "${vault:user}", "url": "jdbc:${vault:a:b}/x"}

    resolved = resolve_references(connector, worker(plugin_path)).resolve(connector)

    assert resolved == {
        "password": f"db/prod-password-{TOKEN}",
        "user": f"-user-{TOKEN}",
        "url": f"jdbc:a-b-{TOKEN}/x",
    }
    wait_until(lambda: caplog.text.count("found {") == 3, "what the plugin prints is read by a thread of its own")
    assert TOKEN not in caplog.text


def test_alias_of_the_class_is_found(plugin_path: Path) -> None:
    given = worker(plugin_path, **{"config.providers.vault.class": "Vault"})

    assert resolve_references({"k": "${vault:p:q}"}, given).resolve({"k": "${vault:p:q}"}) == {"k": f"p-q-{TOKEN}"}


@pytest.mark.parametrize(
    ("reference", "kind", "text"),
    [
        ("${vault:p:missing}", ConfigError, "has nothing called 'missing' under 'p'"),
        ("${vault:broken:k}", ConfigError, "plugins.Vault failed in get with java.lang.IllegalStateException"),
        ("${vault:away:k}", UnavailableError, "failed in get with org.apache.kafka.connect.errors.RetriableException"),
    ],
)
def test_failures_name_key_and_class_and_no_secret(
    plugin_path: Path, reference: str, kind: type[Exception], text: str
) -> None:
    (problem,) = look_up({"password": reference}, worker(plugin_path)).problems

    assert type(problem) is kind
    assert problem.message.startswith(f"Configuration password refers to {reference}")
    assert text in problem.message
    assert TOKEN not in problem.message + (problem.suggestion or "")
    assert problem.retriable == (kind is UnavailableError)


def test_settings_that_the_class_refuses(plugin_path: Path) -> None:
    given = {key: value for key, value in worker(plugin_path).items() if not key.endswith("token")}
    (problem,) = look_up({"password": "${vault:p:k}"}, given).problems
    assert "plugins.Vault failed in configure with java.lang.IllegalArgumentException" in problem.message


def test_unused_provider_starts_no_java(plugin_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_connect.connectors.java.provider.DRIVER_HOSTS", None)
    assert look_up({"a": "b"}, worker(plugin_path)).problems == []


def test_class_that_is_nowhere(plugin_path: Path) -> None:
    given = worker(plugin_path, **{"config.providers.vault.class": "org.acme.Vault"})
    with pytest.raises(ConfigError, match=r"org\.acme\.Vault"):
        look_up({}, given)

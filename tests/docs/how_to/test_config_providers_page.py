"""The examples of docs/config-providers.md work: its workers resolve its references."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from airflow_connect.config_providers.resolving import resolve_references
from airflow_connect.java.properties_file import parse_properties
from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration
from airflow_connect.runtime.spec import RunSpec
from tests.docs.pages import blocks

PAGE = "docs/config-providers.md"


def texts(info: str) -> list[str]:
    return [block.text for block in blocks(info) if block.page == PAGE]


class Answering:
    """Has every key."""

    def configure(self, settings: Any) -> None:
        assert not settings

    def get(self, path: str, keys: Any) -> dict[str, str]:
        return {key: f"{path}-{key.replace('_', '-')}" for key in keys}

    def close(self) -> None:
        self.closed = True


def test_connector_of_the_page_is_valid_with_what_its_references_stand_for() -> None:
    (text,) = texts("json references")
    connector = json.loads(text)
    references = resolve_references(connector, {}, providers={"airflow": Answering}).values
    worker = {"bootstrap.servers": "b:1", "key.converter": "StringConverter", "value.converter": "JsonConverter"}
    assert len(references) == 3
    assert SinkConfiguration.findings(RunSpec(connector, worker, references=references)) == []


def test_worker_of_the_page_resolves_its_references(tmp_path: Path) -> None:
    (text,) = [text for text in texts("properties") if "FileConfigProvider" in text]
    (tmp_path / "kafka.properties").write_text("password=hunter22")
    worker = parse_properties(text.replace("/etc/connect", str(tmp_path)))
    resolved = resolve_references({}, worker).resolve(worker)
    assert resolved["sasl.jaas.config"].endswith('password="hunter22";')


def test_provider_of_the_page_answers() -> None:
    (text,) = texts("python")
    made: dict[str, Any] = {}
    exec(compile(text, PAGE, "exec"), made)
    provider = made["VaultConfigProvider"]()
    provider.configure({"url": "https://vault"})
    assert provider.get("orders", ["password", "missing"]) == {"password": "read from https://vault/orders"}

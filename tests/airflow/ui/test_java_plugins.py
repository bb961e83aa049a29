"""Java connectors of a worker's `plugin.path` in the gallery and in the form of a new connector."""

from __future__ import annotations

import html
import json
import logging
import re
import uuid
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from starlette.testclient import TestClient

from airflow_connect.jvm.discovery.registry import catalogues
from airflow_connect.jvm.host import PluginHost
from airflow_connect.ui.pages.views.hiding import shown_config
from tests.airflow.ui.conftest import CONN_ID, ORIGIN
from tests.airflow.ui.test_known_classes import DAG
from tests.airflow.ui.test_pages import complete
from tests.support.copies.showcase import Showcase
from tests.support.java_plugins import forget_java_plugins, ledger_folder
from tests.support.kept_dags import forget_dag, keep_dag

pytestmark = pytest.mark.integration

LEDGER = "acme.LedgerSinkConnector"
SEAL = "unguessable wax"


def text_of(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


class Installation(NamedTuple):
    """One with Java plugins: its connection, and its `plugin.path`."""

    conn_id: str
    plugin_path: str


@pytest.fixture
def browser(tokens: dict[str, str]) -> TestClient:
    """Pages that remember nothing."""
    from airflow_connect.ui.pages.app import create_app

    return TestClient(create_app(), base_url=ORIGIN, cookies={"_token": tokens["op"]}, headers={"Origin": ORIGIN})


@pytest.fixture
def java(showcase: Showcase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    """An installation of its own that Airflow shows; none of its plugins is known yet."""
    forget_java_plugins(monkeypatch)
    path, conn_id = ledger_folder(tmp_path / "plugins"), f"connect_java_{uuid.uuid4().hex[:8]}"
    connection = {"conn_type": "connect_worker", "extra": {**showcase.worker, "plugin.path": path}}
    monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(connection))
    monkeypatch.setenv("AIRFLOW__AIRFLOW_CONNECT__WORKER_CONN_IDS", f"{CONN_ID}, {conn_id}")
    return Installation(conn_id, path)


def test_a_java_connector_is_chosen_in_the_gallery_and_filled_in(
    browser: TestClient, java: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = f"/{java.conn_id}/create"
    browser.get(f"/{java.conn_id}")  # The installation is opened, and its plugins with it.
    gallery = text_of(browser.get(create, params={"q": "ledger"}).text)
    assert "LedgerSinkConnector" in gallery and f"A Java plugin in {java.plugin_path}/ledger." in gallery
    form = browser.get(create, params={"class": LEDGER}).text
    first = form.partition("</fieldset>")[0]
    assert 'data-key="ledger.url"' in form and 'data-key="ledger.pages"' in form and 'data-key="topics"' in form
    assert "Where the ledger is." in form and 'aria-invalid="true"' not in first
    assert LEDGER in form  # Among the classes to choose from, too.

    def start(*arguments: Any, **more: Any) -> None:
        raise AssertionError("A JVM is started, though everything about the class is in the cache.")

    monkeypatch.setattr(PluginHost, "start", start)
    config = {"name": "books", "connector.class": LEDGER, "topics": "t", "ledger.url": "refused:x", "ledger.seal": SEAL}
    converters = dict.fromkeys(("key.converter", "value.converter"), "StringConverter")
    page = browser.post(create, data={"do": "", "config": json.dumps({**config, **converters, "ledger.pages": "many"})})
    assert "Not a number of type INT" in text_of(page.text)
    page = browser.post(create, data={"do": "", "config": json.dumps({**config, **converters})})
    assert page.status_code == 200, text_of(page.text)  # A form does not ask Java to connect to anything.


def test_which_keys_of_a_java_class_are_secret_is_known_when_it_is_found_and_everything_is_hidden_if_java_is_missing(
    browser: TestClient, java: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {"name": "books", "connector.class": LEDGER, "ledger.seal": SEAL, "ledger.url": "u", "topics": "t"}
    assert shown_config(config)["ledger.seal"] == SEAL  # Nothing is known of such a class yet.
    with monkeypatch.context() as without_java:
        without_java.setattr(PluginHost, "start", classmethod(lambda *_, **__: _no_java()))
        browser.get(f"/{java.conn_id}")
        shown = shown_config(config)
        assert (shown["ledger.seal"], shown["ledger.url"], shown["topics"]) == ("[hidden]", "[hidden]", "t")


def _no_java() -> None:
    from airflow_connect.errors import JavaVersionError

    raise JavaVersionError("There is no Java here.")


def test_a_plugin_path_that_only_a_dag_names_is_not_used_by_the_pages(
    browser: TestClient,
    showcase: Showcase,
    java: Installation,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("AIRFLOW__AIRFLOW_CONNECT__WORKER_CONN_IDS", "")
    connection = {"conn_type": "kafka", "extra": {"bootstrap.servers": showcase.bootstrap}}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_OF_CLASSES", json.dumps(connection))
    topic = f"{showcase.worker['runs.storage.topic']}-java"
    worker = {"runs.storage.topic": topic, "plugin.path": java.plugin_path}
    (tmp_path / "dag").mkdir()
    keep_dag(tmp_path / "dag", DAG.format(dag_id="java-dag", given="config={'name': 'x'}", worker=worker))
    with caplog.at_level(logging.WARNING, logger="airflow_connect.ui.web.installations"):
        complete(browser, f"/kafka_of_classes:{topic}", topic)
    (said,) = (record.message for record in caplog.records if "plugin.path" in record.message)
    assert said.startswith(f"kafka_of_classes:{topic}: plugin.path is not used by the pages")
    assert catalogues() == ()
    forget_dag("java-dag")

"""What pages do not know, do not show, or have known for long: they say so."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.testclient import TestClient

from tests.airflow.ui.conftest import CONN_ID, ORIGIN
from tests.airflow.ui.test_pages import LIST, BrowserOf, complete, text_of
from tests.support.copies.showcase import DAG_ORIGIN, HEALTHY, NEW, OF_DAG, Showcase
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("action", ["pause", "run"])
def test_more_refusals_than_are_shown_are_counted(browser_of: BrowserOf, action: str) -> None:
    told = browser_of("user").post(LIST, data={"do": action, "name": ["n1", "n2", "n3", "n4", "n5"]}).text
    assert "0 of 5 connectors" in told
    assert [name in told for name in ("n1: ", "n2: ", "n3: ", "n4: ")] == [True, True, True, False]
    assert "And 2 more." in told


def test_the_link_of_a_task_does_not_lead_to_another_installation_with_the_same_name(
    browser_of: BrowserOf, showcase: Showcase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"{showcase.name}-other"
    other = Showcase(showcase.bootstrap, name, tmp_path, showcase.produce, {OF_DAG: showcase.topics[OF_DAG]})
    other.herder.create(OF_DAG, other.config(OF_DAG))
    monkeypatch.setenv("AIRFLOW_CONN_OTHER", json.dumps({"conn_type": "connect_worker", "extra": other.worker}))
    monkeypatch.setenv("AIRFLOW__AIRFLOW_CONNECT__WORKER_CONN_IDS", f"other, {CONN_ID}")
    browser = browser_of("viewer")
    complete(browser, "/airflow-connect/other", OF_DAG)
    complete(browser, LIST, OF_DAG)
    query = {"dag_id": DAG_ORIGIN["dag_id"], "connector": OF_DAG}
    assert browser.get("/airflow-connect/of", params=query).url.path == f"{LIST}/connector"
    # A DAG that has not run it yet: both may be meant.
    page = browser.get("/airflow-connect/of", params={**query, "dag_id": "new"}).text
    assert re.findall(r'href="/airflow-connect/([a-z_]+)/connector', page) == ["other", CONN_ID]


def test_the_cluster_names_connectors_whose_topics_are_not_known(browser_of: BrowserOf, showcase: Showcase) -> None:
    showcase.herder.create("homeless", {**showcase.config(NEW), "name": "homeless", "topics": "no-such-topic"})
    page = complete(browser_of("viewer"), f"{LIST}/cluster", "homeless")
    assert "The lag of 1 connector is not known, so this table does not have it: homeless" in text_of(page)
    showcase.herder.delete("homeless")


def test_a_time_in_milliseconds_is_not_an_offset(browser_of: BrowserOf) -> None:
    op = browser_of("op")
    complete(op, LIST, HEALTHY)
    answer = op.post(f"{LIST}/offsets", params={"name": HEALTHY}, data={"to": "time", "value": "3"})
    assert answer.status_code == 200
    moves = re.findall(r'-0</th><td class="n">\d+</td><td class="n">(\d+)</td>', answer.text)
    assert moves == ["0"], "all records were written after 1970"


def test_a_page_that_nobody_has_opened_for_a_while_does_not_blame_kafka(
    tokens: dict[str, str], showcase: Showcase, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow_connect.ui.overview import watching
    from airflow_connect.ui.pages.app import create_app

    browser = TestClient(create_app(), base_url=ORIGIN, cookies={"_token": tokens["viewer"]})
    wait_until(lambda: HEALTHY in browser.get(f"/{CONN_ID}").text, "the list is read")
    monkeypatch.setattr(watching, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + 3600))
    page = browser.get(f"/{CONN_ID}").text
    assert re.search(r"This page shows what was known \d+ min ago. Kafka is being asked again.", page)
    assert "data-soon" in page

"""Connectors of DAGs on the pages: found without a setting, and run from there, as registered ones are."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.airflow.ui.conftest import CONN_ID, ORIGIN
from tests.airflow.ui.test_pages import LIST, BrowserOf, complete, last_entry, names_of, text_of
from tests.support.copies.showcase import DAG_ORIGIN, HEALTHY, OF_DAG, PAUSED, SECRET, Showcase
from tests.support.kept_dags import forget_dag, keep_dag

pytestmark = pytest.mark.integration

DAG_OF_PAGES = """
from airflow.sdk import DAG
from airflow_connect.operators.connector import ConnectorOperator

with DAG({dag_id!r}, schedule=None):
    ConnectorOperator(task_id="copy", config_file="orders.json", kafka_conn_id="kafka_of_dags",
                      worker={{"runs.storage.topic": {topic!r}}})
"""


def test_connectors_of_dags_are_shown_without_any_setting(
    showcase: Showcase, tokens: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow_connect.ui.pages.app import create_app

    monkeypatch.setenv("AIRFLOW__AIRFLOW_CONNECT__WORKER_CONN_IDS", "")
    connection = {"conn_type": "kafka", "extra": {"bootstrap.servers": showcase.bootstrap}}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_OF_DAGS", json.dumps(connection))
    topic = showcase.worker["runs.storage.topic"]
    source = DAG_OF_PAGES.format(dag_id=f"shown-{topic}", topic=topic)
    # Another task reaches the same cluster by another connection: the runs are the same, and are shown once.
    again = source[source.index("    ConnectorOperator") :].replace("copy", "again").replace("kafka_of", "kafka_too_of")
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_TOO_OF_DAGS", json.dumps(connection))
    keep_dag(tmp_path, source + again)
    browser = TestClient(create_app(), base_url=ORIGIN, cookies={"_token": tokens["viewer"]})
    try:
        assert OF_DAG in names_of(complete(browser, f"/kafka_of_dags:{topic}", OF_DAG))
        complete(browser, f"/kafka_too_of_dags:{topic}", OF_DAG)
        assert f"kafka_of_dags:{topic}</a>" in browser.get("/").text
        of = {"dag_id": "nightly", "run_id": DAG_ORIGIN["dag_run_id"], "task_id": "copy"}
        run = browser.get("/of", params=of)
        assert run.url.path == f"/kafka_of_dags:{topic}/run", "the task leads to its run"
        assert "50 records" in text_of(run.text) or "Reading the history" in text_of(run.text)
    finally:
        forget_dag(f"shown-{topic}")


@pytest.fixture
def new_pages(tokens: dict[str, str]) -> Callable[..., TestClient]:
    """Pages that remember nothing: `new_pages()` for a viewer."""
    from airflow_connect.ui.pages.app import create_app

    return lambda role="viewer": TestClient(
        create_app(), base_url=ORIGIN, cookies={"_token": tokens[role]}, headers={"Origin": ORIGIN}
    )


@pytest.mark.parametrize("is_file", [False, True], ids=["config", "file"])
def test_connector_of_a_dag_shows_its_configuration_and_its_plan(
    new_pages: Callable[[], TestClient], showcase: Showcase, tmp_path: Path, is_file: bool
) -> None:
    config = {**showcase.config(OF_DAG), "some.password": SECRET}
    (tmp_path / "orders.json").write_text(json.dumps(config))
    given = f"config_file={str(tmp_path / 'orders.json')!r}" if is_file else f"config={config!r}"
    keep_dag(tmp_path, DAG_OF_PAGES.format(dag_id="nightly", topic="x").replace('config_file="orders.json"', given))
    browser, address = new_pages("user"), f"/{CONN_ID}/connector"
    page = complete(browser, address, "Show the plan", name=OF_DAG)
    assert f"Task copy of DAG nightly , in {tmp_path}/dag.py, line 6." in text_of(page)
    assert "flush.size" in page and SECRET not in page and "Nothing: everything is copied." not in page
    assert browser.post(address, params={"name": OF_DAG}).url.path == address
    page = complete(browser, address, "Nothing: everything is copied.", name=OF_DAG)
    assert "Plan again" in page
    viewer = new_pages()
    page = complete(viewer, address, "A user who may run the DAG can ask for the plan here.", name=OF_DAG)
    assert "Show the plan" not in page
    refused = viewer.post(address, params={"name": OF_DAG})
    assert (refused.status_code, "User viewer has no permission" in refused.text) == (403, True)
    forget_dag("nightly")


def test_template_of_a_dag_is_shown_and_its_plan_is_not(
    new_pages: Callable[[], TestClient], showcase: Showcase, tmp_path: Path
) -> None:
    config = {**showcase.config(OF_DAG), "flush.size": "{{ var.value.size }}"}
    source = DAG_OF_PAGES.format(dag_id="nightly", topic="x")
    keep_dag(tmp_path, source.replace('config_file="orders.json"', f"config={config!r}"))
    page = complete(new_pages(), f"/{CONN_ID}/connector", "flush.size is a template", name=OF_DAG)
    assert "{{ var.value.size }}" in html.unescape(page)
    keep_dag(tmp_path, source.replace('config_file="orders.json"', "config={'name': 'other'}"))
    told = "Only the running task copy of DAG nightly knows the configuration of nightly-meetups."
    complete(new_pages(), f"/{CONN_ID}/connector", told, name=OF_DAG)
    forget_dag("nightly")


def test_registered_connector_is_asked_to_run_now(browser_of: BrowserOf, showcase: Showcase) -> None:
    browser = browser_of("user")
    page = complete(browser, f"{LIST}/connector", "Run now", name=HEALTHY)
    assert "Only records before (UTC)" in page
    wrong = browser.post(f"{LIST}/run-now", params={"name": HEALTHY}, data={"run.max.records": "0"})
    assert (wrong.status_code, "must be a number above 0. Nothing was started." in html.unescape(wrong.text)) == (
        400,
        True,
    )
    limits = {"run.max.records": "7", "run.until.timestamp": "2026-11-20T08:00"}
    asked = browser.post(f"{LIST}/run-now", params={"name": HEALTHY}, data=limits)
    complete(browser, f"{LIST}/run", "The worker was asked for this run.", **dict(asked.url.params))
    assert last_entry()[0] == "connect.run_connector"
    request = showcase.restarts()[-1]
    assert (request.connector, request.run_id) == (HEALTHY, asked.url.params["run"])
    assert dict(request.limits) == {"run.max.records": "7", "run.until.timestamp": "2026-11-20T08:00:00Z"}
    paused = browser.post(f"{LIST}/run-now", params={"name": PAUSED})
    assert (paused.status_code, "is paused. Resume it first." in paused.text) == (409, True)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("2026-11-20T08:00:00-05:00", "2026-11-20T13:00:00Z"),
        ("2026-11-20T08:00:00+01:00", "2026-11-20T07:00:00Z"),
        ("2026-11-20", "2026-11-20T00:00:00Z"),
        ("1763625600000", "2025-11-20T08:00:00Z"),
    ],
)
def test_time_of_a_limit_keeps_its_zone(typed: str, meant: str) -> None:
    from airflow_connect.ui.pages.views.run_now import UNTIL, limits_of

    call: Any = SimpleNamespace(field_of={UNTIL: typed, "run.max.records": ""}.__getitem__)
    assert limits_of(call) == {UNTIL: meant}


def test_connector_of_a_dag_is_run_by_its_dag(browser_of: BrowserOf, tmp_path: Path) -> None:
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session

    keep_dag(tmp_path, DAG_OF_PAGES.format(dag_id="nightly", topic="nightly-runs"))
    browser = browser_of("user")
    page = complete(browser, f"{LIST}/connector", "Triggers DAG nightly", name=OF_DAG)
    assert "Triggers DAG nightly" not in browser_of("viewer").get(f"{LIST}/connector", params={"name": OF_DAG}).text
    begun = browser.post(f"{LIST}/run-now", params={"name": OF_DAG}, data={"run.max.records": "7"})
    assert "Its state is queued" in text_of(begun.text) and "DAG nightly is paused" in text_of(begun.text), page
    with create_session() as session:
        started = session.query(DagRun).filter_by(dag_id="nightly", run_id=begun.url.params["dag_run_id"]).one()
        assert (started.conf, started.triggering_user_name) == ({"run.max.records": 7}, "user")
    copied = {"dag_id": "nightly", "dag_run_id": DAG_ORIGIN["dag_run_id"], "name": OF_DAG}
    assert browser.get(f"{LIST}/begun", params=copied).url.path == f"{LIST}/run", "it leads to the run once it is there"
    chosen = {"do": "run", "name": [OF_DAG, HEALTHY, "no-such"]}
    told = browser.post(LIST, data=chosen).text
    assert "Runs of 2 of 3 connectors were started. no-such: Unknown connector: no-such" in told
    forget_dag("nightly")
    refused = browser.post(f"{LIST}/run-now", params={"name": OF_DAG})
    assert "Airflow has refused this: " in refused.text

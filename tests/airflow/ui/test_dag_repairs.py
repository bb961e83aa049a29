"""Offsets and dead letters of a connector that a DAG runs, changed from its page by whoever may edit the DAG."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from airflow_connect.runtime.driver.entry import run_connector
from airflow_connect.runtime.engine.in_process import InProcessEngine
from airflow_connect.runtime.spec import RunSpec
from airflow_connect.ui.web.access import Right, Visitor
from tests.airflow.ui.conftest import ORIGIN
from tests.airflow.ui.test_pages import complete, last_entry, text_of
from tests.support.copies.showcase import OF_DAG, Showcase
from tests.support.kept_dags import forget_dag, keep_dag

pytestmark = pytest.mark.integration

DAG = """
from airflow.sdk import DAG
from airflow_connect.operators.connector import ConnectorOperator

with DAG({dag_id!r}, schedule=None):
    ConnectorOperator(task_id="copy", config={config!r}, kafka_conn_id="kafka_of_repairs", worker={worker!r})
"""


class Repaired:
    """A connector of a DAG: 4 of 20 records went to its dead letter queue."""

    def __init__(self, showcase: Showcase, topic: str, folder: Path) -> None:
        self.name, self.topic, self.dag_id = f"{topic}-to-files", topic, f"dag-{topic}"
        self.runs_topic = f"{topic}-runs"
        self.config = {
            **showcase.config(OF_DAG),
            "name": self.name,
            "topics": topic,
            "store.url": f"file://{folder}",
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": f"{topic}-dlq",
            "errors.deadletterqueue.topic.replication.factor": "1",
            "errors.deadletterqueue.context.headers.enable": "true",
        }
        self.worker = {**showcase.worker, "runs.storage.topic": self.runs_topic}
        self.place = f"/kafka_of_repairs:{self.runs_topic}"

    def run(self) -> Any:
        """A run of its DAG."""
        origin = {"dag_id": self.dag_id, "dag_run_id": "manual__1", "task_id": "copy"}
        report = run_connector(RunSpec(self.config, self.worker, origin=origin), engine=InProcessEngine())
        assert report.status == "done", report.error
        return report

    def keep(self, folder: Path, **config: str) -> None:
        """Let Airflow know the DAG."""
        worker = {"runs.storage.topic": self.runs_topic}
        keep_dag(folder, DAG.format(dag_id=self.dag_id, config={**self.config, **config}, worker=worker))


@pytest.fixture
def repaired(
    showcase: Showcase, make_topic: Callable[..., str], produce: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Repaired]:
    """It has run once."""
    connection = {"conn_type": "kafka", "extra": {"bootstrap.servers": showcase.bootstrap}}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_OF_REPAIRS", json.dumps(connection))
    monkeypatch.setenv("AIRFLOW__AIRFLOW_CONNECT__WORKER_CONN_IDS", "")
    topic = make_topic()
    values = [b"no json" if n % 5 == 0 else b'{"n":%d}' % n for n in range(20)]
    produce(topic, [(0, None, value, 0, []) for value in values])
    made = Repaired(showcase, topic, tmp_path)
    assert made.run().dead_lettered == 4
    (tmp_path / "dag").mkdir()
    made.keep(tmp_path / "dag")
    yield made
    forget_dag(made.dag_id)


@pytest.fixture
def browser_of(tokens: dict[str, str]) -> Callable[[str], TestClient]:
    """Pages that remember nothing: `browser_of("user")`, who may edit DAGs and no connections."""
    from airflow_connect.ui.pages.app import create_app

    app = create_app()
    return lambda role: TestClient(app, base_url=ORIGIN, cookies={"_token": tokens[role]}, headers={"Origin": ORIGIN})


def test_offsets_are_set_from_the_page_and_the_next_run_begins_there(
    repaired: Repaired, browser_of: Callable[[str], TestClient]
) -> None:
    user, query, address = browser_of("user"), {"name": repaired.name}, f"{repaired.place}/offsets"
    page = complete(user, f"{repaired.place}/connector", "Set or reset offsets", name=repaired.name)
    assert "Replay dead letters" in complete(user, f"{repaired.place}/connector", "Replay dead", name=repaired.name)
    form = {"place": f"{repaired.topic}-0", "to": "offset", "value": "5"}
    shown = user.post(address, params=query, data=form)
    assert "15 records will be written again" in shown.text and "Stop " not in shown.text, page
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', shown.text))
    done = user.post(address, params=query, data={name: html.unescape(value) for name, value in hidden.items()})
    assert "The offsets of 1 partition were changed." in done.text
    event, who, extra = last_entry()
    assert (event, who, extra["connector"]) == ("connect.alter_offsets", "user", repaired.name)
    assert repaired.run().records + 3 == 15


def test_dead_letters_are_replayed_from_the_page(repaired: Repaired, browser_of: Callable[[str], TestClient]) -> None:
    user, query, address = browser_of("user"), {"name": repaired.name}, f"{repaired.place}/replay"
    complete(user, f"{repaired.place}/connector", "Replay dead letters", name=repaired.name)
    assert "4 letters of" in text_of(user.get(address, params=query).text)
    done = user.post(address, params=query)
    assert f"4 dead letters went back to {repaired.topic}." in done.text
    assert last_entry()[0] == "connect.replay_dead_letters"
    assert "There is nothing to replay" in user.get(address, params=query).text


def test_those_who_may_not_edit_the_dag_get_no_button_and_are_refused(
    repaired: Repaired, browser_of: Callable[[str], TestClient]
) -> None:
    viewer, query = browser_of("viewer"), {"name": repaired.name}
    page = complete(viewer, f"{repaired.place}/connector", "letters in", name=repaired.name)
    assert "Set or reset offsets" not in page and 'class="button" href="' not in page.partition("The newest")[2]
    for path in ("offsets", "replay"):
        assert viewer.post(f"{repaired.place}/{path}", params=query, data={"to": "earliest"}).status_code == 403


def test_problems_lead_to_the_replay_and_a_refused_one_has_no_entry_in_the_audit_log(
    repaired: Repaired, browser_of: Callable[[str], TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    user, address = browser_of("user"), f"{repaired.place}/replay"
    problems = complete(user, f"{repaired.place}/problems", "Replay dead letters")
    assert f'href="{quote(address)}?name={repaired.name}"' in problems
    complete(user, f"{repaired.place}/connector", "Replay dead letters", name=repaired.name)
    monkeypatch.setattr(Visitor, "may_edit_dag", lambda *_: False)
    before = last_entry()
    refused = user.post(address, params={"name": repaired.name})
    assert (refused.status_code, f"edit DAG {repaired.dag_id}" in refused.text) == (403, True)
    assert last_entry() == before


def test_the_plan_is_offered_to_those_only_who_may_edit_runs(
    repaired: Repaired, browser_of: Callable[[str], TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    user, address = browser_of("user"), f"{repaired.place}/connector"
    complete(user, address, "Show the plan", name=repaired.name)
    monkeypatch.setattr(Visitor, "may", lambda self, right, of: right is Right.READ)
    page = complete(user, address, "A user who may run the DAG can ask for the plan here.", name=repaired.name)
    assert "Show the plan" not in page
    assert user.post(address, params={"name": repaired.name}).status_code == 403


def test_what_only_the_running_task_knows_is_refused(
    repaired: Repaired, browser_of: Callable[[str], TestClient], tmp_path: Path
) -> None:
    user, query = browser_of("user"), {"name": repaired.name}
    complete(user, f"{repaired.place}/connector", "Replay dead letters", name=repaired.name)
    for config, told in (
        (
            {"flush.size": "{{ var.value.size }}"},
            f"Only the running task copy of DAG {repaired.dag_id} knows flush.size",
        ),
        ({"value.converter": "tests.airflow:Converter"}, "value.converter of DAG"),
    ):
        repaired.keep(tmp_path / "dag", **config)
        refused = user.get(f"{repaired.place}/replay", params=query)
        assert refused.status_code in (400, 409) and told in html.unescape(refused.text)

"""Connectors of DAGs are late by the schedules of their DAGs, and paused with them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.airflow.ui.conftest import CONN_ID
from tests.airflow.ui.test_pages import BrowserOf, complete, text_of
from tests.support.copies.showcase import Showcase
from tests.support.kept_dags import forget_dag, keep_dag

pytestmark = [pytest.mark.integration, pytest.mark.budget(20)]  # a run, and pages that are read in the background

OWN_CONN_ID = "connect_late_dags"
LIST = f"/airflow-connect/{OWN_CONN_ID}"
COPIED = "of-a-dag"
SOURCE = """
import pendulum
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG

with DAG({dag_id!r}, schedule={schedule!r}, start_date=pendulum.datetime(2026, 1, 1), catchup=False):
    EmptyOperator(task_id="copy")
"""


@pytest.fixture
def own(kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Showcase]:
    """An installation of its own, whose one connector was run by a DAG three days ago; more records have come since."""
    from tests.support.kafka_data import TopicProducer, create_topic

    name = f"late-{uuid.uuid4().hex[:8]}"
    create_topic(kafka.bootstrap, name, 1)
    made = Showcase(kafka.bootstrap, name, tmp_path / "files", TopicProducer(kafka.bootstrap), {COPIED: name})
    origin = {"dag_id": name, "dag_run_id": "scheduled__2026-11-23T01:00:00+00:00", "task_id": "copy"}
    made.add(COPIED, 5, partitions=1)
    assert made.run(COPIED, made.config(COPIED), origin, days_ago=3).status == "done"
    made.add(COPIED, 7, partitions=1)
    connection = {"conn_type": "connect_worker", "extra": made.worker}
    monkeypatch.setenv(f"AIRFLOW_CONN_{OWN_CONN_ID.upper()}", json.dumps(connection))
    monkeypatch.setenv("AIRFLOW__AIRFLOW_CONNECT__WORKER_CONN_IDS", f"{CONN_ID}, {OWN_CONN_ID}")
    yield made
    forget_dag(name)


def keep(own: Showcase, folder: Path, schedule: str | None, *, is_paused: bool = False) -> None:
    from airflow.models.dag import DagModel
    from airflow.utils.session import create_session

    folder.mkdir(exist_ok=True)
    keep_dag(folder, SOURCE.format(dag_id=own.name, schedule=schedule))
    with create_session() as session:
        session.get(DagModel, own.name).is_paused = is_paused


def test_a_connector_is_late_by_the_schedule_of_its_dag(browser_of: BrowserOf, own: Showcase, tmp_path: Path) -> None:
    browser, dags = browser_of("op"), tmp_path / "dags"
    page = complete(browser, LIST, COPIED)
    assert f"{COPIED} sink · DAG {own.name} · Has new records 7" in text_of(page)
    assert 'value="run"' in page and 'value="pause"' not in page  # of all connectors: its DAG pauses this one
    problems = text_of(complete(browser, f"{LIST}/problems", "may be late"))
    assert f"This Airflow has no DAG {own.name}, so it is not known when this connector runs." in problems

    keep(own, dags, "0 * * * *")
    told = text_of(complete(browser, LIST, "! Late"))
    assert f"{COPIED} sink · DAG {own.name} ! Late 7" in told
    page = complete(browser, f"{LIST}/problems", "a run was due")
    assert f'value="run:{COPIED}"' in page
    assert "may be late" not in text_of(page)

    keep(own, dags, "0 * * * *", is_paused=True)
    told = text_of(complete(browser, LIST, "its DAG is paused"))
    assert f"{COPIED} sink · DAG {own.name} · Paused 7" in told
    assert f"DAG {own.name} is paused." in text_of(complete(browser, f"{LIST}/connector", "paused", name=COPIED))

    keep(own, dags, None)
    complete(browser, LIST, "Has new records")
    page = text_of(complete(browser, f"{LIST}/connector", "at no fixed times", name=COPIED))
    assert f"DAG {own.name} runs at no fixed times." in page

"""Complete directories as asset events, in a real Airflow with a real driver process whose run is scripted."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.airflow.conftest import LoadDag

pytestmark = pytest.mark.usefixtures("scripted_driver")

DAG_FILE = """
from airflow.sdk import DAG, Asset
from airflow_connect.operators.connector import ConnectorOperator

with DAG({dag_id!r}, schedule=None) as dag:
    ConnectorOperator(
        task_id="copy",
        config={{"name": "meetups", "fake": "complete", "hours": {hours!r}}},
        worker={{"bootstrap.servers": "broker:9092"}},
        complete_outlet=Asset({asset!r}, "s3://bucket/topics/{asset}"),
        {more}
    )
"""


@pytest.fixture
def run(load_dag: LoadDag, unique_name: str) -> Callable[..., Any]:
    """`run(hours)`: a run of a DAG whose connector completes these hours; returns DAG run and event extras."""

    def run(hours: str, more: str = "") -> tuple[Any, list[dict[str, Any]]]:
        from airflow.models.asset import AssetEvent, AssetModel
        from airflow.utils.session import create_session

        asset = f"hours-{unique_name}"
        dag_run = load_dag(DAG_FILE.format(dag_id=unique_name, hours=hours, asset=asset, more=more)).test(
            logical_date=None
        )
        with create_session() as session:
            query = session.query(AssetEvent).join(AssetModel, AssetModel.id == AssetEvent.asset_id)
            found = query.filter(AssetModel.name == asset, AssetEvent.source_run_id == dag_run.run_id)
            return dag_run, [dict(event.extra) for event in found.order_by(AssetEvent.id)]

    return run


def test_each_complete_directory_has_an_event_with_counts_and_offsets(
    run: Callable[..., Any], xcom: Callable[..., Any]
) -> None:
    dag_run, events = run("13,14")
    assert dag_run.state == "success"
    assert [event["directory"] for event in events] == ["topics/meetups/hour=13", "topics/meetups/hour=14"]
    first = events[0]
    assert first.pop("run_id")
    assert first == {
        "topic": "meetups",
        "directory": "topics/meetups/hour=13",
        "start_ms": 13000,
        "end_ms": 14000,
        "records": 130,
        "files": 13,
        "bytes": 1300,
        "offsets": {"meetups-0": 10},
        "connector": "meetups",
    }
    assert xcom(dag_run, "copy")["complete"] == 2


def test_run_without_a_complete_directory_has_no_event(run: Callable[..., Any]) -> None:
    dag_run, events = run("")
    assert (dag_run.state, events) == ("success", [])


def test_other_outlets_keep_their_events(run: Callable[..., Any], unique_name: str) -> None:
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session

    dag_run, events = run("13", more=f'outlets=[Asset("every-{unique_name}", "s3://bucket/{unique_name}")],')
    with create_session() as session:
        count = session.query(AssetEvent).filter_by(source_run_id=dag_run.run_id).count()
    assert (len(events), count) == (1, 2)


def test_directories_of_a_first_run_over_years_are_told_of_up_to_a_limit(
    run: Callable[..., Any], capfd: pytest.CaptureFixture[str]
) -> None:
    from airflow_connect.airflow.lineage.complete_events import MOST_EVENTS

    _, events = run(",".join(map(str, range(1, MOST_EVENTS + 3))))
    assert len(events) == MOST_EVENTS
    assert events[-1]["directory"].endswith(f"hour={MOST_EVENTS + 2}")
    assert f"{MOST_EVENTS + 2} directories are complete" in "".join(capfd.readouterr())


def test_dags_of_the_how_to_page_load(load_dag: LoadDag, pytestconfig: pytest.Config) -> None:
    page = (pytestconfig.rootpath / "docs/how-to/know-when-an-hour-is-complete.md").read_text()
    producer, consumer = (load_dag(source) for source in re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    (outlet,) = producer.get_task("copy").outlets
    assert outlet.name == "complete:orders-by-hour"
    assert [asset.name for asset in consumer.timetable.asset_condition.objects] == ["orders-by-hour"]

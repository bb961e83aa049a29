"""What a run tells besides its log: metrics, links, notifications."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.airflow.lineage import stats
from airflow_connect.airflow.lineage.links import ConnectorHistoryLink, DeadLettersLink, WrittenObjectsLink
from airflow_connect.airflow.outcome import summary_of
from airflow_connect.documents.run import RunReport
from airflow_connect.documents.source_run import SourceRunReport
from airflow_connect.errors import ConfigError
from airflow_connect.notifications.connector import ConnectorNotifier, text_of
from airflow_connect.operators.connector import ConnectorOperator
from tests.airflow.conftest import LoadDag

PAGE = (Path(__file__).parents[3] / "docs/how-to/use-in-your-airflow.md").read_text()
S3 = {"name": "copy", "connector.class": "S3SinkConnector", "topics": "t", "s3.bucket.name": "lake"}
SINK = RunReport(
    "orders", "r1", "done", 0, 1500, records=7, filtered=2, dead_lettered=1, files=3, size_bytes=99,
    recovered_run_id="r0", recovered={"records": 5, "files": 1, "size_bytes": 50}, phases_ms={"copy": 20},
)  # fmt: skip


# --- metrics ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float, dict[str, str]]]:
    found: list[tuple[str, float, dict[str, str]]] = []

    def take(name: str, value: float, *, tags: dict[str, str]) -> None:
        found.append((name, value, tags))

    monkeypatch.setattr(stats.stats, "incr", take)
    monkeypatch.setattr(stats.stats, "timing", take)
    return found


def values(sent: list[tuple[str, float, dict[str, str]]]) -> dict[str, float]:
    assert all(tags["connector"] == "orders" for _, _, tags in sent)
    return {name.removeprefix("connect."): value for name, value, _ in sent}


def test_run_of_a_sink_is_counted(sent: list[Any]) -> None:
    stats.send(SINK)
    assert values(sent) == {
        "run.duration": 1500,
        "run.phase_duration": 20,
        "sink.record_read": 10,
        "sink.record_send": 7,
        "error.deadletterqueue_produce_requests": 1,
        "files_published": 3,
        "bytes_published": 99,
        "recovered": 1,
        "offset_commit": 1,
    }
    assert ("connect.run.phase_duration", 20.0, {"connector": "orders", "phase": "copy"}) in sent


def test_run_of_a_source_and_a_failure_are_counted(sent: list[Any]) -> None:
    stats.send(RunReport("orders", "r1", "done", 0, 5, records=4, source=SourceRunReport(failed=2)))
    assert values(sent) == {
        "run.duration": 5,
        "source.record_write": 4,
        "error.total_records_skipped": 2,
        "offset_commit": 1,
    }
    sent.clear()
    stats.send(RunReport("orders", "r1", "failed", 0, 5, error=ConfigError("wrong").to_json()))
    assert ("connect.run.failed", 1, {"connector": "orders", "code": "config.invalid"}) in sent


def test_page_names_every_metric() -> None:
    assert set(re.findall(r"`(connect\.[\w.]+)`", PAGE)) == set(stats.METRICS)


@pytest.mark.usefixtures("scripted_driver")
def test_task_sends_its_metrics_to_the_backend_of_airflow(load_dag: LoadDag, unique_name: str) -> None:
    from airflow.sdk._shared.observability.metrics.base_stats_logger import NoStatsLogger
    from airflow.sdk.observability import stats as airflow_stats

    source = f"""
from airflow.sdk import DAG
from airflow_connect.operators.connector import ConnectorOperator

with DAG({unique_name!r}, schedule=None):
    ConnectorOperator(task_id="copy", config={ {**S3, "fake": "copy"}!r}, worker={{"bootstrap.servers": "b:9092"}})
"""
    counted: dict[str, int] = {}

    class Backend(NoStatsLogger):
        def incr(self, stat: str, count: int = 1, *_: Any, **__: Any) -> None:  # type: ignore[override]
            counted[stat] = count

    dag = load_dag(source)
    airflow_stats.initialize(factory=Backend, export_legacy_names=False)
    try:
        assert dag.test(logical_date=None).state == "success"
    finally:
        airflow_stats.initialize(factory=NoStatsLogger, export_legacy_names=False)
    assert (counted["connect.sink.record_send"], counted["connect.files_published"]) == (20, 2)


# --- links ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "link"),
    [
        (S3, "https://console.aws.amazon.com/s3/buckets/lake?prefix=topics%2Ft%2F"),
        (
            {**S3, "topics": "a,b", "s3.region": "eu-central-1", "topics.dir": "raw/in"},
            "https://console.aws.amazon.com/s3/buckets/lake?region=eu-central-1&prefix=raw%2Fin%2F",
        ),
        ({**S3, "topics.dir": "", "topics": "a,b"}, "https://console.aws.amazon.com/s3/buckets/lake?prefix="),
        ({**S3, "store.url": "http://minio:9000"}, ""),
        ({"name": "c", "connector.class": "HdfsSinkConnector", "topics": "t", "store.url": "hdfs://nn:8020"}, ""),
    ],
    ids=["topic", "topics", "root", "other-store", "hdfs"],
)
def test_link_leads_to_the_objects_if_there_is_a_page_for_them(config: dict[str, str], link: str) -> None:
    task = ConnectorOperator(task_id="t", config=config)
    assert WrittenObjectsLink().get_link(task, ti_key=None) == link  # type: ignore[arg-type]


def test_links_lead_to_the_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.sdk import DAG

    letters = {**S3, "name": "orders 1", "errors.deadletterqueue.topic.name": "dlq"}
    with_queue = ConnectorOperator(task_id="t", dag=DAG("nightly"), config=letters)
    without = ConnectorOperator(task_id="u", dag=DAG("nightly"), config=S3)
    links = (ConnectorHistoryLink(), DeadLettersLink())
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example.com/team/")
    found = [link.get_link(task, ti_key=None) for task in (with_queue, without) for link in links]  # type: ignore[arg-type]
    page = "https://airflow.example.com/team/plugin/kafka-connect/airflow-connect/of?dag_id=nightly&connector="
    assert found == [f"{page}orders+1", f"{page}orders+1#dead-letters", f"{page}{S3['name']}", ""]


@pytest.mark.usefixtures("scripted_driver")
def test_task_keeps_its_link_and_sends_its_notification(load_dag: LoadDag, unique_name: str, tmp_path: Path) -> None:
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session

    told = tmp_path / "told"
    source = f"""
from pathlib import Path
from airflow.sdk import DAG
from airflow_connect.notifications.connector import ConnectorNotifier, text_of
from airflow_connect.operators.connector import ConnectorOperator

notify = ConnectorNotifier(lambda text: Path({str(told)!r}).open("a").write(text + "\\n"))
with DAG({unique_name!r}, schedule=None):
    for action in ("copy", "config"):
        ConnectorOperator(
            task_id=action, config={{**{S3!r}, "fake": action}}, worker={{"bootstrap.servers": "b:9092"}},
            on_success_callback=notify, on_failure_callback=notify,
        )
"""
    dag_run = load_dag(source).test(logical_date=None)
    with create_session() as session:
        query = XComModel.get_many(
            key=WrittenObjectsLink().xcom_key, run_id=dag_run.run_id, task_ids="copy", dag_ids=dag_run.dag_id
        )
        (row,) = session.scalars(query).all()
        assert XComModel.deserialize_value(row) == "https://console.aws.amazon.com/s3/buckets/lake?prefix=topics%2Ft%2F"
    text = told.read_text()
    assert f"Finished: {unique_name}.copy" in text and "20 records, 2 files, 900 B in" in text
    assert f"Failed: {unique_name}.config" in text and "It went wrong" in text


# --- notifications ----------------------------------------------------------------------------------------------------


class Instance:
    dag_id, task_id, run_id, try_number, map_index = "d", "t", "manual", 1, -1

    def __init__(self, summary: Any) -> None:
        self.summary = summary

    def xcom_pull(self, **_: Any) -> Any:
        return self.summary


def texts(summary: Any, **arguments: Any) -> list[str]:
    heard: list[str] = []
    ConnectorNotifier(heard.append, **arguments).notify({"ti": Instance(summary)})  # type: ignore[typeddict-item]
    return heard


def test_text_says_what_is_not_as_it_should_be() -> None:
    (text,) = texts(summary_of(SINK))
    assert text == (
        "Finished: d.t, manual, try 1\n"
        "orders: 7 records, 3 files, 99 B in 1.5 s; 1 record in the dead letter queue; run r0 was finished first: 5"
        " records. Run r1."
    )


def test_empty_run_is_told_in_words_or_not_at_all() -> None:
    empty = summary_of(RunReport("orders", "r1", "empty", 0, 1))
    assert texts(empty) == ["Finished: d.t, manual, try 1\norders: nothing to copy. Run r1."]
    assert texts(empty, only_if_records=True) == []
    assert len(texts(summary_of(SINK), only_if_records=True)) == 1


def test_what_is_wrong_comes_with_the_address_of_the_page_of_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    link = "\nProblems: https://airflow.example.com/plugin/kafka-connect/airflow-connect/problems"
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example.com/")
    assert text_of(Instance(None), None, "It went wrong.") == f"Failed: d.t, manual, try 1\nIt went wrong.{link}"
    (text,) = texts(summary_of(SINK))
    assert text.endswith(f" Run r1.{link}")
    (text,) = texts(summary_of(replace(SINK, dead_lettered=0)))
    assert "Problems" not in text


def test_channel_is_any_other_notifier() -> None:
    class Channel(ConnectorNotifier):
        def notify(self, context: Any) -> None:
            heard.append((self.send, context["ti"].dag_id))

    heard: list[Any] = []
    ConnectorNotifier(Channel).notify({"ti": Instance(None)})  # type: ignore[typeddict-item]
    assert heard == [("Finished: d.t, manual, try 1", "d")]

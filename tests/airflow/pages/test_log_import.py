"""dags/log_import.py on a real broker, through a real driver with Spark: what runs import, and what people see."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.testing.topics import Topics
from tests.airflow.conftest import DAGS, LoadDag

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark_classes")]

PROJECT = Path(__file__).parents[3]
FIRST_RUN = datetime(2026, 11, 22, tzinfo=UTC)


def lines(*numbers: int) -> str:
    """Lines of a web server's log, each with a request of its own."""
    end = 'HTTP/1.1" 200 2326 "-" "curl/8.5"'
    return "".join(f'10.0.0.7 - - [22/Nov/2026:02:13:55 +0000] "GET /{n} {end}\n' for n in numbers)


@pytest.fixture
def scheduled_run(
    load_dag: LoadDag, kafka: KafkaBroker, unique_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], Any]]:
    """Each call is the next run of the schedule, for the log of the test's folder and topics of its own."""
    config = json.loads((PROJECT / "dags/access-log.json").read_text())
    config.update({"name": unique_name, "topic": unique_name, "files": f"{tmp_path}/access.log*"})
    config["dead.letter.topic"] = f"{unique_name}-unreadable"
    beside = DAGS / "access-log.json"
    beside.write_text(json.dumps(config))
    one_broker = {f"{topic}.storage.replication.factor": "1" for topic in ("runs", "offset", "config")}
    extra = {"bootstrap.servers": kafka.bootstrap, "spark.master": "local[2]", **one_broker}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps({"conn_type": "kafka", "extra": extra}))
    dates = (FIRST_RUN + number * timedelta(minutes=5) for number in range(100))

    def run(**conf: Any) -> Any:
        dag = load_dag((PROJECT / "dags/log_import.py").read_text())
        dag.get_task("import_access_log").retries = 0  # a failure shall show at once
        return dag.test(logical_date=next(dates), run_conf=conf or None)

    yield run
    beside.unlink()


def asset_extras(run: Any) -> list[dict[str, Any]]:
    """What the asset events of a run carry."""
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session

    with create_session() as session:
        return [dict(event.extra) for event in session.query(AssetEvent).filter_by(source_run_id=run.run_id)]


def test_each_run_imports_what_is_new_through_a_rotation_and_says_how_far_it_came(
    scheduled_run: Callable[[], Any],
    kafka: KafkaBroker,
    unique_name: str,
    tmp_path: Path,
    xcom: Callable[..., Any],
    capfd: pytest.CaptureFixture[str],
    without_spark: Callable[[], None],
) -> None:
    log, rotated, topics = tmp_path / "access.log", tmp_path / "access.log.1", Topics(kafka.bootstrap)

    def run() -> dict[str, Any]:
        dag_run = scheduled_run()
        assert dag_run.state == "success", "".join(capfd.readouterr())
        summary: dict[str, Any] = xcom(dag_run, "import_access_log")
        told = ("records", "topics", "partitions", "offsets", "run_id")
        assert asset_extras(dag_run) == [{name: summary[name] for name in told}]
        return summary

    def positions(summary: dict[str, Any]) -> dict[str, int]:
        return {Path(o["partition"]["filename"]).name: o["offset"]["position"] for o in summary["offsets"]}

    log.write_text(lines(0, 1, 2) + "not a line of that kind\n")
    first = run()
    assert (first["status"], first["delivery_guarantee"]) == ("done", "exactly_once")
    assert first["topics"] == {unique_name: 3, f"{unique_name}-unreadable": 1}
    assert positions(first) == {"access.log": log.stat().st_size}
    printed = "".join(capfd.readouterr())
    assert "copy: 4 records, " in printed
    assert f"4 records to {unique_name}, {unique_name}-unreadable, " in printed

    without_spark()
    with log.open("a") as more:
        more.write(lines(3, 4))
    log.rename(rotated)
    log.write_text(lines(5))
    second = run()
    assert (second["records"], second["topics"]) == (3, {unique_name: 3})
    assert positions(second) == {"access.log": log.stat().st_size, "access.log.1": rotated.stat().st_size}

    third = run()
    assert (third["status"], third["records"], third["topics"], third["offsets"]) == ("empty", 0, {}, [])

    requests = [json.loads(message.value() or b"null")["request"] for message in topics.read(unique_name)]
    assert requests == [f"/{number}" for number in range(6)]
    (unreadable,) = topics.read(f"{unique_name}-unreadable")
    assert json.loads(unreadable.value() or b"null") == "not a line of that kind"


def test_trigger_form_bounds_a_run_and_a_limit_of_sinks_is_refused(
    scheduled_run: Callable[..., Any],
    kafka: KafkaBroker,
    unique_name: str,
    tmp_path: Path,
    xcom: Callable[..., Any],
    capfd: pytest.CaptureFixture[str],
    without_spark: Callable[[], None],
) -> None:
    without_spark()  # the import is on Spark in the test above
    for number in range(2):  # one for each task
        (tmp_path / f"access.log.{number}").write_text(lines(*range(number * 50, number * 50 + 50)))

    refused = scheduled_run(**{"run.until.timestamp": "2026-11-22T02:00:00Z"})
    assert refused.state == "failed"
    assert "run.until.timestamp limits runs of sinks only" in "".join(capfd.readouterr())

    bounded = scheduled_run(**{"run.max.records": 10})
    assert bounded.state == "success", "".join(capfd.readouterr())
    assert xcom(bounded, "import_access_log")["records"] == 10

    unbounded = scheduled_run()
    assert xcom(unbounded, "import_access_log")["records"] == 90
    copied = [json.loads(message.value() or b"null") for message in Topics(kafka.bootstrap).read(unique_name)]
    assert sorted(line["request"] for line in copied) == sorted(f"/{number}" for number in range(100))

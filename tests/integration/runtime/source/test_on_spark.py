"""Sources on Spark and through the command line, and a broker that goes away in the middle of a transaction."""

from __future__ import annotations

import io
import json
import threading
from pathlib import Path

import pytest

from airflow_connect.cli.main import build_parser, execute
from airflow_connect.cli.terminal import Terminal
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.runtime.driver.entry import run_connector
from airflow_connect.runtime.engine.spark import SparkEngine
from tests.integration.runtime.source.conftest import Numbers
from tests.integration.runtime.source.numbers import held_by
from tests.support.kafka_data import create_topic
from tests.support.servers.spark import StandaloneCluster
from tests.support.session.durations import slowness
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark_classes")]


def command(name: str, *files: Path) -> str:
    """What a command that succeeds prints, on both streams."""
    out, err = io.StringIO(), io.StringIO()
    arguments = build_parser().parse_args([name, *map(str, files)])
    assert execute(arguments, Terminal(out, err)) == 0, err.getvalue()
    return out.getvalue() + err.getvalue()


def test_command_line_runs_a_source_on_spark_and_the_next_run_goes_on_where_it_was(numbers: Numbers, tmp_path: Path):
    numbers.feed(50, 40, 30)
    spec = numbers.spec(tasks_max="3")
    worker, connector = tmp_path / "worker.properties", tmp_path / "numbers.json"
    settings = {**spec.worker, "spark.master": "local[2]"}
    worker.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    connector.write_text(json.dumps({"name": numbers.name, "config": dict(spec.connector)}))

    assert "3 tasks, exactly_once, a transaction per poll" in command("plan", worker, connector)
    assert f"120 records to {numbers.topic}" in command("standalone", worker, connector)
    numbers.assert_exactly_once(50, 40, 30)

    numbers.feed(51, 40, 30)
    assert '{"p":0}' in command("plan", worker, connector)
    report = numbers.run()
    assert (report.status, report.records) == ("done", 1)
    numbers.assert_exactly_once(51, 40, 30)


def starts_of_the_slow_task(notes: Path) -> list[tuple[int, int]]:
    """Process and first number of each attempt that reads source partition 1."""
    lines = notes.read_text().splitlines() if notes.exists() else []
    return [(pid, first["1"]) for what, pid, first in map(json.loads, lines) if what == "start" and "1" in first]


@pytest.mark.budget(40)  # a cluster of two hosts, and a task that is slow
def test_speculative_copy_of_a_slow_task_goes_on_where_the_first_one_was_and_nothing_is_doubled(
    numbers: Numbers, tmp_path: Path
):
    notes, hold = tmp_path / "notes", tmp_path / "hold"
    hold.touch()
    # The only partition with a second batch is the one whose first attempt is held.
    numbers.feed(1, 40)
    speculation = {
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.efficiency.enabled": "false",
        # Long enough for the first attempt to commit its first batch, also on a busy machine.
        "spark.speculation.minTaskRuntime": f"{5 * slowness():.0f}s",
    }
    spec = numbers.spec(tasks_max="2", numbers_batch="1", numbers_notes=str(notes), numbers_hold=str(hold))

    def let_go_on_beside_the_second_copy() -> None:
        wait_until(lambda: len(starts_of_the_slow_task(notes)) > 1, "a second copy of the slow task", 90)
        held_by(hold).unlink()

    releasing = threading.Thread(target=let_go_on_beside_the_second_copy)
    with (
        StandaloneCluster.start(has_hosts=True) as cluster,
        SparkEngine({**cluster.settings(), **speculation}) as engine,
    ):
        releasing.start()
        report = run_connector(spec, engine=engine)
        releasing.join()

    assert report.status == "done", report.error
    slow = starts_of_the_slow_task(notes)
    assert len({pid for pid, _ in slow}) >= 2, slow
    assert max(first for _, first in slow) > 0, "the second copy began behind what the first one had committed"
    assert "1 task needed more than one attempt; counts are those of the last attempts." in report.notes
    assert numbers.run().status == "empty"
    numbers.assert_exactly_once(1, 40)


def test_speculation_is_refused_for_a_source_that_delivers_at_most_once(numbers: Numbers):
    numbers.feed(3)
    with SparkEngine({"spark.master": "local[1]", "spark.speculation": "true"}) as engine:
        refused = run_connector(numbers.spec(delivery_guarantee="at_most_once"), engine=engine)
        assert refused.error is not None
        assert refused.error["code"] == "spark.speculation"
        assert f"and {numbers.name} delivers at most once" in refused.error["message"]
        report = run_connector(numbers.spec(), engine=engine)

    assert (report.status, report.records) == ("done", 3), report.error
    numbers.assert_exactly_once(3)


def test_broker_that_restarts_in_the_middle_of_a_transaction_loses_and_doubles_nothing(
    tmp_path: Path, unique_name: str
):
    with KafkaBroker.start() as broker:
        create_topic(broker.bootstrap, unique_name, 1, None)
        numbers = Numbers(broker.bootstrap, unique_name, unique_name, tmp_path / "counts.json")
        notes = tmp_path / "notes"
        numbers.feed(60)
        numbers.config |= {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "300"}

        def restart() -> None:
            wait_until(notes.exists, "the task has started")
            broker.restart()

        restarting = threading.Thread(target=restart)
        restarting.start()
        report = numbers.try_run(numbers_batch="2", numbers_pause="0.1", tasks_max="1", numbers_notes=str(notes))
        restarting.join()

        assert report.error is None or report.error["retriable"], report.error
        numbers.run()
        numbers.assert_exactly_once(60)

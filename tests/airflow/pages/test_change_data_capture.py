"""The DAG that reads changes with Debezium, and its page, on a real broker and a real PostgreSQL."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.operators.connector_task import ConnectorTask
from airflow_connect.testing.topics import Topics
from tests.airflow.conftest import LoadDag
from tests.devstack.postgresql import USER, PostgresServer
from tests.support.copies.java_plugin import locked_plugin
from tests.support.servers.databases import Database

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark_classes")]

PROJECT = Path(__file__).parents[3]
DAG_FILE = (PROJECT / "dags/debezium_hourly.py").read_text()
ONE_BROKER = {f"{topic}.storage.replication.factor": "1" for topic in ("runs", "offset", "config")}


def test_page_has_the_dag_of_the_dags_folder() -> None:
    page = (PROJECT / "docs/how-to/change-data-capture.md").read_text()
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert code == DAG_FILE.partition("# [START howto]\n")[2].partition("# [END howto]")[0]


@pytest.mark.budget(60)  # two runs with Spark and two JVMs each
def test_each_run_of_the_dag_reads_what_has_changed(
    kafka: KafkaBroker,
    postgresql: PostgresServer,
    postgresql_database: Database,
    unique_name: str,
    tmp_path: Path,
    load_dag: LoadDag,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    xcom: Callable[..., Any],
) -> None:
    plugin_path = locked_plugin(tmp_path / "plugins", "debezium-postgres-3.6.3")
    slot = unique_name.replace("-", "_")
    extra = {"bootstrap.servers": kafka.bootstrap, "plugin.path": str(plugin_path)}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps({"conn_type": "kafka", "extra": extra}))
    database = {
        "conn_type": "postgres", "host": "127.0.0.1", "port": postgresql.ports[0], "login": USER,
        "password": "a secret word", "schema": slot,
    }  # fmt: skip
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_DB", json.dumps(database))
    source = DAG_FILE.replace('"shop_changes"', f'"{slot}"').replace('"shop-changes"', f'"changes-{unique_name}"')
    source = source.replace('"topic.prefix": "shop"', f'"topic.prefix": "{unique_name}"')
    source = source.replace('"replication.factor": "-1"', '"replication.factor": "1"')

    def execute(*statements: str) -> None:
        engine = create_engine(postgresql_database.url)
        with engine.begin() as connection:
            for statement in statements:
                connection.execute(text(statement))
        engine.dispose()

    def run() -> tuple[str, int]:
        dag = load_dag(source)
        for task in dag.tasks:
            task.retries = 0  # a failure shall show at once
            if isinstance(task, ConnectorTask):
                task.worker = {**ONE_BROKER, "spark.master": "local[2]"}
        done = dag.test(logical_date=None)
        return done.state, xcom(done, "read_changes")["records"]

    execute("create table orders (id int primary key, name text)", "insert into orders values (1, 'a'), (2, 'b')")
    first = run()
    log = "".join(capfd.readouterr())
    assert first == ("success", 2), log[-9_000:]
    assert "a secret word" not in log
    execute("update orders set name = 'c' where id = 2", "delete from orders where id = 1")
    assert run() == ("success", 2)
    found = [json.loads(m.value() or b"") for m in Topics(kafka.bootstrap).read(f"{unique_name}.public.orders")]
    rows = [(row["id"], row["name"], row["__deleted"]) for row in found]
    assert sorted(rows, key=str) == [
        (1, "a", "false"), (1, None, "true"), (2, "b", "false"), (2, "c", "false"),
    ]  # fmt: skip
    execute(f"select pg_drop_replication_slot('{slot}')")

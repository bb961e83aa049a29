"""dags/database_sync.py and dags/kafka_to_database.py, on real servers, through a real driver with Spark."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url

from airflow_connect.devstack.kafka import KafkaBroker
from tests.airflow.conftest import DAGS, LoadDag
from tests.support.kafka_data import TopicProducer
from tests.support.servers.databases import Database

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark_classes")]

PROJECT = Path(__file__).parents[3]
PAGE = (PROJECT / "docs/how-to/replicate-a-database.md").read_text()
PASSWORD = "opensesame1"


def connection_to(database: Database) -> dict[str, Any]:
    """As people fill the form of a connection; the server trusts its user, with any password."""
    url = make_url(database.url)
    kind = {"postgresql": "postgres", "sqlite": "sqlite"}[database.dialect]
    fields = {"host": url.host, "port": url.port, "schema": url.database, "login": url.username, "password": PASSWORD}
    return {"conn_type": kind, **(fields if kind == "postgres" else {"host": url.database})}


@pytest.fixture
def connect(kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`connect(shop_db=database)`: connections of these names, and the one to Kafka."""
    one_broker = {f"{topic}.storage.replication.factor": "1" for topic in ("runs", "offset", "config")}
    extra = {"bootstrap.servers": kafka.bootstrap, "spark.master": "local[2]", **one_broker}

    def make(**databases: Database) -> None:
        monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps({"conn_type": "kafka", "extra": extra}))
        for name, database in databases.items():
            monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", json.dumps(connection_to(database)))

    return make


@pytest.fixture
def beside() -> Iterator[Callable[..., None]]:
    """`beside("orders.json", name="x")`: the file of the folder dags/ with other values, beside the DAG."""
    written: list[Path] = []

    def write(file: str, **changes: str) -> None:
        config = json.loads((PROJECT / "dags" / file).read_text())
        config.update({key.replace("_", "."): value for key, value in changes.items()})
        written.append(DAGS / file)
        written[-1].write_text(json.dumps(config))

    yield write
    for path in written:
        path.unlink()


@pytest.fixture
def run(load_dag: LoadDag, capfd: pytest.CaptureFixture[str]) -> Callable[[str], Any]:
    """Run a DAG of the folder dags/; neither its log nor what Airflow stores has the password."""

    def start(file: str) -> Any:
        from airflow.models.renderedtifields import RenderedTaskInstanceFields

        dag = load_dag((PROJECT / "dags" / file).read_text())
        for task in dag.tasks:
            task.retries = 0  # a failure shall show at once
        found = dag.test(logical_date=None)
        seen = "".join(capfd.readouterr())
        assert found.state == "success", seen
        for task in found.get_task_instances():
            seen += json.dumps(RenderedTaskInstanceFields.get_templated_fields(task))
        assert "jdbc:" in seen
        assert PASSWORD not in seen
        return found

    return start


TABLE = "id BIGSERIAL PRIMARY KEY, item TEXT, price NUMERIC(10, 2), updated_at TIMESTAMPTZ NOT NULL"
ROWS = "SELECT id, item, price, updated_at FROM {0} ORDER BY id"


def rows_of(database: Database, table: str, copied: str | None = None) -> Any:
    """Rows, with times as the sink writes them: in UTC, without a zone."""
    found = database.rows(ROWS.format(copied or table))
    return [(*row[:3], row[3].replace(tzinfo=None)) for row in found]


@pytest.mark.budget(20)  # two drivers with Spark, and four without
def test_database_is_replicated_with_what_has_changed(
    connect: Callable[..., None],
    beside: Callable[..., None],
    run: Callable[[str], Any],
    postgresql_database: Database,
    sqlite_database: Database,
    unique_name: str,
    xcom: Callable[..., Any],
    without_spark: Callable[[], None],
) -> None:
    shop = postgresql_database
    shop.execute(
        f"CREATE TABLE orders ({TABLE})",
        "INSERT INTO orders (item, price, updated_at)"
        " SELECT 'item ' || n, n * 1.01, now() - interval '1 hour' FROM generate_series(1, 50) n",
    )
    connect(shop_db=shop, warehouse_db=sqlite_database)
    prefix = f"{unique_name}-"
    beside("shop-database.json", name=f"{unique_name}-shop", topic_prefix=prefix)
    names = {"topics_regex": f"{prefix}.*", "transforms_table_regex": f"{prefix}(.*)"}
    beside("warehouse.json", name=f"{unique_name}-warehouse", **names)

    first = run("database_sync.py")
    assert xcom(first, "read_shop")["topics"] == {f"{prefix}orders": 50}
    assert xcom(first, "write_warehouse")["records"] == 50

    without_spark()
    shop.execute(
        "UPDATE orders SET item = 'changed', updated_at = now() - interval '1 minute' WHERE id = 7",
        f"CREATE TABLE customers ({TABLE})",
        "INSERT INTO customers (item, price, updated_at) VALUES ('Anna', 1, now() - interval '1 minute')",
    )
    second = run("database_sync.py")
    assert xcom(second, "read_shop")["topics"] == {f"{prefix}customers": 1, f"{prefix}orders": 1}
    assert xcom(second, "write_warehouse")["records"] == 2
    for table in ("orders", "customers"):
        copied = sqlite_database.rows(f"SELECT id, item, price FROM {table} ORDER BY id")
        wanted = shop.rows(f"SELECT id, item, price FROM {table} ORDER BY id")
        assert [(i, item, float(price)) for i, item, price in copied] == [(i, item, float(p)) for i, item, p in wanted]

    third = run("database_sync.py")
    assert [xcom(third, task)["status"] for task in ("read_shop", "write_warehouse")] == ["empty", "empty"]


def test_topic_becomes_a_table(
    connect: Callable[..., None],
    beside: Callable[..., None],
    run: Callable[[str], Any],
    postgresql_database: Database,
    make_topic: Callable[..., str],
    produce: TopicProducer,
    xcom: Callable[..., Any],
    without_spark: Callable[[], None],
) -> None:
    without_spark()  # the sink is on Spark in the test above
    topic = make_topic(2)
    produce(topic, [(n % 2, f"k{n}", json.dumps({"amount": n})) for n in range(20)])
    produce(topic, [(0, "k0", json.dumps({"amount": 100})), (1, "k1", None)])
    connect(shop_db=postgresql_database)
    beside("orders-to-database.json", name=f"{topic}-to-database", topics=topic, **{"table.name.format": "orders"})

    done = run("kafka_to_database.py")
    assert xcom(done, "copy_orders")["records"] == 22
    expected = [("k0", 100), *((f"k{n}", n) for n in range(2, 20))]
    assert postgresql_database.rows("SELECT id, amount FROM orders ORDER BY id") == sorted(expected)


def test_page_has_the_dag_and_the_configurations_of_the_dags_folder() -> None:
    source = (PROJECT / "dags/database_sync.py").read_text()
    quoted = source.partition("# [START howto]\n")[2].partition("# [END howto]")[0]
    (shown,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert shown == quoted
    written = [
        json.loads(block) for block in re.findall(r"^```json db_conn_id\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    ]
    assert written == [json.loads((PROJECT / "dags" / f).read_text()) for f in ("shop-database.json", "warehouse.json")]

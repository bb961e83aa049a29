"""dags/kafka_to_iceberg.py, on a real broker, through a real driver with Spark, with a catalog in SQLite."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog

from airflow_connect.devstack.kafka import KafkaBroker
from tests.airflow.conftest import DAGS, LoadDag
from tests.support.copies.iceberg import sqlite_catalog
from tests.support.kafka_data import TopicProducer

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark_classes")]

PROJECT = Path(__file__).parents[3]
DAY_MS = 24 * 3600 * 1000
ORDERS = [{"id": n, "customer": f"c{n % 7}", "amount": n / 4, "ordered_at": n % 3 * DAY_MS + n} for n in range(100)]


# It starts a driver with Spark.
@pytest.mark.budget(20)
def test_lake_dag_appends_every_record_once(
    load_dag: LoadDag,
    kafka: KafkaBroker,
    tmp_path: Path,
    make_topic: Callable[..., str],
    produce: TopicProducer,
    without_spark: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    xcom: Callable[..., Any],
) -> None:
    topic = make_topic(2)
    produce(topic, [(n % 2, str(n), json.dumps(order), 1_000 + n, []) for n, order in enumerate(ORDERS)])
    config = json.loads((PROJECT / "dags/orders-to-lake.json").read_text())
    # The catalog of a server becomes one in SQLite; it has no credentials.
    config = {key: value for key, value in config.items() if not key.startswith("iceberg.catalog.s3.")}
    own = {"name": f"{topic}-to-lake", "topics": topic, "iceberg.catalog.type": "sql"}
    path = DAGS / "orders-to-lake.json"
    path.write_text(json.dumps(config | own))
    extra = {"bootstrap.servers": kafka.bootstrap, "runs.storage.replication.factor": "1", "spark.master": "local[2]"}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps({"conn_type": "kafka", "extra": extra}))
    where = sqlite_catalog(tmp_path)
    lake = {"conn_type": "generic", "extra": {"uri": where["uri"], "warehouse": where["warehouse"]}}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE_DEFAULT", json.dumps(lake))

    states, events = [], []
    for _ in range(2):
        dag = load_dag((PROJECT / "dags/kafka_to_iceberg.py").read_text())
        task = dag.get_task("append_orders")
        task.retries = 0  # a failure shall show at once
        run = dag.test(logical_date=None)
        states.append(run.state)
        events += asset_events(run)
        without_spark()  # the second run finds nothing

    assert states == ["success", "success"]
    page = (PROJECT / "docs/how-to/fill-a-lake-table.md").read_text()
    (code,) = re.findall(r"^   ```python\n(.*?)^   ```", page, re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {"catalog": load_catalog("iceberg", **where)}
    exec(textwrap.dedent(code), names)
    found = sorted(names["orders"]["amount"].to_pylist())
    assert found == [order["amount"] for order in ORDERS if order["amount"] > 20]
    assert len(names["as_it_was"]) == len(ORDERS)
    table = names["table"]
    rows = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    assert [{**row, "ordered_at": int(row["ordered_at"].timestamp() * 1000)} for row in rows] == ORDERS
    assert len(table.metadata.snapshots) == 1
    assert len({task.file.partition[0] for task in table.scan().plan_files()}) == 3
    assert [asset.uri for asset in task.outlets] == ["iceberg://iceberg/sales.orders"]

    (snapshot,) = table.metadata.snapshots
    told = events[0].extra["snapshots"]
    assert [(one["snapshot_id"], one["branch"], one["records"]) for one in told] == [
        (str(snapshot.snapshot_id), "main", len(ORDERS))
    ]
    assert told[0]["offsets"] == {f"{topic}-{p}": [0, len(ORDERS) // 2] for p in range(2)}
    assert events[1].extra["snapshots"] == []
    table.append(table.scan().to_arrow())  # Another writer commits after the run.
    consumer, maintenance = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    total = load_dag(consumer.replace('"type": "rest"', '"type": "sql"')).get_task("total").python_callable
    amounts = sum(order["amount"] for order in ORDERS)
    repeated = {"asset": [*events, events[0]]}
    assert (total(repeated), total({"asset": events[1:]})) == (amounts, 0)

    for _ in range(3):  # The snapshot of the run stays, and so does all since then.
        table.append(table.scan(limit=0).to_arrow().cast(table.schema().as_arrow()))
    own = f"airflow-connect.{topic}-to-lake.main.published"
    table.transaction().set_properties({own: '{"runs":[]}'}).commit_transaction()
    found = []
    for changed in ("dry_run=True", "dry_run=False"):
        source = maintenance.replace("older_than=timedelta(days=7)", f"older_than=timedelta(0), {changed}")
        dag = load_dag(source.replace("keep_last=10", "keep_last=2"))
        run = dag.test(logical_date=None)
        assert run.state == "success"
        found.append(xcom(run, "expire"))
    path.unlink()
    numbers = {"snapshots": 5, "expired": 3, "young": 0, "needed": 2}
    assert found == [{"expired": 3, "dry_run": is_dry, "tables": {"sales.orders": numbers}} for is_dry in (True, False)]
    table.refresh()
    assert len(table.metadata.snapshots) == 2


def asset_events(run: Any) -> list[Any]:
    """The events that a DAG run has sent, oldest first."""
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session

    with create_session() as session:
        found = session.query(AssetEvent).filter_by(source_run_id=run.run_id).order_by(AssetEvent.id)
        return [SimpleNamespace(extra=dict(event.extra)) for event in found]

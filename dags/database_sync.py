"""Replicate a whole database every hour: what is new or changed goes to Kafka, and from there into another database.

A DAG to copy, with its two files. `shop-database.json` reads all tables, `warehouse.json` writes them. Addresses and
passwords come from three Airflow connections: `kafka_default`, `shop_db` and `warehouse_db`.
"""

# [START howto]
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.sdk import DAG, Asset

from airflow_connect.operators.connector import ConnectorOperator, run_params

HERE = Path(__file__).parent

with DAG(
    dag_id="database_sync",
    schedule="@hourly",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,  # what is copied follows from the offsets in Kafka, not from the date of a run
    max_active_runs=1,
    params=run_params(source=True),  # the trigger form asks how much to copy
    tags=["database", "kafka"],
    doc_md=__doc__,
    default_args={"kafka_conn_id": "kafka_default", "retries": 3, "retry_delay": timedelta(minutes=1)},
):
    read = ConnectorOperator(
        task_id="read_shop",
        config_file=HERE / "shop-database.json",
        db_conn_id="shop_db",
        outlets=[Asset("shop_changes")],  # its events carry counts and offsets
    )
    write = ConnectorOperator(
        task_id="write_warehouse",
        config_file=HERE / "warehouse.json",
        db_conn_id="warehouse_db",
        outlets=[Asset("warehouse")],
    )
    read >> write
# [END howto]

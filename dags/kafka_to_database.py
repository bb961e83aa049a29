"""Copy a Kafka topic into a table of a database every hour, each record exactly once. A DAG to copy, with its file.

`orders-to-database.json` is a configuration of Confluent's JDBC sink. The addresses of the brokers, and address, user
and password of the database come from two Airflow connections: `kafka_default` and `shop_db`.
"""

# [START howto]
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.sdk import DAG, Asset

from airflow_connect.operators.connector import ConnectorOperator, run_params

with DAG(
    dag_id="kafka_to_database",
    schedule="@hourly",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,  # what is copied follows from the offsets in Kafka, not from the date of a run
    max_active_runs=1,
    params=run_params(),  # the trigger form asks how much to copy
    tags=["kafka", "database"],
    doc_md=__doc__,
):
    ConnectorOperator(
        task_id="copy_orders",
        config_file=Path(__file__).with_name("orders-to-database.json"),
        kafka_conn_id="kafka_default",
        db_conn_id="shop_db",
        retries=3,  # safe at any moment: what was written is not written again
        retry_delay=timedelta(minutes=1),
        outlets=[Asset("orders_table", "postgres://db:5432/shop/public/orders")],
    )
# [END howto]

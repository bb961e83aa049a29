"""Append a Kafka topic to a table of a lake every hour. A DAG to copy, with its file.

`orders-to-lake.json` is a configuration of Apache's Iceberg sink. The addresses of the brokers come from the Airflow
connection `kafka_default`. The catalog and its credentials come from the connection `lake_default`: its extra has the
members `uri`, `warehouse`, and for S3 `endpoint`; login and password are the keys of S3.
"""

# [START howto]
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.sdk import DAG

from airflow_connect.operators.connector import ConnectorOperator, run_params

with DAG(
    dag_id="kafka_to_iceberg",
    schedule="@hourly",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,  # what is copied follows from the offsets in Kafka, not from the date of a run
    max_active_runs=1,
    params=run_params(),  # the trigger form asks how much to copy
    tags=["kafka", "iceberg"],
    doc_md=__doc__,
):
    ConnectorOperator(
        task_id="append_orders",
        config_file=Path(__file__).with_name("orders-to-lake.json"),
        kafka_conn_id="kafka_default",
        retries=3,  # safe at any moment: a snapshot is added once
        retry_delay=timedelta(minutes=1),
    )
# [END howto]

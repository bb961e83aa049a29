"""Copy a topic without holding a worker slot: the driver runs at a driver service. A DAG to copy, with its JSON file.

On the machine that has Spark: `airflow-connect driver-service`, and in Airflow a connection of type `connect_driver`.
"""

# [START deferrable]
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.sdk import DAG, Asset

from airflow_connect.operators.connector import ConnectorOperator, run_params

with DAG(
    dag_id="deferrable_copy",
    schedule="@hourly",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    params=run_params(),
    tags=["kafka", "s3"],
):
    ConnectorOperator(
        task_id="copy_meetups",
        config_file=Path(__file__).with_name("meetups-to-s3.json"),
        kafka_conn_id="kafka_default",
        aws_conn_id="aws_default",
        driver_conn_id="connect_driver_default",
        deferrable=True,
        execution_timeout=timedelta(hours=1),
        retries=3,
        retry_delay=timedelta(minutes=1),
        outlets=[Asset("meetups", "s3://meetups/topics/meetups")],  # the name that kafka_to_s3.py gives this URI
    )
# [END deferrable]

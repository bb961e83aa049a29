"""Copy the last full hour as soon as the topic has passed its end. A DAG to copy, together with its JSON file.

The sensor waits in the triggerer, without a worker slot, until every partition of the topic holds a record of the next
hour, or has been quiet for a quarter of an hour.
"""

# [START hour]
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.sdk import DAG, Asset

from airflow_connect.operators.connector import ConnectorOperator
from airflow_connect.sensors.topics import PartitionCompleteSensor

with DAG(
    dag_id="wait_for_hour",
    schedule="@hourly",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    tags=["kafka", "s3"],
):
    hour_is_over = PartitionCompleteSensor(
        task_id="hour_is_over",
        topics="meetups",
        time="{{ dag_run.run_after.strftime('%Y-%m-%dT%H:00:00+00:00') }}",  # every run has it, however it began
        idle_after=timedelta(minutes=15),
        kafka_conn_id="kafka_default",
        deferrable=True,
        timeout=timedelta(hours=2).total_seconds(),
    )
    copy = ConnectorOperator(
        task_id="copy_meetups",
        config_file=Path(__file__).with_name("meetups-to-s3.json"),
        kafka_conn_id="kafka_default",
        aws_conn_id="aws_default",
        retries=3,
        retry_delay=timedelta(minutes=1),
        outlets=[Asset("meetups", "s3://meetups/topics/meetups")],  # the name that kafka_to_s3.py gives this URI
    )
    hour_is_over >> copy
# [END hour]

"""Copy a Kafka topic to files in a directory every hour, each record exactly once. A DAG to copy.

The machines that run drivers and Spark executors must see the directory of `meetups-to-files.json` under the same
path: a network file system, or one machine. The addresses of the brokers come from an Airflow connection.
"""

# [START howto]
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.sdk import DAG, Asset

from airflow_connect.operators.connector import ConnectorOperator, run_params

with DAG(
    dag_id="kafka_to_files",
    schedule="@hourly",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,  # what is copied follows from the offsets in Kafka, not from the date of a run
    max_active_runs=1,
    params=run_params(),  # the trigger form asks how much to copy
    tags=["kafka", "files"],
    doc_md=__doc__,
):
    ConnectorOperator(
        task_id="copy_meetups",
        config_file=Path(__file__).with_name("meetups-to-files.json"),
        kafka_conn_id="kafka_default",
        retries=3,
        retry_delay=timedelta(minutes=1),
        outlets=[Asset("meetups_files", "file:///data/meetups/topics/meetups")],  # its events carry counts and offsets
    )
# [END howto]

"""Copy a Kafka topic to S3 every hour, each record exactly once. A DAG to copy, together with its JSON file.

`meetups-to-s3.json` is an unchanged configuration of Confluent's S3 sink. The addresses of the brokers and the
credentials for the bucket come from two Airflow connections.
"""

# [START howto]
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.sdk import DAG, Asset

from airflow_connect.operators.connector import ConnectorOperator, run_params

with DAG(
    dag_id="kafka_to_s3",
    schedule="@hourly",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,  # what is copied follows from the offsets in Kafka, not from the date of a run
    max_active_runs=1,
    params=run_params(),  # the trigger form asks how much to copy
    tags=["kafka", "s3"],
    doc_md=__doc__,
):
    ConnectorOperator(
        task_id="copy_meetups",
        config_file=Path(__file__).with_name("meetups-to-s3.json"),
        kafka_conn_id="kafka_default",
        aws_conn_id="aws_default",  # None: the credentials of the machine
        retries=3,
        retry_delay=timedelta(minutes=1),
        outlets=[Asset("meetups", "s3://meetups/topics/meetups")],  # its events carry counts and offsets
    )
# [END howto]

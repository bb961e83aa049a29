"""Copy a Kafka topic to S3 when enough has arrived, instead of on a schedule. A DAG to copy, with its JSON file.

Airflow's triggerer looks at the topic once a minute. It starts a run when 10,000 records wait, or when the oldest of
them has waited for ten minutes. A topic without new records costs no run.
"""

# [START event]
from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG, Asset, AssetWatcher

from airflow_connect.operators.connector import ConnectorOperator
from airflow_connect.triggers.lag_event import ConnectorLagEventTrigger

CONFIG = Path(__file__).with_name("meetups-to-s3.json")
enough = ConnectorLagEventTrigger(
    config_file=CONFIG,
    kafka_conn_id="kafka_default",  # read by the triggerer
    min_records=10_000,
    min_age=timedelta(minutes=10),  # one of the two is enough
)
waiting = Asset("meetups-waiting", watchers=[AssetWatcher(name="meetups-lag", trigger=enough)])

with DAG(dag_id="event_driven_copy", schedule=[waiting], catchup=False, max_active_runs=1, tags=["kafka", "s3"]):
    ConnectorOperator(
        task_id="copy_meetups",
        config_file=CONFIG,
        kafka_conn_id="kafka_default",
        aws_conn_id="aws_default",
        retries=3,
        retry_delay=timedelta(minutes=1),
        outlets=[Asset("meetups", "s3://meetups/topics/meetups")],  # the name that kafka_to_s3.py gives this URI
    )
# [END event]

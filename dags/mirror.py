"""Mirror topics of another Kafka cluster every ten minutes, byte for byte and exactly once.

A DAG to copy, with its file `west-to-east.json`, which names both clusters and the topics. The connection
`kafka_default` is the target cluster.
"""

# [START howto]
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.sdk import DAG, Asset

from airflow_connect.operators.connector import ConnectorOperator, run_params

with DAG(
    dag_id="mirror",
    schedule=timedelta(minutes=10),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,  # what is copied follows from the offsets in Kafka, not from the date of a run
    max_active_runs=1,
    params=run_params(source=True),  # the trigger form asks how much to copy
    tags=["kafka"],
    doc_md=__doc__,
):
    ConnectorOperator(
        task_id="west_to_east",
        config_file=Path(__file__).parent / "west-to-east.json",
        kafka_conn_id="kafka_default",
        retries=3,
        retry_delay=timedelta(minutes=1),
        outlets=[Asset("west_topics")],  # its events carry counts and offsets
    )
# [END howto]

"""Import log files into a Kafka topic every five minutes, each line exactly once. A DAG to copy.

`access-log.json` next to it is a configuration of Kafka Connect's file source with a pattern that splits each line into
fields. The files are read where Spark runs its tasks: with `local[...]`, on this machine.
"""

# [START howto]
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.sdk import DAG, Asset

from airflow_connect.operators.connector import ConnectorOperator, run_params

with DAG(
    dag_id="log_import",
    schedule=timedelta(minutes=5),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,  # what is copied follows from the offsets in Kafka, not from the date of a run
    max_active_runs=1,
    params=run_params(source=True),  # the trigger form asks how much to copy
    tags=["files", "kafka"],
    doc_md=__doc__,
):
    ConnectorOperator(
        task_id="import_access_log",
        config_file=Path(__file__).with_name("access-log.json"),
        kafka_conn_id="kafka_default",
        retries=3,
        retry_delay=timedelta(minutes=1),
        outlets=[Asset("access_log", "kafka://broker:9092/access-log")],  # its events carry counts and offsets
    )
# [END howto]

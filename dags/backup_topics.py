"""Back up topics of a Kafka cluster to S3 every hour: whole records, byte for byte. A DAG to copy, with its JSON file.

`cluster-backup.json` chooses the topics: all but Kafka's and Kafka Connect's own, and those that `restore_topic.py` and
`prove_backup.py` fill. Beside the records, each run writes the topics' settings and the offsets of consumer groups.
"""

# [START howto]
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.sdk import DAG, Asset

from airflow_connect.operators.connector import ConnectorOperator

with DAG(
    dag_id="backup_topics",
    schedule="@hourly",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,  # what is copied follows from the offsets in Kafka, not from the date of a run
    max_active_runs=1,
    tags=["kafka", "s3", "backup"],
    doc_md=__doc__,
):
    ConnectorOperator(
        task_id="back_up",
        config_file=Path(__file__).with_name("cluster-backup.json"),
        kafka_conn_id="kafka_default",
        aws_conn_id="aws_default",  # None: the credentials of the machine
        retries=3,
        retry_delay=timedelta(minutes=1),
        outlets=[Asset("topic_backups", "s3://backups/topics")],  # its events carry counts and offsets
    )
# [END howto]

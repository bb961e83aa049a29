"""Import a folder of Parquet files every hour: each file becomes records of a topic, once. A DAG to copy.

Files may have any names and may come at any time. A run imports what is new, continues files that an earlier run could
not finish, and ends. It never deletes or moves a file.
"""

# [START howto]
from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG

from airflow_connect.operators.connector import ConnectorOperator

IMPORT = {
    "name": "import-orders",  # keeps which files are imported
    "connector.class": "io.confluent.connect.s3.source.S3SourceConnector",
    "tasks.max": "4",
    "mode": "GENERIC",
    "format.class": "io.confluent.connect.s3.format.parquet.ParquetFormat",
    "s3.bucket.name": "lake",
    "topics.dir": "exports",
    "topic.regex.list": r"orders:exports/orders/.*\.parquet",
    # The column id is the key, so records of one order stay in one partition, in the order of their file.
    "transforms": "key,id",
    "transforms.key.type": "org.apache.kafka.connect.transforms.ValueToKey",
    "transforms.key.fields": "id",
    "transforms.id.type": "org.apache.kafka.connect.transforms.ExtractField$Key",
    "transforms.id.field": "id",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
    "topic.creation.default.partitions": "6",
    "topic.creation.default.replication.factor": "-1",
}

with DAG(
    dag_id="import_folder",
    schedule="@hourly",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    tags=["kafka", "s3"],
    doc_md=__doc__,
):
    ConnectorOperator(
        task_id="import_files",
        config=IMPORT,
        kafka_conn_id="kafka_default",
        aws_conn_id="aws_default",
        retries=3,
        retry_delay=timedelta(minutes=1),
    )
# [END howto]

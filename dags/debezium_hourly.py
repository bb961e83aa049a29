"""Change data capture as an hourly batch: Debezium reads what a PostgreSQL database has changed since the last run.

A DAG to copy. The connection `kafka_default` has the brokers and, in its extra, `plugin.path`: the folder that has
Debezium's own folder in it. The connection `shop_db` is the database.
"""

# [START howto]
from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG, Asset

from airflow_connect.operators.connector import ConnectorOperator, run_params

CHANGES = {
    "name": "shop-changes",  # keeps the position in the database's log
    "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
    "tasks.max": "1",
    "database.hostname": "${airflow:shop_db:host}",
    "database.port": "${airflow:shop_db:port}",
    "database.user": "${airflow:shop_db:login}",
    "database.password": "${airflow:shop_db:password}",
    "database.dbname": "${airflow:shop_db:schema}",
    "plugin.name": "pgoutput",
    "slot.name": "shop_changes",
    "publication.name": "shop_changes",
    "topic.prefix": "shop",
    # Rows instead of Debezium's envelopes; a deleted row is a record with __deleted.
    "transforms": "row",
    "transforms.row.type": "io.debezium.transforms.ExtractNewRecordState",
    "transforms.row.delete.tombstone.handling.mode": "rewrite",
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "false",
    "value.converter.schemas.enable": "false",
    "topic.creation.default.partitions": "6",
    "topic.creation.default.replication.factor": "-1",
}

with DAG(
    dag_id="debezium_hourly",
    schedule="@hourly",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,  # what is copied follows from the offset in Kafka, not from the date of a run
    max_active_runs=1,
    params=run_params(source=True),  # the trigger form asks how much to copy
    tags=["kafka", "database"],
    doc_md=__doc__,
):
    ConnectorOperator(
        task_id="read_changes",
        config=CHANGES,
        kafka_conn_id="kafka_default",
        retries=3,
        retry_delay=timedelta(minutes=1),
        outlets=[Asset("shop_changes")],  # its events carry counts and offsets
    )
# [END howto]

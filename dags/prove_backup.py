"""Prove every night that the backup of a topic can be restored. A DAG to copy, together with `backup_topics.py`.

It restores the topic to a scratch topic, compares every record with the original (key, value, headers, timestamp and
partition, in order) and deletes the scratch topic. The DAG run fails if anything differs.
"""

# [START howto]
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path

from airflow.sdk import DAG, BaseHook, Param, task
from airflow.sdk.exceptions import AirflowException
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from airflow_connect.hooks.connect import ConnectHook
from airflow_connect.operators.connector import ConnectorOperator
from airflow_connect.operators.offsets import ResetOffsetsOperator

BACKUP = Path(__file__).with_name("cluster-backup.json")
CONNECTIONS = {"kafka_conn_id": "kafka_default", "aws_conn_id": "aws_default"}
SCRATCH = "proof-{{ params.topic }}-{{ dag_run.run_after.strftime('%Y%m%dT%H%M%S') }}"
RESTORE = {
    "name": SCRATCH,
    "connector.class": "io.confluent.connect.s3.source.S3SourceConnector",
    "tasks.max": "4",
    "format.class": "io.confluent.connect.s3.format.parquet.ParquetFormat",  # that of cluster-backup.json
    "s3.bucket.name": "backups",  # that of cluster-backup.json
    "topics": "{{ params.topic }}",
    "topic.rename": "{{ params.topic }}:" + SCRATCH,
}


def kafka_settings() -> dict[str, str]:
    """How to reach the brokers, in librdkafka's names."""
    return dict(BaseHook.get_connection("kafka_default").extra_dejson)


def fingerprints(topic: str, partition: int, end: int | None = None) -> tuple[int, bytes]:
    """The first offset of a partition, and 16 bytes for each of its records before the offset `end`."""
    settings = {"group.id": "prove-backup", "enable.auto.commit": False, "isolation.level": "read_committed"}
    consumer = Consumer({**kafka_settings(), **settings, "enable.partition.eof": True, "auto.offset.reset": "error"})
    first, _ = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=60)
    consumer.assign([TopicPartition(topic, partition, first)])
    found = bytearray()
    while (record := consumer.poll(60)) is not None:
        error = record.error()
        if (error and error.code() == KafkaError._PARTITION_EOF) or (end is not None and record.offset() >= end):
            consumer.close()
            return first, bytes(found)
        if error:
            raise KafkaException(error)
        whole = (record.key(), record.value(), record.headers(), record.timestamp()[1])
        found += blake2b(repr(whole).encode(), digest_size=16).digest()
    raise AirflowException(f"No record of {topic}-{partition} arrived within a minute.")


with DAG(
    dag_id="prove_backup",
    schedule="@daily",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    params={"topic": Param("orders", type="string", minLength=1)},
    tags=["kafka", "s3", "backup"],
    doc_md=__doc__,
):

    @task
    def backed_up(topic: str) -> dict[str, int]:
        """How far the backup is, before the restore begins: the next offset of each partition."""
        offsets = ConnectHook(config_file=BACKUP, **CONNECTIONS).offsets()
        mine = [one for one in offsets if one["partition"]["kafka_topic"] == topic]
        return {str(one["partition"]["kafka_partition"]): one["offset"]["kafka_offset"] for one in mine}

    @task
    def compare(topic: str, scratch: str, config: dict[str, str], ends: dict[str, int]) -> dict[str, int]:
        """Fail if the scratch topic has other records than the original, as far as the backup goes."""
        for one in ConnectHook(config=config, **CONNECTIONS).offsets():  # a backup may have run meanwhile
            number = str(one["partition"]["partition"])
            ends[number] = max(ends.get(number, 0), one["offset"]["position"])
        equal = 0
        for number, end in ends.items():
            first, original = fingerprints(topic, int(number), end)
            _, restored = fingerprints(scratch, int(number))
            # The backup still has what retention has deleted from the beginning of the original.
            if not (restored.endswith(original) and (first > 0 or len(restored) == len(original))):
                raise AirflowException(f"The restored records of {topic}-{number} before offset {end} differ.")
            equal += len(original) // 16
            print(f"{topic}-{number}: {len(original) // 16} of {len(restored) // 16} restored records compared.")
        if not equal:
            raise AirflowException(f"Nothing of {topic} could be compared, so nothing is proved.")
        return {"equal": equal}

    @task
    def delete(scratch: str) -> None:
        """Delete the scratch topic."""
        admin = AdminClient(kafka_settings())
        for deleted in admin.delete_topics([scratch]).values():
            deleted.result()

    restore = ConnectorOperator(
        task_id="restore", config=RESTORE, retries=3, retry_delay=timedelta(minutes=1), **CONNECTIONS
    )
    ends = backed_up("{{ params.topic }}")
    compared = compare("{{ params.topic }}", SCRATCH, RESTORE, ends)
    forget = ResetOffsetsOperator(task_id="forget", config=RESTORE, **CONNECTIONS)
    ends >> restore >> compared
    # Both run also after a failure, and do not hide it.
    compared >> [delete(SCRATCH).as_teardown(), forget.as_teardown()]
# [END howto]

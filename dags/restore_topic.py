"""Restore a topic from the backup that `backup_topics.py` writes, as it was at some time. A DAG to copy.

It is started by hand. The trigger form asks for the topic, its new name and the time, and at first only plans: switch
"Only plan" off to restore. A second run with the same names continues, also with a later time.
"""

# [START howto]
from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Param, task

from airflow_connect.hooks.connect import ConnectHook
from airflow_connect.operators.connector import ConnectorOperator
from airflow_connect.operators.restore import RestoreGroupsOperator, RestoreSettingsOperator

CONNECTIONS = {"kafka_conn_id": "kafka_default", "aws_conn_id": "aws_default"}
RESTORE = {
    "name": "{{ params.restored }}-restore",  # keeps how far this topic is restored
    "connector.class": "io.confluent.connect.s3.source.S3SourceConnector",
    "tasks.max": "4",
    "format.class": "io.confluent.connect.s3.format.parquet.ParquetFormat",  # that of cluster-backup.json
    "s3.bucket.name": "backups",  # that of cluster-backup.json
    "topics": "{{ params.topic }}",
    "topic.rename": "{{ params.topic }}:{{ params.restored }}",
    "restore.until.timestamp": "{{ params.until or '' }}",
}

with DAG(
    dag_id="restore_topic",
    schedule=None,
    max_active_runs=1,
    params={
        "topic": Param("orders", type="string", minLength=1, title="Topic"),
        "restored": Param("restored-orders", type="string", minLength=1, title="Restore it to the topic"),
        "until": Param(
            None,
            type=["null", "string"],
            format="date-time",
            title="As it was at",
            description="Each partition ends before its first record of this time or later. Empty: the whole backup.",
        ),
        "groups": Param(
            "",
            type="string",
            title="Consumer groups",
            description="A regular expression. These groups get their offsets in the restored topic. Empty: none.",
        ),
        "document": Param(
            "",
            type="string",
            title="Their offsets as in run",
            description="Run id of the backup, of a document below topics/+runs. Empty: the newest.",
        ),
        "settings_back": Param(
            False,
            type="boolean",
            title="Set retention back",
            description="The topic gets the retention and compaction of its original, once everything is restored.",
        ),
        "only_plan": Param(True, type="boolean", title="Only plan"),
    },
    tags=["kafka", "s3", "backup"],
    doc_md=__doc__,
):

    @task.short_circuit
    def plan(config: dict[str, str], params: dict[str, Any] | None = None) -> bool:
        """Show what is left to restore; go on unless only that was asked for."""
        for note in ConnectHook(config=config, **CONNECTIONS).plan()["notes"]:
            print(note)
        return not (params or {})["only_plan"]

    @task.short_circuit
    def wants_groups(params: dict[str, Any] | None = None) -> bool:
        """Skip what follows if the form names no groups."""
        return bool((params or {})["groups"])

    @task.short_circuit
    def wants_settings(params: dict[str, Any] | None = None) -> bool:
        """Skip what follows unless the form asks for it."""
        return bool((params or {})["settings_back"])

    restore = ConnectorOperator(
        task_id="restore", config=RESTORE, retries=3, retry_delay=timedelta(minutes=1), **CONNECTIONS
    )
    set_groups = RestoreGroupsOperator(
        task_id="set_groups",
        config=RESTORE,
        groups="{{ params.groups }}",
        document="{{ params.document }}",
        **CONNECTIONS,
    )
    set_settings = RestoreSettingsOperator(task_id="set_settings", config=RESTORE, **CONNECTIONS)
    plan(config=RESTORE) >> restore
    restore >> wants_groups() >> set_groups
    restore >> wants_settings() >> set_settings
# [END howto]

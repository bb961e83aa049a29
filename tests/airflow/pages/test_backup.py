"""The DAGs for backups and their pages, on a real broker and a real S3 server: backed up, proved, restored."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.devstack.s3 import S3Server
from airflow_connect.java.patterns.compiled import compile_java_pattern
from airflow_connect.operators.connector_task import ConnectorTask
from tests.airflow.conftest import DAGS, LoadDag
from tests.support.copies.backups import TIME_MS
from tests.support.copies.restore import stored

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark_classes")]

PROJECT = Path(__file__).parents[3]
BACK_UP, RESTORE = ((PROJECT / f"docs/how-to/{name}.md").read_text() for name in ("back-up-topics", "restore-a-topic"))
ONE_BROKER = {f"{topic}.storage.replication.factor": "1" for topic in ("runs", "offset", "config")}
RETENTION_MS = "315360000000"
AT_TEN = "2023-11-14T22:13:30Z"
"""Ten seconds after the first record."""


@dataclass
class Cluster:
    """A topic, and the DAGs for it."""

    kafka: KafkaBroker
    topic: str
    s3: S3Server
    bucket: str
    load_dag: LoadDag

    def run(self, file: str, **conf: Any) -> Any:
        """One DAG run, of the DAG as it is in dags/, but for the bucket."""
        dag = self.load_dag((PROJECT / "dags" / file).read_text().replace('"backups"', f'"{self.bucket}"'))
        for task in dag.tasks:
            task.retries = 0  # a failure shall show at once
            if isinstance(task, ConnectorTask):
                task.worker = {**ONE_BROKER, "spark.master": "local[2]"}
        return dag.test(logical_date=None, run_conf=conf or None)

    def topics(self) -> set[str]:
        admin = AdminClient({"bootstrap.servers": self.kafka.bootstrap})
        return {name for name in admin.list_topics(timeout=30).topics if self.topic in name}

    def retention_ms(self, topic: str) -> str:
        admin = AdminClient({"bootstrap.servers": self.kafka.bootstrap})
        (found,) = admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)]).values()
        return str(found.result(30)["retention.ms"].value)

    def delete_before(self, offset: int) -> None:
        """In partition 0."""
        admin = AdminClient({"bootstrap.servers": self.kafka.bootstrap})
        (done,) = admin.delete_records([TopicPartition(self.topic, 0, offset)]).values()
        done.result(30)

    def group(self, topic: str, offset: int | None = None) -> int:
        """The offset of a consumer group in partition 0; with `offset`, it is committed before."""
        client = Consumer({"bootstrap.servers": self.kafka.bootstrap, "group.id": f"{self.topic}-billing"})
        if offset is not None:
            client.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
        (found,) = client.committed([TopicPartition(topic, 0)], timeout=30)
        client.close()
        return int(found.offset)


@pytest.fixture
def cluster(
    load_dag: LoadDag,
    kafka: KafkaBroker,
    s3: S3Server,
    bucket: str,
    make_topic: Callable[..., str],
    produce: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Cluster]:
    """A topic with records of 20 seconds, a gap in its offsets, tombstones and headers."""
    topic = make_topic(2, {"retention.ms": RETENTION_MS})
    headers = [("n", b"1"), ("n", None), ("n", b"")]
    produce.transaction(topic, [(0, b"k", b"aborted", TIME_MS, [])], "abort")
    produce(topic, [(n % 2, b"%d" % n, b"v%d" % n if n % 5 else None, TIME_MS + n * 1000, headers) for n in range(20)])
    config = json.loads((PROJECT / "dags/cluster-backup.json").read_text())
    config |= {"name": f"{topic}-backup", "topics.regex": topic, "s3.bucket.name": bucket}
    path = DAGS / "cluster-backup.json"
    path.write_text(json.dumps(config))
    brokers = {"conn_type": "kafka", "extra": {"bootstrap.servers": kafka.bootstrap}}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(brokers))
    place = {"endpoint_url": s3.endpoint_url, "region_name": s3.region}
    aws = {"conn_type": "aws", "login": s3.access_key, "password": s3.secret_key, "extra": place}
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", json.dumps(aws))
    yield Cluster(kafka, topic, s3, bucket, load_dag)
    path.unlink()


def blocks(page: str, info: str) -> list[str]:
    """Code of a page, without the indentation of a list."""
    found = re.findall(rf"^( *)```{info}\n(.*?)^ *```$", page, re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(text) for _, text in found]


def test_pages_have_the_dags_and_the_configuration_of_the_dags_folder() -> None:
    quoted = {
        name: (PROJECT / "dags" / name).read_text().partition("# [START howto]\n")[2].partition("# [END howto]")[0]
        for name in ("backup_topics.py", "prove_backup.py", "restore_topic.py")
    }
    assert blocks(BACK_UP, "python") == [quoted["backup_topics.py"], quoted["prove_backup.py"]]
    assert blocks(RESTORE, "python") == [quoted["restore_topic.py"]]
    assert blocks(BACK_UP, "json backup") == [(PROJECT / "dags/cluster-backup.json").read_text()]


def test_backup_leaves_out_topics_of_kafka_and_of_restores() -> None:
    pattern = compile_java_pattern(json.loads((PROJECT / "dags/cluster-backup.json").read_text())["topics.regex"])
    topics = [
        "orders",
        "unproofed",
        "__consumer_offsets",
        "_schemas",
        "connect-offsets",
        "restored-orders",
        "proof-a-1",
    ]
    assert [topic for topic in topics if pattern.fullmatch(topic)] == ["orders", "unproofed"]


def states(run: Any) -> dict[str, str]:
    return {instance.task_id: str(instance.state) for instance in run.get_task_instances()}


# Each has several DAG runs, with a driver process for each copy.
@pytest.mark.budget(30)
def test_backup_is_proved_every_night_and_a_record_that_differs_is_found(
    cluster: Cluster,
    xcom: Callable[..., Any],
    capfd: pytest.CaptureFixture[str],
    without_spark: Callable[[], None],
) -> None:
    without_spark()  # it is on Spark in the test below
    assert cluster.run("backup_topics.py").state == "success", "".join(capfd.readouterr())

    cluster.delete_before(4)  # two records of partition 0, as retention would
    proof = cluster.run("prove_backup.py", topic=cluster.topic)

    assert proof.state == "success", "".join(capfd.readouterr())
    assert xcom(proof, "compare") == {"equal": 18}
    assert f"{cluster.topic}-0: 8 of 10 restored records compared." in "".join(capfd.readouterr())
    proved = states(proof)
    assert set(proved.values()) == {"success"}
    assert cluster.topics() == {cluster.topic}

    # The backup loses its last file: what a record less looks like to the proof.
    client = cluster.s3.client()
    keys = [one["Key"] for one in client.list_objects_v2(Bucket=cluster.bucket)["Contents"]]
    client.delete_object(Bucket=cluster.bucket, Key=max(key for key in keys if "/partition=1/" in key))
    lost = cluster.run("prove_backup.py", topic=cluster.topic)
    assert lost.state == "failed"
    assert states(lost) == {**proved, "compare": "failed"}
    assert f"The restored records of {cluster.topic}-1 before offset 10 differ" in "".join(capfd.readouterr())
    assert cluster.topics() == {cluster.topic}


@pytest.mark.budget(40)  # a backup and a restore on Spark
def test_form_plans_restores_up_to_a_time_sets_groups_and_continues(
    cluster: Cluster,
    xcom: Callable[..., Any],
    capfd: pytest.CaptureFixture[str],
    without_spark: Callable[[], None],
) -> None:
    restored = f"restored-{cluster.topic}"
    form = {"topic": cluster.topic, "restored": restored, "until": AT_TEN}
    cluster.group(cluster.topic, 5)
    backup = cluster.run("backup_topics.py")
    assert backup.state == "success", "".join(capfd.readouterr())
    document = xcom(backup, "back_up")["run_id"]

    planned = states(cluster.run("restore_topic.py", **form))
    later = ("restore", "wants_groups", "set_groups", "wants_settings", "set_settings")
    assert planned == {"plan": "success", **dict.fromkeys(later, "skipped")}
    assert "To restore: 2 files of 2 partitions" in "".join(capfd.readouterr())
    assert cluster.topics() == {cluster.topic}

    first = states(cluster.run("restore_topic.py", **form, only_plan=False))
    assert first == {**planned, **dict.fromkeys(("restore", "wants_groups", "wants_settings"), "success")}
    bootstrap = cluster.kafka.bootstrap
    originals = stored(bootstrap, cluster.topic)
    assert stored(bootstrap, restored) == [one for one in originals if one.timestamp < TIME_MS + 10_000]
    told = f"`airflow-connect restore settings` sets retention.ms={RETENTION_MS} when all is restored."
    assert told in "".join(capfd.readouterr())
    assert cluster.retention_ms(restored) == "-1"

    without_spark()
    rest = {**form, "until": None, "only_plan": False, "groups": f"{cluster.topic}-.*", "document": document}
    last = cluster.run("restore_topic.py", **rest)
    done = {**dict.fromkeys(states(last), "success"), "set_settings": "skipped"}
    assert states(last) == done, "".join(capfd.readouterr())[-9_000:]
    assert stored(bootstrap, restored) == originals
    groups = xcom(last, "set_groups")
    assert groups["document"].endswith(f"{document}.json") and groups["writtenMs"] > TIME_MS
    (offset,) = groups["offsets"]
    assert offset["isDone"] and cluster.group(restored) == offset["newOffset"]

    cluster.group(restored, 1)
    refused = cluster.run("restore_topic.py", **rest)
    assert states(refused)["set_groups"] == "failed"
    assert "overwrite=True of RestoreGroupsOperator" in "".join(capfd.readouterr())
    assert cluster.group(restored) == 1

    settings = cluster.run("restore_topic.py", **{**rest, "groups": "", "settings_back": True})
    assert states(settings)["set_settings"] == "success", "".join(capfd.readouterr())[-9_000:]
    assert cluster.retention_ms(restored) == RETENTION_MS

"""The real servers: restart, crash, take-over of data; nothing is left when their parent is killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from botocore.exceptions import ClientError

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.devstack.launching.errors import DevStackError
from airflow_connect.devstack.s3 import S3Server
from tests.support.kafka_data import create_topic, partition_count, produce, produce_transaction
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration

REPOSITORY = Path(__file__).parents[3]
PARENT = """
import sys
from pathlib import Path
from airflow_connect.devstack.kafka import KafkaBroker
broker = KafkaBroker.start()
print(broker.pid, broker.data_dir, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def broker():
    with KafkaBroker.start() as running:
        yield running


def test_broker_restart_keeps_ports_and_data(broker):
    create_topic(broker.bootstrap, "restart", 2)
    bootstrap, pid = broker.bootstrap, broker.pid
    broker.restart()
    assert broker.bootstrap == bootstrap
    assert broker.pid != pid
    wait_until(lambda: partition_count(bootstrap, "restart") == 2, "the topic is back")
    produce(bootstrap, "restart", [(1, None, b"x")])


def test_broker_after_kill_and_restart_has_its_data_and_transactions(broker):
    create_topic(broker.bootstrap, "kill", 1)
    produce_transaction(broker.bootstrap, "kill", [(0, None, b"x")])
    broker.kill()
    assert not broker.is_running
    with pytest.raises(DevStackError, match="is not running"):
        assert broker.pid
    broker.restart()
    wait_until(lambda: partition_count(broker.bootstrap, "kill") == 1, "the topic is back")
    produce_transaction(broker.bootstrap, "kill", [(0, None, b"y")])


def test_broker_takes_over_a_folder_and_leaves_it(tmp_path):
    with KafkaBroker.start(data_dir=tmp_path / "data") as first:
        create_topic(first.bootstrap, "kept", 3)
    with KafkaBroker.start(data_dir=tmp_path / "data") as second:
        wait_until(lambda: partition_count(second.bootstrap, "kept") == 3, "the topic is back")
    assert (tmp_path / "data" / "server.log").is_file()


def test_broker_with_wrong_configuration_shows_kafkas_own_words(tmp_path):
    with pytest.raises(DevStackError, match=r"num\.io\.threads") as failed:
        KafkaBroker.start(data_dir=tmp_path, properties={"num.io.threads": "many"})
    assert failed.value.code == "devstack.start"


def test_broker_ends_and_leaves_nothing_when_its_parent_is_killed():
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    pid, data_dir = parent.stdout.readline().split()
    parent.kill()
    parent.communicate()
    wait_until(lambda: not psutil.pid_exists(int(pid)), "the broker ended")
    wait_until(lambda: not Path(data_dir).exists(), "its data was removed")


def test_s3_restart_keeps_port_and_objects():
    with S3Server.start() as server:
        client = server.client()
        client.create_bucket(Bucket="kept")
        client.put_object(Bucket="kept", Key="a/b", Body=b"x")
        server.restart()
        assert client.get_object(Bucket="kept", Key="a/b")["Body"].read() == b"x"
        server.kill()
        server.restart()
        assert client.get_object(Bucket="kept", Key="a/b")["Body"].read() == b"x"
        client.close()
        folder = server.data_dir
    assert not folder.exists()


def test_s3_refuses_an_object_in_place_of_a_folder(s3, bucket):
    client = s3.client(retries={"total_max_attempts": 1})
    client.put_object(Bucket=bucket, Key="x/y", Body=b"1")
    with pytest.raises(ClientError):
        client.put_object(Bucket=bucket, Key="x", Body=b"2")


def test_s3_conditional_write_loses_against_an_existing_object(s3, bucket):
    client = s3.client()
    client.put_object(Bucket=bucket, Key="k", Body=b"1")
    with pytest.raises(ClientError) as refused:
        client.put_object(Bucket=bucket, Key="k", Body=b"2", IfNoneMatch="*")
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 412
    assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == b"1"

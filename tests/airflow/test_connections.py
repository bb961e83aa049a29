"""Connections as worker configuration and credentials."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from airflow.sdk import Connection

from airflow_connect.airflow.connections import aws_credentials, worker_with_kafka, worker_with_spark
from airflow_connect.api.errors import ConfigError

Get = Callable[[str], Connection]


def one(**fields: Any) -> Get:
    extra = fields.pop("extra", None)
    text = extra if isinstance(extra, str) or extra is None else json.dumps(extra)
    return lambda conn_id: Connection(conn_id=conn_id, **{"conn_type": "generic", **fields}, extra=text)


def never(conn_id: str) -> Connection:
    raise AssertionError(f"connection {conn_id} must not be read")


KAFKA = one(
    conn_type="kafka",
    extra={
        "bootstrap.servers": "real:9092",
        "security.protocol": "SASL_SSL",
        "group.id": "of-a-sensor",
        "auto.offset.reset": "latest",
        "enable.auto.commit": True,
        "error_cb": "my.module.callback",
    },
)


def test_kafka_connection_named_by_the_dag_wins_over_the_worker() -> None:
    worker = {"bootstrap.servers": "old:9092", "group.id": "workers"}
    assert worker_with_kafka(worker, "ours", KAFKA) == {
        "bootstrap.servers": "real:9092",
        "security.protocol": "SASL_SSL",
        "group.id": "workers",
    }


def test_default_kafka_connection_is_not_read_when_the_worker_names_brokers() -> None:
    worker = {"bootstrap.servers": "mine:9092"}
    assert worker_with_kafka(worker, "kafka_default", never) == worker


def test_default_kafka_connection_fills_a_worker_without_brokers() -> None:
    assert worker_with_kafka({}, "kafka_default", KAFKA)["bootstrap.servers"] == "real:9092"


def test_no_connections_leave_everything_as_it_is() -> None:
    assert worker_with_kafka({"a": "b"}, None, never) == {"a": "b"}
    assert worker_with_spark({"a": "b"}, None, never) == {"a": "b"}
    assert aws_credentials(None, never) == {}


def test_extra_that_is_no_object_is_refused() -> None:
    with pytest.raises(ConfigError, match="extra of connection 'k' is not a JSON object"):
        worker_with_kafka({}, "k", one(extra="[1]"))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"login": "AKIA", "password": "s"}, {"access_key_id": "AKIA", "secret_access_key": "s"}),
        (
            {"extra": {"role_arn": "arn:aws:iam::1:role/r", "assume_role_kwargs": {"ExternalId": "x"}}},
            {"role_arn": "arn:aws:iam::1:role/r", "external_id": "x"},
        ),
        (
            {"login": "A", "password": "B", "extra": {"aws_session_token": "T", "region_name": "eu-west-1"}},
            {"access_key_id": "A", "secret_access_key": "B", "session_token": "T", "region": "eu-west-1"},
        ),
        ({"extra": {"endpoint_url": "http://s3:9000"}}, {"endpoint_url": "http://s3:9000"}),
        (
            {
                "extra": {
                    "endpoint_url": "http://all",
                    "service_config": {"s3": {"endpoint_url": "http://s3"}},
                }
            },
            {"endpoint_url": "http://s3"},
        ),
        ({}, {}),
    ],
    ids=["keys", "role", "session", "endpoint", "endpoint-of-s3", "empty"],
)
def test_aws_connection_becomes_credentials(fields: dict[str, Any], expected: dict[str, str]) -> None:
    assert aws_credentials("a", one(conn_type="aws", **fields)) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"conn_type": "spark", "host": "local[2]"}, {"spark.master": "local[2]"}),
        (
            {"conn_type": "spark", "host": "yarn", "extra": {"queue": "q"}},
            {"spark.master": "yarn", "spark.yarn.queue": "q"},
        ),
        ({"conn_type": "spark", "host": "spark://m", "port": 7077}, {"spark.master": "spark://m:7077"}),
        ({"conn_type": "spark", "host": "m", "port": 7077}, {"spark.master": "spark://m:7077"}),
        ({"conn_type": "k8s", "host": "api", "port": 443}, {"spark.master": "k8s://api:443"}),
        ({"conn_type": "spark_connect", "host": "c"}, {"spark.remote": "sc://c:15002/"}),
        (
            {"conn_type": "spark_connect", "host": "sc://c", "port": 1, "login": "me", "password": "a/b"},
            {"spark.remote": "sc://c:1/;user_id=me;token=a%2Fb"},
        ),
        (
            {
                "conn_type": "spark",
                "host": "local",
                "extra": {"spark.executor.memory": "2g", "deploy-mode": "client"},
            },
            {"spark.master": "local", "spark.executor.memory": "2g"},
        ),
    ],
    ids=["local", "yarn", "standalone", "uri", "k8s", "connect", "connect-token", "extra"],
)
def test_spark_connection_becomes_a_master_or_a_remote(fields: dict[str, Any], expected: dict[str, str]) -> None:
    assert worker_with_spark({"spark.master": "old"}, "s", one(**fields)) == expected


def test_deploy_mode_cluster_is_refused() -> None:
    with pytest.raises(ConfigError, match="deploy mode 'cluster'") as caught:
        worker_with_spark({}, "s", one(conn_type="spark", host="yarn", extra={"deploy-mode": "cluster"}))
    assert "client" in caught.value.suggestion

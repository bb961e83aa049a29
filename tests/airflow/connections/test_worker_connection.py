"""Connections of type `connect_worker`: what wins, what stays secret, what the test button says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import Connection

from airflow_connect.airflow.connections.worker import worker_with_connection
from airflow_connect.airflow.connector_arguments import ConnectorArguments, secrets_of
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.devstack.launching.process import free_ports
from airflow_connect.errors import ConfigError
from tests.devstack.schema_registry import SchemaRegistry

STRINGS = "org.apache.kafka.connect.storage.StringConverter"
AVRO = "io.confluent.connect.avro.AvroConverter"


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`connect("shared", host=..., extra={...})`: a connection of Airflow."""

    def make(conn_id: str, conn_type: str = "connect_worker", **fields: Any) -> None:
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps({"conn_type": conn_type, **fields}))

    return make


def worker_of(**arguments: Any) -> dict[str, Any]:
    return ConnectorArguments("this test", config={"name": "c"}, **arguments).worker_config()


def test_fields_of_the_form_become_worker_keys(connect: Any) -> None:
    extra = {"group.id": "shared", "security.protocol": "SASL_SSL", "key.converter": "", "value.converter": None}
    connect("shared", host="b1:9092,b2:9092", login="me", password="opensesame1", extra=extra)
    assert worker_of(worker_conn_id="shared") == {
        "bootstrap.servers": "b1:9092,b2:9092",
        "sasl.username": "me",
        "sasl.password": "opensesame1",
        "group.id": "shared",
        "security.protocol": "SASL_SSL",
    }


def test_worker_argument_wins_over_the_connection_which_wins_over_the_default_kafka_connection(connect: Any) -> None:
    connect("shared", host="shared", port=9092, extra={"group.id": "shared", "spark.master": "local[1]"})
    connect("kafka_default", "kafka", extra={"bootstrap.servers": "default:9092"})
    assert worker_of(worker={"group.id": "mine"}, worker_conn_id="shared") == {
        "bootstrap.servers": "shared:9092",
        "group.id": "mine",
        "spark.master": "local[1]",
    }
    connect("no_brokers", extra={"group.id": "shared"})
    assert worker_of(worker_conn_id="no_brokers")["bootstrap.servers"] == "default:9092"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"kafka_conn_id": "named"}, {"bootstrap.servers": "named:9092", "client.id": "n"}),
        ({"worker": {"bootstrap.servers": "mine:9092"}}, {"bootstrap.servers": "mine:9092"}),
    ],
    ids=["kafka-connection", "worker-argument"],
)
def test_password_never_reaches_brokers_that_the_connection_does_not_name(
    connect: Any, arguments: dict[str, Any], expected: dict[str, str]
) -> None:
    connect(
        "shared",
        host="shared:9092",
        login="me",
        password="opensesame1",
        extra={"group.id": "shared", "ssl.key.pem": "secret"},
    )
    connect("named", "kafka", extra={"bootstrap.servers": "named:9092", "client.id": "n", "group.id": "a-sensor"})
    assert worker_of(worker_conn_id="shared", **arguments) == {"group.id": "shared", **expected}


def test_nested_keys_of_a_converter_do_not_outlive_it(connect: Any) -> None:
    url = "value.converter.schema.registry.url"
    connect("shared", host="b:9092", extra={"key.converter": STRINGS, "value.converter": AVRO, url: "http://r"})
    worker = worker_of(worker={"value.converter": STRINGS}, worker_conn_id="shared")
    assert worker == {"bootstrap.servers": "b:9092", "key.converter": STRINGS, "value.converter": STRINGS}


def test_secrets_of_the_connection_are_secrets_of_the_run(connect: Any) -> None:
    extra = {"value.converter.basic.auth.user.info": "user:rabbit77hole"}
    connect("shared", host="b:9092", password="opensesame1", extra=extra)
    spec = ConnectorArguments("this test", config={"name": "c"}, worker_conn_id="shared").run_spec()
    assert {"opensesame1", "user:rabbit77hole"} <= set(secrets_of(spec))


def test_connection_of_another_type_is_refused() -> None:
    def get(conn_id: str) -> Connection:
        return Connection(conn_id=conn_id, conn_type="kafka", extra='{"bootstrap.servers": "b:9092"}')

    with pytest.raises(ConfigError, match="Connection 'k' is of type kafka, not connect_worker") as caught:
        worker_with_connection({}, "k", get)
    assert "kafka_conn_id" in caught.value.suggestion


# --- the button -------------------------------------------------------------------------------------------------------


def try_it(conn_id: str) -> tuple[bool, str]:
    """What the API server does for the button."""
    from airflow.models.connection import Connection as Stored
    from airflow.sdk import BaseHook

    known = BaseHook.get_connection(conn_id)
    return Stored(conn_id=conn_id, conn_type=known.conn_type).test_connection()


@pytest.mark.integration
def test_button_tries_brokers_transactional_ids_and_registry(
    connect: Any, kafka: KafkaBroker, registry_server: SchemaRegistry, unique_name: str
) -> None:
    extra = {
        "group.id": unique_name,
        "key.converter": STRINGS,
        "value.converter": AVRO,
        "value.converter.schema.registry.url": registry_server.url,
    }
    connect("shared", host=kafka.bootstrap, extra=extra)
    told = [
        f"Kafka answers at {kafka.bootstrap}.",
        f"Transactional ids that start with group.id={unique_name} are permitted.",
        f"The Schema Registry answers at {registry_server.url}.",
    ]
    assert try_it("shared") == (True, " ".join(told))


@pytest.mark.integration
def test_button_says_what_does_not_answer_and_hides_the_login(connect: Any, kafka: KafkaBroker) -> None:
    (port,) = free_ports(1)
    url = f"http://someone:rabbit77hole@127.0.0.1:{port}"
    extra = {"value.converter": AVRO, "value.converter.schema.registry.url": url}
    connect("shared", host=kafka.bootstrap, extra=extra)
    is_ok, told = try_it("shared")
    assert not is_ok
    assert f"Kafka answers at {kafka.bootstrap}." in told
    assert f"127.0.0.1:{port}" in told and "gave no answer" in told
    assert "rabbit77hole" not in told


def test_button_names_a_wrong_key_without_asking_a_server(connect: Any) -> None:
    connect("shared", host="b:9092", extra={"runs.storage.partitions": "many"})
    is_ok, told = try_it("shared")
    assert not is_ok
    assert "runs.storage.partitions" in told


@pytest.mark.integration
def test_form_and_button_of_the_api_server(
    kafka: KafkaBroker, unique_name: str, airflow_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the UI asks for: the fields of the form, then a test of what was typed in and not yet stored."""
    from airflow.api_fastapi.app import create_app
    from fastapi.testclient import TestClient

    monkeypatch.setenv("AIRFLOW__API_AUTH__JWT_SECRET", "a secret of this test alone, and long enough")
    monkeypatch.setenv("AIRFLOW__CORE__TEST_CONNECTION", "Enabled")
    monkeypatch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS", "True")
    with TestClient(create_app()) as client:
        client.headers["Authorization"] = f"Bearer {client.get('/auth/token').json()['access_token']}"
        forms = {form["connection_type"]: form for form in client.get("/ui/connections/hook_meta").json()}
        assert forms["kafka_connect"]["standard_fields"]["host"]["title"] == "Workers"
        fields = forms["connect_worker"]["extra_fields"]
        assert {"group.id", "value.converter.schema.registry.url"} <= set(fields)
        assert fields["value.converter.basic.auth.user.info"]["schema"]["format"] == "password"

        typed = {"connection_id": "typed", "conn_type": "connect_worker", "host": kafka.bootstrap}
        answer = client.post("/api/v2/connections/test", json={**typed, "extra": json.dumps({"group.id": unique_name})})
        assert answer.json()["status"], answer.text
        assert f"start with group.id={unique_name} are permitted" in answer.json()["message"]

"""Connections as worker configuration and credentials."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, Signature
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from airflow.sdk import Connection
from botocore.credentials import ReadOnlyCredentials
from botocore.exceptions import ClientError, EndpointConnectionError, ProfileNotFound

from airflow_connect.airflow.connections.official import aws_credentials, worker_with_kafka, worker_with_spark
from airflow_connect.errors import AccessError, ConfigError, ConnectError, UnavailableError

Get = Callable[[str], Connection]
AMAZON = json.loads((Path(__file__).parents[2] / "data/amazon_hook.json").read_text("utf-8"))


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


def test_login_callback_of_a_kafka_connection_is_refused_with_another_way_to_log_in() -> None:
    extra = {"bootstrap.servers": "b:9092", "sasl.mechanism": "OAUTHBEARER", "oauth_cb": "my.module.token"}
    with pytest.raises(ConfigError, match=r"'ours' gets its token from the function 'my.module.token'") as caught:
        worker_with_kafka({}, "ours", one(conn_type="kafka", extra=extra))
    assert caught.value.config_path == "oauth_cb"
    assert "sasl.oauthbearer.method=oidc" in caught.value.suggestion


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


NEED_PROVIDER: list[tuple[str, Any]] = [
    ("profile_name", "prod"),
    ("session_kwargs", {"profile_name": "prod"}),
    ("assume_role_method", "assume_role_with_web_identity"),
    ("assume_role_with_web_identity_token_file", "/var/token"),
    ("assume_role_kwargs", {"DurationSeconds": 900}),
    ("service_config", {"sts": {"endpoint_url": "http://sts"}}),
]


@pytest.mark.parametrize(("name", "value"), NEED_PROVIDER)
def test_aws_extra_that_needs_the_provider_is_refused_without_it(name: str, value: Any) -> None:
    """The project's environment has no Amazon provider."""
    with pytest.raises(ConfigError, match=f"Connection 'a' has the extra '{name}', which would be ignored") as caught:
        aws_credentials("a", one(conn_type="aws", login="K", password="S", extra={name: value}))
    assert caught.value.config_path == name
    assert "Install apache-airflow-providers-amazon" in caught.value.suggestion


@pytest.mark.parametrize(("name", "value"), [("verify", False), ("verify", "/ca.pem"), ("config_kwargs", {"a": 1})])
def test_aws_extra_of_boto3s_clients_is_refused_with_what_to_use_instead(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"has the extra '{name}', which would be ignored") as caught:
        aws_credentials("a", one(conn_type="aws", extra={name: value}))
    assert caught.value.suggestion.startswith("Remove it here and ")


def real(call: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """Arguments by name, as the provider or boto3 takes them (tests/data/record_amazon_hook.py).

    Raises:
        TypeError: it would not take them.
    """
    parameters = [
        Parameter(p["name"], getattr(Parameter, p["kind"]), default=None if p["optional"] else Parameter.empty)
        for p in AMAZON["calls"][call]
    ]
    return Signature(parameters).bind(*args, **kwargs).arguments


class StandInHook:
    """`AwsBaseHook` as far as it is used here, with keys that it was told to give; takes only what the real one takes.

    The provider itself is not installed here: it brings 21 packages and has a new release every other week.
    """

    keys: Any = None
    error: Exception | None = None
    region_name = "eu-west-1"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        assert real("AwsBaseHook", *args, **kwargs) == {"aws_conn_id": "a", "client_type": "s3"}
        self.conn_config = StandInWrapper()

    def get_session(self, *args: Any, **kwargs: Any) -> StandInSession:
        assert real("AwsBaseHook.get_session", *args, **kwargs) == {}
        return StandInSession(self)


class StandInWrapper:
    """What `AwsBaseHook.conn_config` is: `AwsConnectionWrapper`."""

    def get_service_endpoint_url(self, *args: Any, **kwargs: Any) -> str:
        assert real("AwsConnectionWrapper.get_service_endpoint_url", *args, **kwargs) == {"service_name": "s3"}
        return "http://s3:9000"


@dataclass
class StandInSession:
    """boto3's session."""

    hook: StandInHook

    def get_credentials(self, *args: Any, **kwargs: Any) -> StandInCredentials | None:
        assert real("Session.get_credentials", *args, **kwargs) == {}
        if self.hook.error is not None:
            raise self.hook.error
        return StandInCredentials(self.hook.keys) if self.hook.keys else None


@dataclass
class StandInCredentials:
    """botocore's credentials."""

    keys: ReadOnlyCredentials

    def get_frozen_credentials(self, *args: Any, **kwargs: Any) -> ReadOnlyCredentials:
        assert real("Credentials.get_frozen_credentials", *args, **kwargs) == {}
        return self.keys


def test_stand_in_has_nothing_that_the_recorded_hook_has_not() -> None:
    assert set(AMAZON["attributes"]) == {"region_name", "conn_config"}
    assert AMAZON["conn_config"] == "AwsConnectionWrapper"
    stand_ins = {
        "AwsBaseHook": StandInHook,
        "AwsConnectionWrapper": StandInWrapper,
        "Session": StandInSession,
        "Credentials": StandInCredentials,
    }
    methods = {f"{name}.{method}" for name, kind in stand_ins.items() for method in vars(kind) if method[:3] == "get"}
    assert methods | {"AwsBaseHook"} == set(AMAZON["calls"])
    with pytest.raises(TypeError):
        real("AwsBaseHook", "a", client="s3")


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> type[StandInHook]:
    """Amazon's provider is there, with a stand-in for its hook."""
    names = ["airflow.providers.amazon", "airflow.providers.amazon.aws", "airflow.providers.amazon.aws.hooks"]
    for name in names:
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    base = ModuleType("airflow.providers.amazon.aws.hooks.base_aws")
    hook = type("Hook", (StandInHook,), {})
    base.AwsBaseHook = hook  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, base.__name__, base)
    return hook


@pytest.mark.parametrize(("name", "value"), NEED_PROVIDER)
def test_hook_of_the_provider_gives_what_is_not_read_here(provider: type[StandInHook], name: str, value: Any) -> None:
    provider.keys = ReadOnlyCredentials("ASIA", "secret", "token")
    assert aws_credentials("a", one(conn_type="aws", login="K", password="S", extra={name: value})) == {
        "access_key_id": "ASIA",
        "secret_access_key": "secret",
        "session_token": "token",
        "region": "eu-west-1",
        "endpoint_url": "http://s3:9000",
    }


def test_keys_and_role_are_read_here_with_the_provider_too_so_that_the_roles_keys_are_renewed(
    provider: type[StandInHook],
) -> None:
    provider.error = AssertionError("not asked")
    given = one(conn_type="aws", login="K", password="S", extra={"role_arn": "arn"})
    assert aws_credentials("a", given)["role_arn"] == "arn"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (None, AccessError),
        (ProfileNotFound(profile="prod"), AccessError),
        (ClientError({"Error": {}, "ResponseMetadata": {"HTTPStatusCode": 403}}, "AssumeRole"), AccessError),
        (ClientError({"Error": {}, "ResponseMetadata": {"HTTPStatusCode": 503}}, "AssumeRole"), UnavailableError),
        (EndpointConnectionError(endpoint_url="http://sts"), UnavailableError),
    ],
)
def test_hook_without_credentials_is_an_error_that_names_the_connection(
    provider: type[StandInHook], error: Exception | None, kind: type[ConnectError]
) -> None:
    provider.error = error
    with pytest.raises(kind, match=r"Connection 'a' g[ia]ve"):
        aws_credentials("a", one(conn_type="aws", extra={"profile_name": "prod"}))


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

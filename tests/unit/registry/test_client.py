"""The client against faults: retries, failover, credentials, refusals, answers that are none."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest

from airflow_connect.errors import AccessError, ConfigError, ConnectError, DataError, SchemaError, UnavailableError
from airflow_connect.registry.client import AVRO, SchemaReference, SchemaRegistryClient, SchemaText
from airflow_connect.registry.settings import shared_keys
from tests.support.servers.s3_interceptor import Answer, S3Interceptor, times
from tests.unit.registry.registry_double import RegistryDouble

SCHEMA = {"schema": '"string"'}
QUICK = {"retries.wait.ms": "1", "retries.max.wait.ms": "2"}
SECRET = "s3cret-word"


def _client(url: str, **config: str) -> SchemaRegistryClient:
    given = {"schema.registry.url": url, **QUICK, **{key.replace("_", "."): value for key, value in config.items()}}
    return SchemaRegistryClient(shared_keys().parse(given), given)


def _failure(client: SchemaRegistryClient) -> ConnectError:
    with pytest.raises(ConnectError) as caught:
        client.schema(7)
    return caught.value


@pytest.mark.parametrize("fault", [(429, {}), (500, {"message": "x"}), (503, b"<html>"), (408, {}), None])
def test_client_passing_fault_is_retried(fault: tuple[int, object] | None) -> None:
    with RegistryDouble(fault, (200, SCHEMA)) as registry:
        assert _client(registry.url).schema(7) == SchemaText(AVRO, '"string"')
        assert [request.path for request in registry.requests] == ["/schemas/ids/7"] * 2


def test_client_lasting_fault_is_unavailable_after_all_attempts() -> None:
    with RegistryDouble((500, {"message": "Error in the backend"})) as registry:
        error = _failure(_client(registry.url, max_retries="2"))
        assert len(registry.requests) == 3
    assert isinstance(error, UnavailableError)
    assert error.retriable
    assert "could not read the schema 7" in error.message and "Error in the backend" in error.message


def test_client_slow_registry_is_unavailable() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        error = _failure(_client(url, max_retries="1", http_read_timeout_ms="50"))
    assert isinstance(error, UnavailableError)
    assert "Read timed out" in error.message


def test_client_first_url_down_asks_the_second_and_stays_there() -> None:
    with RegistryDouble((200, SCHEMA)) as registry:
        client = _client(f"http://127.0.0.1:1/, {registry.url}/base/", max_retries="0")
        client.schema(1)
        client.schema(2)
        assert [request.path for request in registry.requests] == ["/base/schemas/ids/1", "/base/schemas/ids/2"]


def test_client_known_schema_is_asked_for_once() -> None:
    with RegistryDouble((200, SCHEMA)) as registry:
        client = _client(registry.url)
        assert client.schema(7) is client.schema(7)
        assert len(registry.requests) == 1


def test_client_unknown_id_is_a_data_error_and_asked_for_once() -> None:
    with RegistryDouble((404, {"error_code": 40403, "message": "Schema 7 not found"})) as registry:
        client = _client(registry.url)
        first, second = _failure(client), _failure(client)
        assert len(registry.requests) == 1
    assert isinstance(first, DataError) and str(first) == str(second)
    assert first.code == "data.schema_id"
    assert "40403" in first.message


def test_client_credentials_refused_names_the_keys() -> None:
    with RegistryDouble((401, {"message": "Unauthorized"})) as registry:
        url = registry.url.replace("://", f"://me:{SECRET}@")
        error = _failure(_client(url))
        assert len(registry.requests) == 1
    assert isinstance(error, AccessError)
    assert "basic.auth.user.info" in str(error)
    assert SECRET not in str(error)


def test_client_permission_refused_names_what_to_grant() -> None:
    with RegistryDouble((403, {"message": "User is denied operation Read on Subject: orders-value"})) as registry:
        client = _client(registry.url)
        with pytest.raises(AccessError, match=r"Grant .* permission to register a schema under the subject orders-v"):
            client.register("orders-value", SchemaText(AVRO, '"int"'))


@pytest.mark.parametrize(
    ("config", "header"),
    [
        ({"basic_auth_credentials_source": "USER_INFO", "basic_auth_user_info": "me:p:w"}, "Basic bWU6cDp3"),
        ({"basic_auth_credentials_source": "USER_INFO", "schema_registry_basic_auth_user_info": "a:b"}, "Basic YTpi"),
        (
            {
                "basic_auth_credentials_source": "SASL_INHERIT",
                "sasl_jaas_config": 'x.PlainLoginModule required username="a" password="b;\\"c";',
            },
            "Basic " + base64.b64encode(b'a:b;"c').decode(),
        ),
        ({"bearer_auth_token": "abc"}, "Bearer abc"),
        ({"request_header_Authorization": "Own abc"}, "Own abc"),
        ({}, None),
    ],
)
def test_client_credentials_are_sent(config: dict[str, str], header: str | None) -> None:
    with RegistryDouble((200, SCHEMA)) as registry:
        _client(registry.url, **config).schema(1)
        assert registry.requests[0].headers.get("authorization") == header


def test_client_user_info_in_the_url_is_decoded_and_sent() -> None:
    with RegistryDouble((200, SCHEMA)) as registry:
        _client(registry.url.replace("://", "://me:p%40w@")).schema(1)
        sent = registry.requests[0].headers["authorization"]
    assert base64.b64decode(sent.removeprefix("Basic ")) == b"me:p@w"


@pytest.mark.parametrize(
    ("config", "path", "says"),
    [
        ({"schema_registry_url": f"ftp://me:{SECRET}@h"}, "schema.registry.url", "http://"),
        ({"schema_registry_url": f"http://me:{SECRET}@h:x"}, "schema.registry.url", "http://"),
        ({"schema_registry_url": ""}, "schema.registry.url", "http://"),
        ({"basic_auth_credentials_source": "USER_INFO"}, "basic.auth.user.info", "user:password"),
        ({"basic_auth_credentials_source": "SASL_INHERIT"}, "sasl.jaas.config", "username and password"),
        ({"basic_auth_credentials_source": "VAULT"}, "basic.auth.credentials.source", "SASL_INHERIT"),
        ({"bearer_auth_credentials_source": "OAUTHBEARER"}, "bearer.auth.credentials.source", "STATIC_TOKEN"),
        (
            {"bearer_auth_token": SECRET, "schema_registry_url": "http://a:b@h"},
            "bearer.auth.token",
            "one of them",
        ),
        (
            {"schema_registry_url": "https://h", "schema_registry_ssl_truststore_location": "/x/trust.jks"},
            "schema.registry.ssl.truststore.location",
            "not a PEM file",
        ),
        (
            {"schema_registry_url": "https://h", "schema_registry_ssl_truststore_location": "/x/none.pem"},
            "schema.registry.ssl.truststore.location",
            "No such file",
        ),
        (
            {
                "schema_registry_url": "https://h",
                "schema_registry_ssl_keystore_key": SECRET,
                "schema_registry_ssl_keystore_certificate_chain": "nonsense",
            },
            "schema.registry.ssl.keystore.location",
            "cannot be used",
        ),
        ({"http_read_timeout_ms": "soon"}, "http.read.timeout.ms", "32-bit integer|INT"),
    ],
)
def test_client_wrong_configuration_names_the_key_and_no_secret(config: dict[str, str], path: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        _client(config.pop("schema_registry_url", "http://h"), **config)
    assert caught.value.config_path == path
    assert SECRET not in str(caught.value)


def test_client_missing_url_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match=r'Missing required configuration "schema\.registry\.url"'):
        shared_keys().parse({})


def test_client_incompatible_schema_says_what_the_registry_says() -> None:
    with RegistryDouble((409, {"error_code": 409, "message": "reader type STRING not compatible"})) as registry:
        with pytest.raises(SchemaError, match=r"incompatible .* subject a/b-value: reader type STRING") as caught:
            _client(registry.url).register("a/b-value", SchemaText(AVRO, '"int"'))
        assert registry.requests[0].path == "/subjects/a%2Fb-value/versions"
    assert caught.value.code == "data.schema_incompatible"


FOREIGN = [
    (200, b"<html>login</html>"),
    (200, []),
    (404, b"default backend - 404"),
    (404, {"error_code": 404, "message": "HTTP 404 Not Found"}),
    (404, {"error_code": "40403", "message": "text, not a number"}),
    (404, {"message": "no Route matched with those values"}),
    (405, b""),
    (409, b"<html>conflict</html>"),
    (422, {"detail": "Unprocessable"}),
]


@pytest.mark.parametrize("answer", FOREIGN)
@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.schema(7),
        lambda client: client.version("s", 1),
        lambda client: client.latest("s"),
        lambda client: client.lookup("s", SchemaText(AVRO, '"int"')),
        lambda client: client.register("s", SchemaText(AVRO, '"int"')),
    ],
    ids=["schema", "version", "latest", "lookup", "register"],
)
def test_client_answer_of_something_else_fails_the_run(
    ask: Callable[[SchemaRegistryClient], object], answer: tuple[int, object]
) -> None:
    with (
        RegistryDouble(answer) as registry,
        pytest.raises(UnavailableError, match="every refusal has an error code") as caught,
    ):
        ask(_client(registry.url))
    assert caught.value.code == "registry.answer"
    assert "with its path" in caught.value.suggestion


@pytest.mark.parametrize("code", [40401, 40402, 40403, 40405])
def test_client_absence_has_a_code_of_the_registry(code: int) -> None:
    with RegistryDouble((404, {"error_code": code, "message": "Not found."})) as registry:
        client = _client(registry.url)
        assert client.lookup("s", SchemaText(AVRO, '"int"')) is None
        with pytest.raises(DataError, match=f"no version 3 .*{code}"):
            client.version("s", 3)


def test_client_registry_in_read_only_mode_fails_the_run() -> None:
    answer = (422, {"error_code": 42205, "message": "Subject s is in read-only mode"})
    with RegistryDouble(answer) as registry, pytest.raises(AccessError, match="read-only mode") as caught:
        _client(registry.url).register("s", SchemaText(AVRO, '"int"'))
    assert "READWRITE" in caught.value.suggestion


def test_client_references_are_followed_in_order_of_use() -> None:
    def version(text: str, *references: SchemaReference) -> tuple[int, dict[str, object]]:
        found = {"subject": "s", "version": 1, "id": 1, "schema": text}
        return 200, {**found, "references": [reference.to_json() for reference in references]}

    deep = SchemaReference("Deep", "deep", 2)
    schema = SchemaText(AVRO, '"Top"', (SchemaReference("Mid", "mid", 1), deep))
    with RegistryDouble(version('"mid"', deep), version('"deep"'), version('"never"')) as registry:
        found = _client(registry.url).referenced(schema)
        assert [request.path for request in registry.requests] == [
            "/subjects/mid/versions/1?deleted=true",
            "/subjects/deep/versions/2?deleted=true",
        ]
    assert [(name, used.text) for name, used in found.items()] == [("Deep", '"deep"'), ("Mid", '"mid"')]


def _mentioned_twice(kind: str, subject: str) -> str:
    """What `N` is, in a schema that refers to version 2 of `n`, and to one that refers to version 1 of `subject`."""

    def version(text: str, *references: SchemaReference) -> tuple[int, dict[str, object]]:
        told = [reference.to_json() for reference in references]
        return 200, {"subject": "s", "version": 1, "id": 1, "schema": text, "schemaType": kind, "references": told}

    top = SchemaText(kind, "top", (SchemaReference("N", "n", 2), SchemaReference("Mid", "mid", 1)))
    answers = (version("newer"), version("mid", SchemaReference("N", subject, 1)), version("older"))
    with RegistryDouble(*answers) as registry:
        return _client(registry.url).referenced(top)["N"].text


@pytest.mark.parametrize(("kind", "subject"), [("AVRO", "n"), ("JSON", "n"), ("PROTOBUF", "another")])
def test_client_two_schemas_of_one_name_are_refused(kind: str, subject: str) -> None:
    with pytest.raises(SchemaError, match=rf"with the name N: version 2 of .* n and version 1 of .* {subject}"):
        _mentioned_twice(kind, subject)


def test_client_newer_version_of_an_imported_protobuf_file_counts() -> None:
    assert _mentioned_twice("PROTOBUF", "n") == "newer"


def test_client_latest_is_asked_for_again_after_its_time() -> None:
    answer = (200, {"subject": "s", "version": 1, "id": 1, "schema": '"int"'})
    with RegistryDouble(answer) as registry:
        forever, never = _client(registry.url), _client(registry.url, latest_cache_ttl_sec="0")
        for client in (forever, forever, never, never):
            client.latest("s")
        assert len(registry.requests) == 3


def test_client_tls_to_a_server_without_it_is_unavailable() -> None:
    with RegistryDouble((200, SCHEMA)) as registry:
        error = _failure(_client(registry.url.replace("http:", "https:"), max_retries="0"))
    assert isinstance(error, UnavailableError)
    assert "gave no answer" in error.message


@pytest.mark.parametrize(
    ("form", "login"),
    [("http://{}", None), ("{}", None), ("http://ann:p%40ss@{}", "Basic YW5uOnBAc3M=")],
    ids=["url", "host and port", "login"],
)
def test_client_proxy_of_the_environment_is_used(form: str, login: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    with RegistryDouble((200, SCHEMA)) as proxy:
        monkeypatch.setenv("http_proxy", form.format(proxy.url.removeprefix("http://")))
        monkeypatch.setenv("no_proxy", "")
        _client("http://registry.example:8081").schema(7)
        assert proxy.requests[0].path == "http://registry.example:8081/schemas/ids/7"
        assert proxy.requests[0].headers.get("proxy-authorization") == login


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_client_redirect_is_not_followed_and_credentials_stay_with_their_host(status: int) -> None:
    with RegistryDouble((200, SCHEMA)) as other:
        away = Answer(status, headers={"location": f"{other.url}/schemas/ids/7?hidden={SECRET}"})
        with S3Interceptor(times(9, away)) as registry:
            error = _failure(_client(registry.url.replace("//", f"//me:{SECRET}@")))
            assert len(registry.seen) == 1
        assert other.requests == []
    assert (error.code, error.config_path) == ("registry.redirect", "schema.registry.url")
    assert f"redirects to {other.url} (status {status})" in error.message
    assert SECRET not in str(error)

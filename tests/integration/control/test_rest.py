"""The REST application: access, bodies of any kind, names of any kind, secrets, requests at the same time."""

from __future__ import annotations

import base64
import json
import re
import socket
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.routing import Route

from airflow_connect.control.rest.app import create_app
from airflow_connect.control.rest.parameters import Served
from tests.support.servers.rest import JSON, Answered, RestServer, worker_of

pytestmark = pytest.mark.integration

SECRET = "hunter2-of-the-test"
SOURCE = {"connector.class": "FileStreamSource", "file": "in.txt", "topic": "lines"}
FILES = {
    "config.providers": "env",
    "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
}


@pytest.fixture(scope="module")
def worker(kafka) -> dict[str, str]:
    import uuid

    return {**worker_of(kafka.bootstrap, f"t-{uuid.uuid4().hex[:12]}"), **FILES}


@pytest.fixture(scope="module")
def server(worker) -> Iterator[RestServer]:
    with RestServer(worker) as server:
        yield server


@pytest.fixture(scope="module")
def guarded(worker) -> Iterator[RestServer]:
    with RestServer(worker, {"ann": SECRET}) as server:
        yield server


def basic(name: str, password: str) -> dict[str, str]:
    return {**JSON, "Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


def created(server: RestServer, name: str, **config: Any) -> Answered:
    return server.send("POST", "/connectors", {"name": name, "config": {**SOURCE, **config}})


def routes(server: RestServer) -> list[tuple[str, str]]:
    app = create_app(Served(lambda _: server.herder))
    found = [route for route in app.routes if isinstance(route, Route)]
    return [(method, re.sub(r"\{\w+\}", "0", route.path)) for route in found for method in route.methods or ()]


def test_no_route_answers_without_a_known_user(guarded):
    every = [route for route in routes(guarded) if route[1] != "/health"]  # Its own test: test_rest_servers.py.
    assert len(every) > 30
    strangers = [JSON, basic("ann", "wrong"), basic("bob", SECRET), basic("ann", ""), {"Authorization": "Basic %%%"}]
    for method, path in [
        *every,
        ("GET", "/nope"),
        ("GET", "/openapi.json"),
        ("GET", "/docs"),
        ("OPTIONS", "/"),
        ("GET", "//"),
    ]:
        for headers in strangers:
            answer = guarded.send(method, path, None, headers)
            assert (answer.status, answer.headers["www-authenticate"]) == (401, "Basic"), (method, path)
            assert answer.body is None or answer.body["error_code"] == 401


def test_a_known_user_is_answered(guarded):
    assert guarded.send("GET", "/connectors", None, basic("ann", SECRET)).status == 200


@pytest.mark.parametrize("host", ["example.com", "example.com:8083", "127.0.0.1.example.com:80", ""])
def test_without_users_only_requests_that_are_addressed_to_loopback_are_answered(server, host):
    answer = server.send("GET", "/connectors", None, {"Host": host} if host else {})
    # http.client sends its own Host first; the application sees the last one.
    assert answer.status == (403 if host else 200)


@pytest.mark.parametrize("origin", ["https://example.com", "null", "http://127.0.0.1:1"])
def test_a_request_that_a_web_page_of_another_host_sends_is_refused(server, guarded, origin):
    for one, headers in ((server, JSON), (guarded, basic("ann", SECRET))):
        answer = one.send("POST", "/connectors/x/restart", None, {**headers, "Origin": origin})
        assert (answer.status, answer.body["message"]) == (403, "Requests from other web pages are refused.")
        own = {**headers, "Origin": "http://{}:{}".format(*one.address)}
        assert one.send("GET", "/connectors", None, own).status == 200


@pytest.mark.parametrize(
    ("site", "mode", "status"),
    [
        ("cross-site", "no-cors", 403), ("same-site", "no-cors", 403), ("cross-site", "navigate", 200),
        ("same-origin", "cors", 200), ("none", "navigate", 200),
    ],
)  # fmt: skip
def test_a_picture_or_script_of_another_page_is_refused_and_a_link_is_followed(server, site, mode, status):
    place = {"Sec-Fetch-Dest": "document" if mode == "navigate" else "image"}
    fetched = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, **place}
    assert server.send("GET", "/connectors", None, fetched).status == status


def test_asking_for_the_keys_of_a_class_imports_no_module_that_is_not_used(server):
    for name in ("antigravity:fly", "this.d"):
        assert server.send("GET", f"/connector-plugins/{name}/config", None, {}).status == 404
    assert not {"antigravity", "this"} & sys.modules.keys()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"[" * 200_000, 400),
        (b'{"name":"x","config":' + b'{"a":' * 200 + b"1" + b"}" * 201, 400),
        (b'{"name":' + b"9" * 10_000 + b"}", 400),
        (b"\xff\xfe{}", 400),
        (b'{"name":"\\ud800","config":{}}', 400),
        (b'{"name":"x","config":{"a":"\\udfff"}}', 400),
        (b'{"name":"x","config":{"a":NaN}}', 400),
        (b"x" * (1 << 20) + b"x", 413),
        (json.dumps({"name": "x", "config": {"a": "b" * (1 << 20)}}).encode(), 413),
    ],
)
def test_a_body_that_no_client_sends_on_purpose_is_refused(server, body, status):
    answer = server.send("POST", "/connectors", body)
    assert (answer.status, answer.body["error_code"]) == (status, status)


def test_an_error_about_a_body_does_not_repeat_it(server):
    answer = server.send("POST", "/connectors", f'{{"name": "x", "config": {{"password": "{SECRET}" x')
    assert answer.status == 400 and SECRET not in str(answer.body)


def test_a_body_that_does_not_arrive_ends_the_request(server, monkeypatch):
    monkeypatch.setattr("airflow_connect.control.rest.bodies.BODY_WITHIN_S", 0.2)
    with socket.create_connection(server.address) as slow:
        slow.settimeout(20)
        slow.sendall(b"POST /connectors HTTP/1.1\r\nHost: localhost\r\n")
        slow.sendall(b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
        assert slow.recv(100).startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize("name", ["a/b", "pct%41", "back\\slash", "..", "q?x#y;z", "blank inside", "\N{PARTY POPPER}"])
def test_a_connector_with_any_name_can_be_created_read_and_deleted(server, name):
    from urllib.parse import quote

    path = f"/connectors/{quote(name, safe='')}"
    answer = created(server, name)
    assert answer.status == 201 and answer.headers["location"].endswith(path)
    assert server.send("GET", f"{path}/config").body["name"] == name
    assert server.send("DELETE", path).status == 204
    assert server.send("GET", path).status == 404


def test_the_value_of_a_reference_is_in_no_answer(server, unique_name, monkeypatch):
    monkeypatch.setenv("SECRET_OF_THE_TEST", SECRET)
    reference = "${env:SECRET_OF_THE_TEST}"
    answers = [
        created(server, unique_name, topic=reference, file=reference),
        created(server, "wrong", **{"batch.size": reference, "file": reference}),
        server.send("PUT", "/connector-plugins/FileStreamSource/config/validate", {**SOURCE, "topic": reference}),
        server.send("PUT", "/connector-plugins/FileStreamSource/config/validate", {**SOURCE, "batch.size": reference}),
        *(server.send("GET", f"/connectors/{unique_name}{of}") for of in ("", "/config", "/tasks", "/status")),
        server.send("GET", "/connectors?expand=info&expand=status"),
    ]
    assert [answer.status for answer in answers] == [201, 400, 200, 200, 200, 200, 200, 200, 200]
    assert answers[5].body["topic"] == reference
    assert not [answer for answer in answers if SECRET in str(answer.body)]
    server.send("DELETE", f"/connectors/{unique_name}")


def test_validating_shows_every_key_with_its_value_and_its_errors(server):
    given = {**SOURCE, "name": "v", "tasks.max": "0"}
    answer = server.send("PUT", "/connector-plugins/FileStreamSource/config/validate", given)
    values = {entry["value"]["name"]: entry["value"] for entry in answer.body["configs"]}
    assert (answer.status, answer.body["name"], answer.body["error_count"]) == (200, "FileStreamSource", 1)
    assert values["topic"]["value"] == "lines"
    assert values["tasks.max"]["errors"] == ["Invalid value 0 for configuration tasks.max: Value must be at least 1"]


def test_plugins_are_listed_with_their_types(server):
    only, every = (server.send("GET", f"/connector-plugins{query}").body for query in ("", "?connectorsOnly=false"))
    assert ("io.confluent.connect.s3.S3SinkConnector", "sink") in {(entry["class"], entry["type"]) for entry in only}
    assert {entry["type"] for entry in only} == {"sink", "source"}
    assert {entry["type"] for entry in every} > {"transformation", "predicate", "converter", "header_converter"}
    assert server.send("GET", "/connector-plugins/S3SinkConnector/config").body[0].keys() > {"name", "order_in_group"}


def test_two_patches_at_once_are_both_applied_or_one_is_refused(server, unique_name):
    created(server, unique_name)
    answers: list[Answered] = []

    def patch(key: str) -> None:
        answers.append(server.send("PATCH", f"/connectors/{unique_name}/config", {key: "1"}))

    threads = [threading.Thread(target=patch, args=(f"note.{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    config = server.send("GET", f"/connectors/{unique_name}/config").body
    applied = [answer for answer in answers if answer.status == 200]
    assert {answer.status for answer in answers} <= {200, 409}
    assert len(applied) == len([key for key in config if key.startswith("note.")]) >= 1
    server.send("DELETE", f"/connectors/{unique_name}")


def test_a_level_for_the_whole_cluster_is_in_the_config_topic(server, unique_name):
    answer = server.send("PUT", f"/admin/loggers/{unique_name}?scope=cluster", {"level": "error"})
    assert answer.status == 204
    assert server.topics.look(lambda state: state.config.levels[unique_name][1]) == "ERROR"
    assert server.send("GET", f"/admin/loggers/{unique_name}").body["level"] == "ERROR"

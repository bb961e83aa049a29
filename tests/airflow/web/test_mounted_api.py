"""`/connect` in Airflow's own application: login, rights, audit entries, secrets, several installations."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.testclient import TestClient

from airflow_connect.devstack.kafka import KafkaBroker
from tests.support.servers.rest import worker_of

pytestmark = pytest.mark.integration

SECRET, CONN_SECRET = "hunter2-of-the-mount", "sasl-wonder1and-of-the-mount"
SETTING = "AIRFLOW__AIRFLOW_CONNECT__WORKER_CONN_IDS"
ROLES = ("viewer", "user", "op", "admin")
SOURCE = {
    "connector.class": "FileStreamSource",
    "file": "in.txt",
    "topic": "lines",
    "upstream.password": SECRET,
}


@pytest.fixture(scope="module")
def client(airflow_home: Path, kafka: KafkaBroker) -> Iterator[TestClient]:
    """Airflow's application with two installations; the second one cannot log in to the broker."""
    import uuid

    from airflow.api_fastapi.app import create_app, purge_cached_app

    worker = {
        **worker_of(kafka.bootstrap, f"t-{uuid.uuid4().hex[:12]}"),
        "connector.client.config.override.policy": "All",
    }
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "NO-SUCH", "sasl.password": CONN_SECRET}
    broken = {**worker_of(kafka.bootstrap, "nobody"), **login}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("_AIRFLOW_PROCESS_CONTEXT", "server")
        patch.setenv(SETTING, "prod,broken")
        for name, settings in (("PROD", worker), ("BROKEN", broken)):
            patch.setenv(f"AIRFLOW_CONN_{name}", json.dumps({"conn_type": "connect_worker", "extra": settings}))
        with TestClient(create_app("core"), base_url="http://airflow.example.com") as client:
            yield client
        purge_cached_app()


@pytest.fixture(scope="module")
def logins(client: TestClient) -> dict[str, dict[str, str]]:
    """Headers with the token of a user of each role."""
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    users = {role: SimpleAuthManagerUser(username=role, role=role.upper()) for role in ROLES}
    tokens = {role: get_auth_manager().generate_jwt(user) for role, user in users.items()}
    return {role: {"Authorization": f"Bearer {token}"} for role, token in tokens.items()}


def routes() -> list[tuple[str, str]]:
    from airflow_connect.control.rest.app import CONNECTORS, create_app
    from airflow_connect.control.rest.parameters import Served

    app: FastAPI = create_app(Served(lambda _: pytest.fail("nobody is let in")), CONNECTORS)
    found = [route for route in app.routes if isinstance(route, APIRoute)]
    return [(method, re.sub(r"\{\w+\}", "0", route.path)) for route in found for method in route.methods]


def audited() -> list[tuple[str, str, dict[str, Any]]]:
    from airflow.models.log import Log
    from airflow.utils.session import create_session

    with create_session() as session:
        found = session.query(Log).filter(Log.event.like("connect.%")).order_by(Log.id).all()
        return [(entry.event, entry.owner, json.loads(entry.extra)) for entry in found]


def test_no_route_answers_without_a_login(client: TestClient) -> None:
    every = [
        *routes(),
        ("GET", "/openapi.json"),
        ("GET", "/docs"),
        ("GET", "/installations"),
        ("PUT", "/admin/loggers/root"),
    ]
    assert len(every) > 25
    for method, path in [*every, ("GET", "/nope"), ("OPTIONS", "/connectors")]:
        for prefix in ("/connect", "/connect/installations/prod", "/connect/installations/nope"):
            for headers in ({}, {"Authorization": "Basic YTpi"}, {"Cookie": "_token=x.y.z"}):
                answer = client.request(method, prefix + path, headers=headers)
                assert answer.status_code in (401, 403), (method, prefix + path, answer.text)
                assert answer.json()["error_code"] == answer.status_code


def test_a_viewer_can_change_nothing_and_imports_nothing(client: TestClient, logins: dict[str, Any]) -> None:
    before = audited()
    changes = [(method, path) for method, path in routes() if method != "GET"]
    assert len(changes) > 14
    for method, path in [*changes, ("GET", "/connector-plugins/antigravity:x/config")]:
        answer = client.request(method, f"/connect{path}", headers=logins["viewer"], json={})
        assert (answer.status_code, answer.json()["error_code"]) == (403, 403), (method, path, answer.text)
    assert audited() == before


def test_a_connector_is_operated_by_users_changed_by_op_and_every_change_has_an_entry(
    client: TestClient, logins: dict[str, Any], unique_name: str
) -> None:
    one, before = f"/connect/connectors/{unique_name}", len(audited())
    body = {"name": unique_name, "config": SOURCE}
    assert client.post("/connect/connectors", headers=logins["user"], json=body).status_code == 403
    created = client.post("/connect/connectors", headers=logins["op"], json=body)
    assert (created.status_code, created.headers["location"]) == (201, f"http://airflow.example.com{one}")
    assert client.get(created.headers["location"], headers=logins["op"]).json()["name"] == unique_name

    for operation, status in (("pause", 202), ("resume", 202), ("stop", 204)):
        assert client.put(f"{one}/{operation}", headers=logins["user"]).status_code == status
    assert client.post(f"{one}/restart", headers=logins["user"]).status_code == 204
    for method, path, payload in (("PUT", "config", SOURCE), ("PATCH", "config", {}), ("DELETE", "offsets", None)):
        assert client.request(method, f"{one}/{path}", headers=logins["user"], json=payload).status_code == 403
    cookie = {"Cookie": "_token=" + logins["admin"]["Authorization"].removeprefix("Bearer ")}
    other, own = {"Origin": "http://evil.example.com"}, {"Origin": "http://airflow.example.com"}
    assert client.delete(one, headers={**cookie, **other}).status_code == 403
    assert client.delete(one, headers={**cookie, **own}).status_code == 204

    entries = audited()[before:]
    assert [(event, who) for event, who, _ in entries] == [
        ("connect.create_connector", "op"),
        ("connect.pause_connector", "user"),
        ("connect.resume_connector", "user"),
        ("connect.stop_connector", "user"),
        ("connect.restart_connector", "user"),
        ("connect.delete_connector", "admin"),
    ]
    assert {(extra["connection"], extra["connector"]) for _, _, extra in entries} == {("prod", unique_name)}
    assert entries[0][2]["keys"] == sorted(SOURCE)
    assert SECRET not in json.dumps(entries)


def test_literal_secrets_are_shown_to_those_who_may_set_them(
    client: TestClient, logins: dict[str, Any], unique_name: str
) -> None:
    one = f"/connect/connectors/{unique_name}"
    assert client.put(f"{one}/config", headers=logins["op"], json=SOURCE).status_code == 201
    for path in (one, f"{one}/config", f"{one}/tasks", "/connect/connectors?expand=info&expand=status"):
        shown = {role: client.get(path, headers=logins[role]) for role in ROLES}
        assert {role for role, answer in shown.items() if answer.status_code == 200 and SECRET in answer.text} == {
            "op",
            "admin",
        }
        assert "[hidden]" in shown["viewer"].text
    assert client.delete(one, headers=logins["op"]).status_code == 204


def test_installations_are_listed_and_each_is_reached_by_its_name(client: TestClient, logins: dict[str, Any]) -> None:
    listed = client.get("/connect/installations", headers=logins["viewer"]).json()
    base = "http://airflow.example.com/connect/installations"
    assert listed == [{"name": name, "url": f"{base}/{name}"} for name in ("prod", "broken")]
    first = client.get("/connect/", headers=logins["viewer"]).json()
    assert client.get(f"{base}/prod", headers=logins["viewer"]).json() == first
    described = client.get(f"{base}/prod/openapi.json", headers=logins["viewer"]).json()
    assert described["servers"] == [{"url": "/connect/installations/prod"}]
    assert "/admin/loggers" not in described["paths"]
    for name in ("nope", "%2e%2e%2fprod", "prod%2f..", "airflow_db", ""):
        answer = client.get(f"{base}/{name}/connectors", headers=logins["admin"])
        assert answer.status_code == 404, (name, answer.text)
    assert (
        client.put("/connect/admin/loggers/root", headers=logins["admin"], json={"level": "DEBUG"}).status_code == 404
    )


def test_an_installation_that_cannot_log_in_is_told_without_its_secret(
    client: TestClient, logins: dict[str, Any]
) -> None:
    answer = client.get("/connect/installations/broken/connectors", headers=logins["admin"])
    assert (answer.status_code, answer.json()["error_code"]) == (500, 500)
    assert "NO-SUCH" in answer.text
    assert CONN_SECRET not in answer.text


def test_a_change_whose_audit_entry_cannot_be_written_is_not_made(
    client: TestClient, logins: dict[str, Any], unique_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sqlalchemy.exc import OperationalError

    def fail(*_: object, **__: object) -> None:
        raise OperationalError("INSERT", {}, Exception("the database is read-only"))

    monkeypatch.setattr("airflow_connect.ui.web.visitor_herder.record", fail)
    body = {"name": unique_name, "config": SOURCE}
    answer = client.post("/connect/connectors", headers=logins["admin"], json=body)
    assert (answer.status_code, answer.json()["error_code"]) == (500, 500)
    assert "read-only" not in answer.text and "Traceback" not in answer.text
    assert unique_name not in client.get("/connect/connectors", headers=logins["admin"]).json()


def test_requests_that_wait_for_kafka_leave_threads_to_airflow(
    client: TestClient, logins: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airflow_connect.ui.web.connect_api.MOST_AT_ONCE", 0)
    answer = client.get("/connect/connectors", headers=logins["admin"])
    assert (answer.status_code, answer.json()["error_code"]) == (503, 503)
    assert client.get("/api/v2/version").status_code == 200

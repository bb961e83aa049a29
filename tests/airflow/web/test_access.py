"""Who may do what, with Airflow's simple auth manager, its database and its audit log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from airflow_connect.control.herder.refusals import RefusedError

ROLES = ("viewer", "user", "op", "admin")
OWN = {"Origin": "http://airflow.example.com"}


@pytest.fixture(scope="module")
def tokens(airflow_home: Path) -> Iterator[dict[str, str]]:
    """A token for a user of each role."""
    from airflow.api_fastapi.app import create_auth_manager, purge_cached_app
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    manager = create_auth_manager()
    yield {role: manager.generate_jwt(SimpleAuthManagerUser(username=role, role=role.upper())) for role in ROLES}
    purge_cached_app()


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    """An application whose path is the right that it asks for."""
    from airflow_connect.ui.web.access import Right, visitor_of
    from airflow_connect.ui.web.audit import record
    from airflow_connect.ui.web.same_site import refuse_other_sites

    async def answer(request: Request) -> JSONResponse:
        try:
            visitor = await visitor_of(request)
            refuse_other_sites(request)
            await visitor.refuse_without(Right[request.path_params["right"]], "prod")
        except RefusedError as refused:
            return JSONResponse(refused.message, refused.status)
        record("test_access", visitor.name, "prod", "orders", ["b", "a"], method=request.method)
        return JSONResponse(visitor.name)

    routes = [Route("/{right}", answer, methods=["GET", "POST"])]
    with TestClient(Starlette(routes=routes), base_url="http://airflow.example.com") as client:
        yield client


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize(("right", "roles"), [("READ", ROLES), ("OPERATE", ROLES[1:]), ("CHANGE", ROLES[2:])], ids=str)
def test_each_right_is_given_to_the_roles_that_have_the_permission_of_airflow(
    client: TestClient, tokens: dict[str, str], right: str, roles: tuple[str, ...]
) -> None:
    for role in ROLES:
        answer = client.post(f"/{right}", headers=bearer(tokens[role]))
        assert answer.status_code == (200 if role in roles else 403)
        if role not in roles:
            assert answer.json().startswith(f"User {role} has no permission for this request: it needs the permission")


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Basic YTpi"}, {"Cookie": "_token="}])
def test_a_request_without_a_login_is_refused(client: TestClient, headers: dict[str, str]) -> None:
    answer = client.get("/READ", headers=headers)
    assert (answer.status_code, answer.json()) == (401, "Not authenticated")


def test_a_token_that_airflow_has_not_signed_is_refused(client: TestClient, tokens: dict[str, str]) -> None:
    head, body, signature = tokens["admin"].split(".")
    answer = client.get("/READ", headers=bearer(f"{head}.{body}.{signature[::-1]}"))
    assert (answer.status_code, answer.json()) == (403, "Invalid JWT token")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (OWN, 200),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "http://evil.example.com"}, 403),
        ({"Origin": "http://airflow.example.com:81"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://evil.example.com", "Sec-Fetch-Site": "same-origin"}, 403),
        ({"Authorization": "Bearer of-nobody", **OWN}, 403),
    ],
)
def test_a_change_with_the_cookie_has_to_come_from_a_page_of_this_airflow(
    client: TestClient, tokens: dict[str, str], headers: dict[str, str], status: int
) -> None:
    answer = client.post("/CHANGE", headers={"Cookie": f"_token={tokens['admin']}", **headers})
    assert answer.status_code == status, answer.text


def test_a_page_of_another_site_cannot_use_a_token_either(client: TestClient, tokens: dict[str, str]) -> None:
    other = {"Origin": "http://evil.example.com"}
    assert client.post("/CHANGE", headers={**bearer(tokens["admin"]), **other}).status_code == 403
    assert client.get("/READ", headers={"Cookie": f"_token={tokens['viewer']}", **other}).status_code == 200


def test_the_address_of_airflow_and_the_origins_it_allows_are_its_own(
    client: TestClient, tokens: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://public.example.com/airflow")
    monkeypatch.setenv("AIRFLOW__API__ACCESS_CONTROL_ALLOW_ORIGINS", "https://ui.example.com")
    for origin, status in (
        ("https://public.example.com", 200),
        ("https://ui.example.com", 200),
        ("http://public.example.com", 403),
    ):
        headers = {"Cookie": f"_token={tokens['admin']}", "Origin": origin}
        assert client.post("/CHANGE", headers=headers).status_code == status


def last_entry() -> tuple[Any, ...]:
    from airflow.models.log import Log
    from airflow.utils.session import create_session

    with create_session() as session:
        found = session.query(Log).order_by(Log.id.desc()).first()
        return found.event, found.owner, json.loads(found.extra)


def test_an_audit_entry_says_who_has_requested_what(client: TestClient, tokens: dict[str, str]) -> None:
    assert client.post("/OPERATE", headers=bearer(tokens["user"])).status_code == 200
    extra = {"connection": "prod", "connector": "orders", "keys": ["a", "b"], "method": "POST"}
    assert last_entry() == ("connect.test_access", "user", extra)

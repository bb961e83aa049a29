"""The pages over real topics and real runs, behind Airflow's own login."""

from __future__ import annotations

import json
import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI
from playwright.sync_api import Browser, Page
from starlette.testclient import TestClient

from airflow_connect.runtime.driver import pages_progress
from tests.support.chromium import chromium_browser
from tests.support.copies.showcase import (
    BUSY,
    FAILING,
    HEALTHY,
    LAGGING,
    NEW,
    OF_DAG,
    PAUSED,
    BusyConnector,
    Showcase,
)

ROLES = ("viewer", "user", "op", "admin")
CONN_ID = "connect_test"
BUSY_CONN_ID = "connect_busy"
ORIGIN = "http://airflow.example.com"
OpenPage = Callable[..., Page]


@pytest.fixture(scope="session")
def application(airflow_home: Path) -> Iterator[FastAPI]:
    """Airflow's API server with its UI and its plugins."""
    from airflow.api_fastapi.app import create_app, purge_cached_app

    yield create_app(apps="core")
    purge_cached_app()


@pytest.fixture(scope="session")
def tokens(application: FastAPI) -> dict[str, str]:
    """A login for a user of each role."""
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    manager = get_auth_manager()
    return {role: manager.generate_jwt(SimpleAuthManagerUser(username=role, role=role.upper())) for role in ROLES}


@pytest.fixture(scope="session")
def showcase(kafka, tmp_path_factory: pytest.TempPathFactory) -> Showcase:
    """Connectors in every state, in an installation that Airflow shows."""
    from tests.support.kafka_data import TopicProducer, create_topic

    name = f"pages-{uuid.uuid4().hex[:8]}"
    topics = {connector: f"{name}-{connector}" for connector in (HEALTHY, LAGGING, FAILING, PAUSED, OF_DAG, NEW)}
    producer = TopicProducer(kafka.bootstrap)
    for topic in topics.values():
        create_topic(kafka.bootstrap, topic, 3, {"retention.ms": str(7 * 24 * 3600 * 1000)})
    made = Showcase(kafka.bootstrap, name, tmp_path_factory.mktemp("files"), producer, topics)
    made.fill()
    return made


@pytest.fixture(scope="module", autouse=True)
def shown(showcase: Showcase) -> Iterator[None]:
    """Airflow's settings name the installation; only for these tests."""
    with pytest.MonkeyPatch.context() as patch:
        connection = {"conn_type": "connect_worker", "extra": showcase.worker}
        patch.setenv(f"AIRFLOW_CONN_{CONN_ID.upper()}", json.dumps(connection))
        patch.setenv("AIRFLOW__AIRFLOW_CONNECT__WORKER_CONN_IDS", CONN_ID)
        yield


@pytest.fixture
def busy(kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BusyConnector]:
    """An installation of its own, with a connector whose run waits until it is let go."""
    from tests.support.kafka_data import TopicProducer, create_topic

    name = f"busy-{uuid.uuid4().hex[:8]}"
    create_topic(kafka.bootstrap, name, 2)
    made = Showcase(kafka.bootstrap, name, tmp_path, TopicProducer(kafka.bootstrap), {BUSY: name})
    monkeypatch.setattr(pages_progress, "TELL_AFTER_S", 0.0)
    monkeypatch.setattr(pages_progress, "TELL_EVERY_S", 0.0)
    connection = {"conn_type": "connect_worker", "extra": made.worker}
    monkeypatch.setenv(f"AIRFLOW_CONN_{BUSY_CONN_ID.upper()}", json.dumps(connection))
    monkeypatch.setenv("AIRFLOW__AIRFLOW_CONNECT__WORKER_CONN_IDS", f"{CONN_ID}, {BUSY_CONN_ID}")
    with BusyConnector(made) as found:
        yield found


@pytest.fixture
def browser_of(application: FastAPI, tokens: dict[str, str]):
    """`browser_of("viewer")`: a client with the login cookie of that role; redirects are followed."""

    def make(role: str) -> TestClient:
        cookies = {"_token": tokens[role]}
        return TestClient(application, base_url=ORIGIN, headers={"Origin": ORIGIN}, cookies=cookies)

    return make


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with chromium_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def address(application: FastAPI, showcase: Showcase) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(
            uvicorn.Config(application, log_config=None, lifespan="off", timeout_graceful_shutdown=1)
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


@pytest.fixture
def open_page(chromium: Browser, address: str, tokens: dict[str, str]) -> Iterator[OpenPage]:
    """`open_page("op", path)`: a page of a user with this role. A script that fails fails the test."""
    contexts: list[Any] = []
    problems: list[str] = []

    def make(role: str, path: str, width: int = 1280, scheme: Any = "light") -> Page:
        context = chromium.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme, locale="en-GB")
        contexts.append(context)
        context.add_cookies([{"name": "_token", "value": tokens[role], "url": address}])
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(f"{address}/{path}")
        return page

    yield make
    for context in contexts:
        context.close()
    assert problems == []

"""Clients that were written for Kafka Connect: kcctl's requests, and a script with `requests`."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from airflow_connect import __version__
from tests.support.servers.rest import RestServer, worker_of

pytestmark = pytest.mark.integration

# kcctl is a Java program that no registry has. Its interface KafkaConnectApi declares these requests, with `/` at the
# end of `/connectors/`; its client sends both headers with every request.
KCCTL = {"Accept": "application/json", "Content-Type": "application/json"}
CONFIG = {"connector.class": "FileStreamSource", "file": "in.txt", "topic": "lines", "tasks.max": "1"}
OFFSETS = {"offsets": [{"partition": {"filename": "in.txt"}, "offset": {"position": 3}}]}


@pytest.fixture(scope="module")
def server(kafka) -> Iterator[RestServer]:
    with RestServer(worker_of(kafka.bootstrap, f"t-{uuid.uuid4().hex[:12]}")) as server:
        yield server


def test_every_request_of_kcctl_has_an_answer_that_it_can_read(server: RestServer):
    def send(method: str, path: str, body: Any = None, **query: Any) -> tuple[int, Any]:
        answer = requests.request(method, server.urls[0] + path, json=body, params=query, headers=KCCTL, timeout=60)
        return answer.status_code, answer.json() if answer.content else None

    def ask(path: str, **query: Any) -> Any:
        status, found = send("GET", path, **query)
        assert status == 200, (path, found)
        return found

    about = ask("/")
    assert about.keys() == {"version", "commit", "kafka_cluster_id"}
    # kcctl refuses commands such as offsets of connectors if the version is older than Kafka Connect's that has them.
    assert tuple(map(int, about["version"].split("."))) >= (4, 3)
    assert about["commit"] == f"airflow-connect-{__version__}"
    assert {"class", "type", "version"} == ask("/connector-plugins", connectorsOnly="false")[0].keys()
    assert ask("/connector-plugins/FileStreamSource/config")[0]["name"]
    validated = send("PUT", "/connector-plugins/FileStreamSource/config/validate", {**CONFIG, "name": "orders"})
    assert (validated[0], validated[1]["error_count"]) == (200, 0)
    assert send("POST", "/connectors/", {"name": "orders", "config": CONFIG})[0] == 201
    assert ask("/connectors/") == ["orders"]
    assert ask("/connectors/orders")["type"] == "source"
    assert ask("/connectors", expand=["info", "status"])["orders"].keys() == {"info", "status"}
    assert ask("/connectors/orders/status")["tasks"][0]["state"] == "RUNNING"
    assert ask("/connectors/orders/topics") == {"orders": {"topics": []}}
    assert ask("/connectors/orders/config") == {**CONFIG, "name": "orders"}
    assert send("PUT", "/connectors/orders/config", {**CONFIG, "batch.size": "10"})[0] == 200
    assert send("POST", "/connectors/orders/restart") == (204, None)
    status, restarted = send("POST", "/connectors/orders/restart", includeTasks="true", onlyFailed="false")
    assert (status, restarted["connector"]["state"]) == (202, "RESTARTING")
    assert send("POST", "/connectors/orders/tasks/0/restart") == (204, None)
    assert send("PUT", "/connectors/orders/pause") == send("PUT", "/connectors/orders/resume") == (202, None)
    assert send("PUT", "/connectors/orders/stop") == (204, None)
    assert send("PATCH", "/connectors/orders/offsets", OFFSETS)[0] == 200
    assert ask("/connectors/orders/offsets") == OFFSETS
    assert send("DELETE", "/connectors/orders/offsets")[0] == 200
    assert ask("/admin/loggers/")["root"].keys() == {"level", "last_modified"}
    assert send("PUT", "/admin/loggers/test.kcctl", {"level": "ERROR"}) == (200, ["test.kcctl"])
    assert send("PUT", "/admin/loggers/test.kcctl", {"level": "INFO"}, scope="cluster") == (204, None)
    assert send("DELETE", "/connectors/orders") == (204, None)
    assert send("GET", "/connectors/orders")[1] == {"error_code": 404, "message": "Connector orders not found"}


def test_a_script_that_applies_configurations_finds_what_it_has_applied(server: RestServer):
    """One connection for all requests, names that need escaping, and errors raised by status."""
    names = ["a b", "a/b", "c"]
    with requests.Session() as session:
        for name in names:
            url = f"{server.urls[0]}/connectors/{requests.utils.quote(name, safe='')}"
            session.put(f"{url}/config", json={**CONFIG, "name": name}, timeout=60).raise_for_status()
        assert set(names) <= set(session.get(f"{server.urls[0]}/connectors", timeout=60).json())
        for name in names:
            url = f"{server.urls[0]}/connectors/{requests.utils.quote(name, safe='')}"
            assert session.get(f"{url}/config", timeout=60).json()["name"] == name
            session.delete(url, timeout=60).raise_for_status()
            with pytest.raises(requests.HTTPError, match="404"):
                session.get(url, timeout=60).raise_for_status()

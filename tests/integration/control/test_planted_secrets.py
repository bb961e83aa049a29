"""Secrets of a worker are in no answer, topic, log or command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import requests

from tests.support.command_line import run_command
from tests.support.kafka_data import every_record
from tests.support.processes.proc import command_lines
from tests.support.servers.certificates import as_pkcs12, self_signed
from tests.support.servers.rest import worker_of
from tests.support.servers.worker_process import WorkerProcess

pytestmark = pytest.mark.integration

USER, STORE, REGISTRY, DATABASE = "user-wonder1and", "store-rabbit77hole", "registry-0pensesame", "database-jabberw0ck"
SECRETS = (USER, STORE, REGISTRY, DATABASE)


@pytest.fixture
def worker(kafka, unique_name, tmp_path: Path, monkeypatch) -> dict[str, str]:
    """With each kind of secret that a worker has."""
    monkeypatch.setenv("REGISTRY_OF_THE_TEST", f"me:{REGISTRY}")
    monkeypatch.setenv("DATABASE_OF_THE_TEST", DATABASE)
    monkeypatch.setenv("STORE_OF_THE_TEST", STORE)
    users, store = tmp_path / "users.properties", tmp_path / "keystore.p12"
    users.write_text(f"ann={USER}\n")
    users.chmod(0o600)
    store.write_bytes(as_pkcs12(self_signed(tmp_path), STORE))
    return {
        **worker_of(kafka.bootstrap, unique_name),
        "listeners": "https://127.0.0.1:0",
        "listeners.https.ssl.keystore.type": "PKCS12",
        "listeners.https.ssl.keystore.location": str(store),
        "listeners.https.ssl.keystore.password": "${env:STORE_OF_THE_TEST}",
        "rest.extension.classes": "BasicAuthSecurityRestExtension",
        "rest.basic.auth.file": str(users),
        "config.providers": "env",
        "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
        "value.converter.basic.auth.user.info": "${env:REGISTRY_OF_THE_TEST}",
        "run.interval.seconds": "1",
    }


@pytest.mark.budget(40)  # A process of its own, which runs two connectors.
def test_no_secret_of_a_worker_can_be_found(worker, unique_name, tmp_path: Path):
    source = {
        "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
        "connection.url": "jdbc:postgresql://127.0.0.1:1/none",
        "connection.user": "me",
        "connection.password": "${env:DATABASE_OF_THE_TEST}",
        "connection.attempts": "1",
        "mode": "bulk",
        "topic.prefix": f"{unique_name}-",
    }
    seen: list[str] = []
    pem = str(tmp_path / "server.pem")
    with WorkerProcess(tmp_path, worker) as running:
        found = re.search(r"https://\S+:\d+", running.printed)
        assert found is not None

        def send(method: str, path: str, **arguments: object) -> requests.Response:
            answer = requests.request(method, found[0] + path, auth=("ann", USER), verify=pem, timeout=60, **arguments)  # type: ignore[arg-type]
            seen.append(f"{answer.headers} {answer.text}")
            return answer

        assert send("PUT", "/connectors/db/config", json=source).status_code == 201
        wrong = {**source, "poll.interval.ms": "${env:DATABASE_OF_THE_TEST}", "mode": "${env:DATABASE_OF_THE_TEST}"}
        plugin = "/connector-plugins/JdbcSourceConnector/config"
        assert send("PUT", "/connectors/wrong/config", json=wrong).status_code == 400
        assert send("PUT", f"{plugin}/validate", json={**wrong, "name": "wrong"}).status_code == 200
        assert send("PATCH", "/connectors/db/config", json={"mode": "${env:DATABASE_OF_THE_TEST}"}).status_code == 400
        running.wait_until(lambda: "FAILED" in send("GET", "/connectors/db/status").text, "the connector to fail")
        for path in ("", "/config", "/tasks", "/offsets", "/topics"):
            send("GET", f"/connectors/db{path}")
        for path in (
            "/",
            "/health",
            "/connectors?expand=info&expand=status",
            plugin,
            "/admin/loggers",
            "/openapi.json",
            "/metrics",
            "/jmx",
        ):
            assert send("GET", path).status_code == 200
        assert requests.get(found[0], auth=("ann", "wrong"), verify=pem, timeout=60).status_code == 401
        file = tmp_path / "of-the-doctor.json"
        file.write_text(json.dumps(worker))
        for options in ((), ("--json",)):
            done = run_command("doctor", "--deep", "db", "--worker", file, *options)
            assert done.exit_code == 1 and "database" in done.out
            seen += [done.out, done.err]
        seen += [line for _, line in command_lines()]
        assert send("DELETE", "/connectors/db").status_code == 204
    seen.append(running.printed)
    kept = [
        every_record(worker["bootstrap.servers"], worker[f"{kind}.storage.topic"])
        for kind in ("config", "status", "runs")
    ]
    assert all(kept)
    seen += [repr(records) for records in kept]
    assert "${env:DATABASE_OF_THE_TEST}" in "".join(seen), "references are shown and kept"
    assert [(secret, text) for secret in SECRETS for text in seen if secret in text] == []

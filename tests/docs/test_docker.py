"""The form of the container files: no container can be started here."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from airflow_connect import __version__
from airflow_connect.control.worker.worker import WorkerSettings
from airflow_connect.java.properties_file import parse_properties
from tests.docs.pages import ROOT

DOCKER = ROOT / "docker"
COMPOSE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (DOCKER / "Dockerfile").read_text("utf-8")
PINNED = re.compile(r"[a-z0-9./-]+:v?\d+(\.\d+)+(-[a-z0-9.]+)?")
OWN = f"airflow-connect:{__version__}"


def test_compose_has_kafka_an_s3_server_airflow_and_a_worker() -> None:
    assert {"kafka", "s3", "airflow", "worker"} <= SERVICES.keys()
    for name, service in SERVICES.items():
        assert service.keys() <= {
            "image", "build", "command", "entrypoint", "environment", "ports", "volumes", "depends_on", "healthcheck",
            "restart",
        }, name  # fmt: skip


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_image_is_pinned_by_a_version(name: str) -> None:
    image = SERVICES[name]["image"]
    assert PINNED.fullmatch(image)
    assert image == OWN or "build" not in SERVICES[name]


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_ports_are_open_to_this_machine_only(name: str) -> None:
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[name].get("ports", []))


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_dependencies_and_volumes_exist(name: str) -> None:
    service = SERVICES[name]
    for other, condition in service.get("depends_on", {}).items():
        assert other in SERVICES
        assert condition["condition"] != "service_healthy" or "healthcheck" in SERVICES[other]
    for volume in service.get("volumes", []):
        source = volume.split(":")[0]
        assert (DOCKER / source).exists() if source.startswith(".") else source in COMPOSE["volumes"]
    if "build" in service:
        context = (DOCKER / service["build"]["context"]).resolve()
        assert (context / service["build"]["dockerfile"]).exists()


def test_secrets_come_from_the_environment_only() -> None:
    secret = re.compile(r"(KEY|SECRET|PASSWORD)[A-Z_]*$")
    for name, service in SERVICES.items():
        for key, value in service.get("environment", {}).items():
            if secret.search(key):
                assert re.fullmatch(r"\$\{[A-Z0-9_]+(:\?[^}]*)?\}", str(value)), f"{name}: {key}"
    given = re.findall(r"^(\w+)=(.*)$", (DOCKER / "env.example").read_text("utf-8"), re.MULTILINE)
    assert given == [("S3_ACCESS_KEY", ""), ("S3_SECRET_KEY", ""), ("CONNECT_PASSWORD", "")]
    assert (DOCKER / ".gitignore").read_text("utf-8").split() == [".env"]


def test_connections_of_airflow_are_json_after_substitution() -> None:
    environment = SERVICES["airflow"]["environment"]
    connections = {k: v for k, v in environment.items() if k.startswith("AIRFLOW_CONN_")}
    parsed = {k: json.loads(re.sub(r"\$\{\w+\}", "x", v)) for k, v in connections.items()}
    assert parsed["AIRFLOW_CONN_KAFKA_DEFAULT"]["extra"]["bootstrap.servers"] == "kafka:9092"
    assert parsed["AIRFLOW_CONN_AWS_DEFAULT"]["extra"]["endpoint_url"] == "http://s3:7070"


def test_the_workers_file_is_valid_and_lets_nobody_in_without_a_password(tmp_path: Path) -> None:
    (script,) = SERVICES["worker"]["command"]
    given = parse_properties((DOCKER / "worker.properties").read_text("utf-8"))
    assert f"> {given['rest.basic.auth.file']}" in script and "umask 077" in script
    users = tmp_path / "users.properties"
    users.write_text("connect=secret\n")
    users.chmod(0o600)
    settings = WorkerSettings.from_worker({**given, "rest.basic.auth.file": str(users)})
    (listener,) = settings.server.listeners
    assert (listener.port, settings.server.users) == (8083, {"connect": "secret"})


def test_dockerfile_copies_what_exists_and_takes_the_locked_versions() -> None:
    copied = [
        word for line in re.findall(r"^COPY --chown=\S+ (.+)$", DOCKERFILE, re.MULTILINE) for word in line.split()[:-1]
    ]
    assert all((ROOT / path).exists() for path in copied)
    kept = (DOCKER / "Dockerfile.dockerignore").read_text("utf-8")
    assert all(f"!{path}" in kept.splitlines() for path in copied)
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    airflow = re.search(r"^apache-airflow==([\d.]+)", lock, re.MULTILINE)
    spark = re.search(r"^pyspark==([\d.]+)", lock, re.MULTILINE)
    assert airflow and f"FROM apache/airflow:{airflow[1]}-" in DOCKERFILE
    assert spark and DOCKERFILE.count(f"=={spark[1]}") == 2
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (wanted,) = re.findall(r"/opt/airflow-connect\[([\w,-]+)\]", DOCKERFILE)
    assert set(wanted.split(",")) <= project["optional-dependencies"].keys()


def test_script_that_fills_topic_and_bucket_names_what_the_dag_copies() -> None:
    source = (DOCKER / "fill.py").read_text("utf-8")
    assert compile(source, "fill.py", "exec") is not None
    connector = json.loads((Path(ROOT) / "dags" / "meetups-to-s3.json").read_text("utf-8"))
    assert f'BUCKET = "{connector["s3.bucket.name"]}"' in source
    assert connector["topics"] == "meetups"

"""The files of deploy/, as far as they can be checked without systemd, Kubernetes and YARN."""

from __future__ import annotations

import configparser
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from airflow_connect import __version__
from airflow_connect.control.worker.worker import WorkerSettings
from airflow_connect.java.properties_file import parse_properties
from tests.docs.pages import ROOT

DEPLOY = ROOT / "deploy"
PROPERTIES = parse_properties((DEPLOY / "worker.properties").read_text("utf-8"))
VARIABLES = set(re.findall(r"\$\{env:(\w+)\}", " ".join(str(value) for value in PROPERTIES.values())))
WORDS = ["airflow-connect", "worker"]


def test_the_workers_file_is_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    users = tmp_path / "users.properties"
    users.write_text("ann=secret\n")
    users.chmod(0o600)
    values = {"WORKER_HOST": "machine-1", "WORKER_USERS": str(users), "WORKER_SPARK_MASTER": "local[2]"}
    assert values.keys() == VARIABLES
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    settings = WorkerSettings.from_worker(PROPERTIES)
    assert settings.server.worker_id(8083) == "machine-1:8083"
    assert settings.control.group_id == "airflow-connect" and settings.server.users == {"ann": "secret"}


def test_the_unit_of_systemd_has_known_keys_and_every_variable_of_the_workers_file() -> None:
    unit = configparser.RawConfigParser(strict=False, delimiters=("=",))
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    text = (DEPLOY / "airflow-connect-worker.service").read_text("utf-8")
    unit.read_string(text)
    assert unit.sections() == ["Unit", "Service", "Install"]
    assert set(unit["Service"]) == {
        "Type", "User", "Environment", "CacheDirectory", "EnvironmentFile", "ExecStart", "KillMode", "TimeoutStopSec",
        "Restart", "RestartSec", "SuccessExitStatus", "NoNewPrivileges", "ProtectSystem", "ProtectHome", "PrivateTmp",
        "MemoryMax",
    }  # fmt: skip
    assert unit["Service"]["ExecStart"].split()[0].endswith("/airflow-connect")
    assert set(re.findall(r"^Environment=(WORKER_\w+)=", text, re.MULTILINE)) == VARIABLES


def test_kubernetes_runs_pods_with_addresses_of_their_own() -> None:
    service, deployment = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text("utf-8"))
    assert (service["kind"], deployment["kind"]) == ("Service", "Deployment")
    pod: dict[str, Any] = deployment["spec"]["template"]
    labels = deployment["spec"]["selector"]["matchLabels"]
    assert pod["metadata"]["labels"] == labels == service["spec"]["selector"]
    (container,) = pod["spec"]["containers"]
    assert container.keys() == {
        "name", "image", "command", "env", "envFrom", "ports", "readinessProbe", "livenessProbe", "resources",
        "volumeMounts",
    }  # fmt: skip
    assert container["image"] == f"airflow-connect:{__version__}" and container["command"][:2] == WORDS
    probes = [container[f"{kind}Probe"]["httpGet"] for kind in ("readiness", "liveness")]
    assert probes == [{"path": "/health", "port": "rest"}] * 2
    assert {port["name"] for port in container["ports"]} == {"rest"}
    environment = {entry["name"]: entry for entry in container["env"]}
    assert environment.keys() == VARIABLES
    assert environment["WORKER_HOST"]["valueFrom"] == {"fieldRef": {"fieldPath": "status.podIP"}}
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts.keys() == {volume["name"] for volume in pod["spec"]["volumes"]}
    assert environment["WORKER_USERS"]["value"].startswith(f"{mounts['users']}/")
    (users,) = (volume for volume in pod["spec"]["volumes"] if volume["name"] == "users")
    assert users["secret"]["defaultMode"] == 0o440  # others than owner and group are refused
    assert {port["containerPort"] for port in container["ports"]} == {service["spec"]["ports"][0]["port"]} == {8083}


def test_the_service_of_yarn_has_known_fields_and_every_variable() -> None:
    service = json.loads((DEPLOY / "Yarnfile.json").read_text("utf-8"))
    assert service.keys() == {"name", "version", "components"} and service["version"] == __version__
    (component,) = service["components"]
    assert component.keys() == {
        "name", "number_of_containers", "restart_policy", "launch_command", "resource", "configuration",
        "placement_policy",
    }  # fmt: skip
    assert component["restart_policy"] == "ALWAYS" and component["resource"].keys() == {"cpus", "memory"}
    (file,) = component["configuration"]["files"]
    assert component["launch_command"].endswith(f"airflow-connect worker {file['dest_file']}")
    given = set(component["configuration"]["env"]) | set(re.findall(r"\b(WORKER_\w+)=", component["launch_command"]))
    assert given >= VARIABLES

"""`airflow-connect mirror`: which connectors run, in which order, and what is printed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command_line import Done

Cli = Callable[..., Done]
FILE = """
clusters = west, east
west.bootstrap.servers = west:9092
east.bootstrap.servers = east:9092
west->east.enabled = true
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mm2.properties"
    path.write_text(FILE)
    return path


def test_every_connector_of_the_flows_runs_once(cli: Cli, file: Path) -> None:
    done = cli("mirror", file, "--json", "--set", "fake=copy")
    result = json.loads(done.out)
    assert [(one["flow"], one["connector"]) for one in result["result"]["connectors"]] == [
        ("west->east", "MirrorHeartbeatConnector"),
        ("east->west", "MirrorHeartbeatConnector"),
        ("west->east", "MirrorSourceConnector"),
        ("west->east", "MirrorCheckpointConnector"),
    ]
    assert (done.exit_code, result["summary"]) == (0, "4 of 4 connectors done, 80 records.")


def test_failures_name_the_flow_and_the_others_run(cli: Cli, file: Path) -> None:
    file.write_text(FILE + "west->east.fake = away\n")
    done = cli("mirror", file)
    assert done.exit_code == 1
    assert done.out.startswith("✓ east->west MirrorHeartbeatConnector: ")
    assert done.out.count("✓") == 1
    for kind in ("Heartbeat", "Source", "Checkpoint"):
        assert f"west->east Mirror{kind}Connector: " in done.err


def test_plan_runs_nothing(cli: Cli, file: Path) -> None:
    done = cli("mirror", file, "--plan", "--clusters", "west")
    assert (done.exit_code, done.out.splitlines()[0]) == (0, "east->west MirrorHeartbeatConnector")
    result = json.loads(cli("mirror", file, "--plan", "--clusters", "west", "--json").out)
    assert result["summary"] == "1 of 1 connector planned."
    assert result["result"]["connectors"][0]["plan"]["connector"]


def test_wrong_file_is_named_with_its_key(cli: Cli, file: Path) -> None:
    file.write_text(FILE.replace("clusters = west, east", "clusters = west, est"))
    done = cli("mirror", file)
    assert done.exit_code == 2
    assert "est.bootstrap.servers in mm2.properties: the address of cluster est is missing." in done.err

"""Shells complete names of registered connectors, from a worker or from Kafka, and stay silent if neither answers."""

from __future__ import annotations

import socket
import time

import pytest

from airflow_connect.cli.control import target
from airflow_connect.cli.main import build_parser
from airflow_connect.kafka.clients import short_lived

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def stderr_stays(monkeypatch):
    """In a shell's process it is given up for good; here it belongs to the tests."""
    monkeypatch.setattr("os.dup2", lambda *_: None)


def names_for(prefix, *words):
    """What the completer of a command's name offers."""
    arguments = build_parser().parse_args([*words, "x"])
    return target._names(prefix, parsed_args=arguments)


def test_names_come_from_the_worker_or_from_kafka(
    over_kafka, connector_file, unique_name, server, worker_file, monkeypatch
):
    monkeypatch.setattr(target, "COMPLETE_WITHIN_S", 60.0)  # A busy machine may need longer than a user waits.
    sink = {"connector_class": "FileStreamSink", "topics": "t", "file": "x"}
    for name in ("alpha", "beta"):
        file = connector_file(f"{unique_name}-{name}", **sink)
        assert over_kafka("connectors", "create", file, "--state", "STOPPED").exit_code == 0
    url = "http://{}:{}".format(*server.address)
    for words in (["--url", url], ["--worker", str(worker_file)]):
        found = names_for(f"{unique_name}-", "connectors", "pause", *words)
        assert found == [f"{unique_name}-alpha", f"{unique_name}-beta"]
        assert names_for(f"{unique_name}-b", "offsets", "get", *words) == [f"{unique_name}-beta"]


def test_a_server_that_is_away_or_silent_costs_a_bounded_time_and_prints_nothing(capfd, tmp_path, monkeypatch):
    monkeypatch.setattr(target, "COMPLETE_WITHIN_S", 0.5)
    worker = tmp_path / "worker.properties"
    worker.write_text("bootstrap.servers=127.0.0.1:1\n")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        for words in (
            ["--url", "http://127.0.0.1:9"],
            ["--url", url],
            ["--worker", str(worker)],
            ["--url", "nonsense"],
        ):
            began = time.monotonic()
            assert names_for("", "connectors", "pause", *words) == []
            # Without the limit, Kafka would be waited for as long, and the silent server longer.
            assert time.monotonic() - began < short_lived.BOOTSTRAP_TIMEOUT_S
    assert capfd.readouterr().out == ""

"""A Java server that cannot be started leaves nothing but what explains it."""

from __future__ import annotations

import socket
import sys
import tempfile

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.devstack.launching import java_server, port_server
from airflow_connect.devstack.launching.errors import DevStackError
from airflow_connect.errors import JarsError
from airflow_connect.jvm.java import Java


@pytest.fixture
def temporary_folder(tmp_path, monkeypatch):
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("AIRFLOW_CONNECT_CACHE", str(tmp_path / "cache"))
    java = Java(tmp_path / "jdk", "17.0.1", True)
    monkeypatch.setattr(java_server, "find_java", lambda _min_version: java)
    return folder


def test_start_without_jars_leaves_no_folder(temporary_folder, monkeypatch):
    def no_network(lock_name, locks):
        raise JarsError(f"{lock_name} could not be fetched.", code="jars.fetch")

    monkeypatch.setattr(java_server, "fetch_jars", no_network)
    with pytest.raises(JarsError, match="could not be fetched"):
        KafkaBroker.start()
    assert list(temporary_folder.iterdir()) == []


def test_start_that_fails_later_keeps_the_log_that_the_error_names(temporary_folder, monkeypatch, tmp_path):
    """The `java` here is a Python that does not know Java's options, and says so."""
    (tmp_path / "jdk" / "bin").mkdir(parents=True)
    (tmp_path / "jdk" / "bin" / "java").symlink_to(sys.executable)
    monkeypatch.setattr(java_server, "fetch_jars", lambda lock_name, locks: [])
    with pytest.raises(DevStackError, match=r"Kafka 4\.3\.1 ended with exit code") as failed:
        KafkaBroker.start()
    (folder,) = temporary_folder.iterdir()
    assert str(folder / "server.log") in failed.value.message
    assert (folder / "server.log").stat().st_size > 0


def test_port_of_another_program_is_never_taken_for_the_server(temporary_folder, monkeypatch):
    """That program accepts connections, as the server would."""
    monkeypatch.setattr(java_server, "fetch_jars", lambda lock_name, locks: [])
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        monkeypatch.setattr(port_server, "free_ports", lambda count: [port] * count)
        with pytest.raises(DevStackError, match=f"another program listens on port {port}") as failed:
            KafkaBroker.start()
    assert failed.value.code == "devstack.port_taken"
    assert list(temporary_folder.iterdir()) == []

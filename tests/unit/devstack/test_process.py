"""A server process is ready when started and never outlives its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import psutil
import pytest

from airflow_connect.devstack.launching.errors import DevStackError
from airflow_connect.devstack.launching.process import Command, ServerProcess, answers, free_ports, log_tail
from tests.support.waiting import wait_until

REPOSITORY = Path(__file__).parents[3]
LISTEN = """
import socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("listening", flush=True)
while True:
    listener.accept()
"""
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + LISTEN

# Starts a server as a test or the demo does, tells its pid and that of its guard, then does as argv says.
PARENT = """
import os, signal, sys, threading
from pathlib import Path
from airflow_connect.devstack.launching.process import Command, ServerProcess, answers, free_ports
(port,) = free_ports(1)
folder, ending, code = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
argv = [sys.executable, "-c", code, str(port)]
command = Command("server", argv, folder / "log", cleanup=[folder / "data"])
server = ServerProcess.start(command, lambda: answers(port))
print(server.pid, os.getppid(), flush=True)
if ending == "fork" and os.fork() == 0:
    print(os.getpid(), flush=True)
    threading.Event().wait(600)
if ending == "exit":
    sys.exit(0)
threading.Event().wait(600)
"""


def command(tmp_path, code=LISTEN, **options):
    (port,) = free_ports(1)
    argv = [sys.executable, "-c", textwrap.dedent(code), str(port)]
    return Command("test server", argv, tmp_path / "log", **options), lambda: answers(port)


def is_gone(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


@pytest.fixture
def parent(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "file").write_text("x")
    started = []

    def start(ending: str) -> tuple[subprocess.Popen, int]:
        process = subprocess.Popen(
            [sys.executable, "-c", PARENT, str(tmp_path), ending, LISTEN],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        )
        started.append(process)
        return process, int(process.stdout.readline().split()[0])

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def test_start_returns_when_ready_and_stop_ends_the_server(tmp_path):
    what, is_ready = command(tmp_path)
    server = ServerProcess.start(what, is_ready)
    assert is_ready() and server.is_running
    server.stop()
    assert is_gone(server.pid) and not server.is_running
    assert log_tail(tmp_path / "log") == "listening"
    server.stop()


def test_kill_ends_the_server_without_sigterm(tmp_path):
    server = ServerProcess.start(*command(tmp_path, STUBBORN))
    server.kill()
    assert is_gone(server.pid)


def test_stop_of_a_server_that_ignores_sigterm_kills_it_after_the_grace(tmp_path):
    server = ServerProcess.start(*command(tmp_path, STUBBORN, stop_s=0.2))
    server.stop()
    assert is_gone(server.pid)


def test_stop_keeps_the_cleanup_paths(tmp_path):
    (tmp_path / "data").mkdir()
    ServerProcess.start(*command(tmp_path, cleanup=[tmp_path / "data"])).stop()
    assert (tmp_path / "data").is_dir()


def test_start_of_a_server_that_dies_shows_the_end_of_its_log(tmp_path):
    what, is_ready = command(tmp_path, "raise SystemExit('no space left')")
    with pytest.raises(DevStackError, match=r"(?s)test server ended with exit code 1.*no space left") as failed:
        ServerProcess.start(what, is_ready)
    assert failed.value.code == "devstack.start"


def test_start_of_a_program_that_does_not_exist_is_a_start_error(tmp_path):
    with pytest.raises(DevStackError, match="could not be started"):
        ServerProcess.start(Command("nothing", ["/does/not/exist"], tmp_path / "log"), lambda: True)


def test_start_of_a_server_that_is_never_ready_ends_it(tmp_path):
    what, _ = command(tmp_path, start_s=0.5)
    with pytest.raises(DevStackError, match="was not ready within"):
        ServerProcess.start(what, lambda: False)
    running = [p for p in psutil.process_iter(["cmdline"]) if str(what.argv[-1]) in (p.info["cmdline"] or [])]
    assert running == []


def test_server_started_in_a_thread_that_ended_keeps_running(tmp_path):
    servers = []
    what, is_ready = command(tmp_path)
    thread = threading.Thread(target=lambda: servers.append(ServerProcess.start(what, is_ready)))
    thread.start()
    thread.join()
    assert servers[0].is_running and is_ready()
    servers[0].stop()


@pytest.mark.parametrize("ending", ["sigkill", "sigterm", "exit"])
def test_server_ends_with_its_parent_and_leaves_no_data(parent, tmp_path, ending):
    process, server_pid = parent(ending)
    if ending != "exit":
        process.send_signal(signal.SIGKILL if ending == "sigkill" else signal.SIGTERM)
    process.wait()
    wait_until(lambda: is_gone(server_pid), "the server ended")
    wait_until(lambda: not (tmp_path / "data").exists(), "its data was removed")


def test_server_ends_with_its_parent_although_a_fork_holds_the_pipe(parent):
    process, server_pid = parent("fork")
    forked = psutil.Process(int(process.stdout.readline()))
    process.kill()
    process.wait()
    wait_until(lambda: is_gone(server_pid), "the server ended")
    assert forked.is_running()
    forked.kill()


def test_server_ends_when_its_guard_is_killed(tmp_path):
    server = ServerProcess.start(*command(tmp_path))
    psutil.Process(server.pid).parent().kill()
    wait_until(lambda: is_gone(server.pid), "the server ended")
    server.stop()


def test_free_ports_are_different_free_and_not_ephemeral():
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert all(20_000 <= port < 32_000 and not answers(port) for port in ports)


def test_log_tail_of_a_missing_log_says_so(tmp_path):
    assert log_tail(tmp_path / "none") == "(no log)"

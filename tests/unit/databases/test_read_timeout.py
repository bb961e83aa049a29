from __future__ import annotations

import os
import socket
import threading

import pytest

from airflow_connect.databases.read_timeout import ReadTimeout, peer_of, socket_of, sockets_to

LIMIT_S = 30


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_wait_for_a_silent_peer_ends(pair):
    ours, _ = pair
    timeout = ReadTimeout(0.05)
    timeout.add(socket_of(ours))
    with timeout.watching():
        assert ours.recv(1) == b""
    assert timeout.expired
    timeout.close()


def test_answers_begin_the_time_again_and_the_next_read_has_a_time_of_its_own(pair):
    ours, theirs = pair
    timeout = ReadTimeout(LIMIT_S)
    timeout.add(socket_of(ours))
    for _ in range(3):
        with timeout.watching():
            theirs.sendall(b"12")
            assert ours.recv(1) == b"1"
            timeout.progressed()
            assert ours.recv(1) == b"2"
        assert not timeout.expired
    timeout.close()
    assert "read-timeout" not in {thread.name for thread in threading.enumerate()}


def test_socket_that_is_forgotten_stays_open(pair):
    ours, theirs = pair
    others = socket.socketpair()
    timeout = ReadTimeout(0.05)
    timeout.add(socket_of(ours))
    timeout.forget()
    with others[0], others[1]:
        timeout.add(socket_of(others[0]))
        with timeout.watching():
            assert others[0].recv(1) == b""
    timeout.close()
    theirs.sendall(b"1")
    assert ours.recv(1) == b"1"


def test_sockets_to_an_address_are_found_and_nothing_stays_open(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server, (tmp_path / "file").open("w") as file:
        address = server.getsockname()
        with socket.create_connection(address) as first, socket.create_connection(address) as second:
            own = {_leads_to(str(one.fileno())) for one in (first, second, file)}
            assert sockets_to(address) == {first.fileno(), second.fileno()}
            assert peer_of(first.fileno()) == address
            assert peer_of(file.fileno()) is None
            # Of these three: clients of other tests still open and close descriptors of this process.
            assert sum(_leads_to(fd) in own for fd in os.listdir("/dev/fd")) == len(own)


def _leads_to(descriptor: str) -> str:
    try:
        return os.readlink(f"/dev/fd/{descriptor}")
    except FileNotFoundError:  # It has just been closed.
        return ""


def test_connection_without_a_socket_has_none():
    assert socket_of(object()) == set()

"""Progress datagrams from sender to listener, over loopback."""

from __future__ import annotations

import socket

import pytest

from airflow_connect.runtime.driver.progress import ProgressListener
from airflow_connect.runtime.executor.progress import ProgressSender


@pytest.fixture
def events():
    return []


def sums(events):
    return [(event["done"], event["bytes"]) for event in events]


def send(target, task, attempt, records, size):
    sender = ProgressSender(target, task, attempt)
    sender.update(records, size, force=True)
    sender.close()


def test_sum_over_tasks_is_shown_at_the_end_at_the_latest(events):
    with ProgressListener(events.append, "127.0.0.1", 100) as listener:
        send(listener.target, 0, 0, 30, 300)
        send(listener.target, 1, 0, 12, 120)
        send(listener.target, 0, 0, 40, 400)

    assert sums(events)[-1] == (52, 520)
    assert events[-1]["total"] == 100


def test_newer_attempt_starts_again_and_an_older_one_no_longer_counts(events):
    with ProgressListener(events.append, "127.0.0.1", 100) as listener:
        send(listener.target, 0, 0, 30, 300)
        send(listener.target, 0, 1, 5, 50)
        send(listener.target, 0, 0, 60, 600)

    assert sums(events)[-1] == (5, 50)


def test_done_never_exceeds_the_total(events):
    with ProgressListener(events.append, "127.0.0.1", 10) as listener:
        send(listener.target, 0, 0, 11, 1)

    assert events[-1]["done"] == 10


def test_without_a_total_everything_that_is_done_counts(events):
    with ProgressListener(events.append, "127.0.0.1", 0) as listener:
        send(listener.target, 0, 0, 11, 110)
        send(listener.target, 1, 0, 4, 40)

    assert sums(events)[-1] == (15, 150)


def test_nothing_is_shown_when_nothing_came(events):
    with ProgressListener(events.append, "127.0.0.1", 10):
        pass

    assert events == []


def test_forged_and_damaged_datagrams_change_nothing(events):
    report = b'{"task": 0, "attempt": 9, "records": 99, "bytes": 99}'
    with ProgressListener(events.append, "127.0.0.1", 100) as listener:
        token = listener.target["token"].encode()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as forger:
            forger.connect((listener.target["host"], listener.target["port"]))
            for datagram in (
                b"",
                report,
                b"\n" + report,
                b"0" * len(token) + b"\n" + report,
                token[:-1] + b"\n" + report,
                "ü".encode() + b"\n" + report,
                b"[" * 4000,
                token,
                token + b"\n[]",
                token + b"\n" + b"[" * 900,
                token + b'\n{"task": 0, "attempt": 9}',
            ):
                forger.send(datagram)
        send(listener.target, 0, 0, 7, 70)

    assert sums(events) == [(7, 70)]


def test_listener_behind_an_address_that_is_not_its_own_listens_on_all(events):
    with ProgressListener(events.append, "192.0.2.1", 10) as listener:
        assert listener.target["host"] == "192.0.2.1"
        send({**listener.target, "host": "127.0.0.1"}, 0, 0, 3, 30)

    assert sums(events) == [(3, 30)]


def test_listener_with_a_name_that_nobody_knows_starts_all_the_same(events):
    with ProgressListener(events.append, "no-such-host.invalid", 10) as listener:
        send(listener.target, 0, 0, 3, 30)
        send({**listener.target, "host": "127.0.0.1"}, 0, 0, 4, 40)

    assert sums(events) == [(4, 40)]


def test_sender_without_a_target_or_without_a_listener_is_silent():
    silent = ProgressSender({}, 0, 0)
    silent.update(1, 1, force=True)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    unheard = ProgressSender({"host": "127.0.0.1", "port": port, "token": "t"}, 0, 0)
    for count in range(5):  # The refusal of one datagram is told at a later one.
        unheard.update(count, count, force=True)
    unheard.close()
    unheard.update(9, 9, force=True)

    assert silent._socket is None
    assert unheard._socket is None


def test_sender_keeps_quiet_between_two_reports():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ear:
        ear.bind(("127.0.0.1", 0))
        ear.setblocking(False)
        sender = ProgressSender({"host": "127.0.0.1", "port": ear.getsockname()[1], "token": "t"}, 0, 0)
        for count in range(100):
            sender.update(count, count)
        sender.close()
        received = [ear.recv(1000)]
        with pytest.raises(BlockingIOError):
            received.append(ear.recv(1000))

    assert received == [b't\n{"task": 0, "attempt": 0, "records": 0, "bytes": 0, "parts": 0}']

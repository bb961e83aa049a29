"""How far a server has read its log: while it moves, a run goes on; what is not known is said."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from airflow_connect.connectors.java.server_log import POSTGRESQL, STALLED_S, ServerLog

CONFIG = {"database.hostname": "db", "database.password": "word", "slot.name": "s", "database.sslmode": "require"}


class Server:
    """Answers as a connection of psycopg does."""

    def __init__(self, *sent: int | None) -> None:
        self.sent = list(sent)
        self.arguments: dict[str, Any] = {}

    def __call__(self, **arguments: Any) -> Server:
        self.arguments = arguments
        return self

    def execute(self, statement: str, parameters: tuple[str, ...] = ()) -> Server:
        self.row = (self.sent.pop(0),) if parameters == ("s",) else (1000,)
        return self

    def fetchone(self) -> tuple[int | None]:
        return self.row

    def close(self) -> None:
        self.arguments["closed"] = True


def opened(monkeypatch: pytest.MonkeyPatch, server: Server) -> ServerLog:
    monkeypatch.setattr(psycopg, "connect", server)
    log = ServerLog.of(POSTGRESQL, CONFIG, 5.0)
    assert log is not None
    return log


def test_run_goes_on_while_the_server_reads_what_was_there(monkeypatch):
    server = Server(100, 500, 1000, 1200, 1200)
    log = opened(monkeypatch, server)
    # What it has sent last takes a moment to become records.
    assert [log.is_behind(now) for now in (0, 1, 2, 5, 6)] == [True, True, True, True, False]
    log.close()
    assert (server.arguments["sslmode"], server.arguments["port"], server.arguments["closed"]) == (
        "require",
        "5432",
        True,
    )


def test_position_that_does_not_move_is_no_reason_to_wait(monkeypatch):
    log = opened(monkeypatch, Server(100, 100, 100))
    assert [log.is_behind(now) for now in (0, STALLED_S - 1, STALLED_S + 5)] == [True, True, False]
    assert log.unknown == ""


def test_position_that_may_not_be_seen_is_said(monkeypatch):
    log = opened(monkeypatch, Server(None))
    assert not log.is_behind(0)
    assert "may not see the position of the slot s" in log.unknown


def test_server_that_cannot_be_asked_is_said_without_a_secret(monkeypatch):
    def refuse(**_: Any) -> None:
        raise psycopg.OperationalError("password word is wrong")

    monkeypatch.setattr(psycopg, "connect", refuse)
    log = ServerLog(CONFIG, 5.0)
    assert not log.is_behind(0)
    assert log.unknown == "it cannot be asked (OperationalError)"
    log.close()


def test_other_connectors_and_snapshots_need_none(monkeypatch):
    assert ServerLog.of("io.debezium.connector.mysql.MySqlConnector", {}, 5.0) is None
    monkeypatch.setattr(psycopg, "connect", Server(0))
    assert not ServerLog({**CONFIG, "snapshot.mode": "initial_only"}, 5.0).is_behind(0)

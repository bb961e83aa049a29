"""Failover, and what a metastore says in sentences; a stand-in answers, the real one is in tests/integration/hive."""

from __future__ import annotations

import socket
import sys
from typing import Any

import pytest
from pymetastore.hive_metastore import ttypes
from thrift.Thrift import TApplicationException
from thrift.transport.TTransport import TTransportException

from airflow_connect.errors import AccessError, ConfigError, ConnectError, UnavailableError
from airflow_connect.hive.client import MetastoreClient, user_name
from airflow_connect.hive.settings import Address, MetastoreSettings
from airflow_connect.retrying import Timing

ONE, TWO = Address("one", 1), Address("two", 2)


class Answers:
    """Stands in for the connections: each address raises or returns what it was told, call by call."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **by_host: list[Any]) -> None:
        self._by_host = by_host
        self.asked: list[str] = []

        def connected(client: MetastoreClient, address: Address) -> Any:
            return self._connect(client, address)

        monkeypatch.setattr(MetastoreClient, "_connected", connected)

    def _connect(self, client: MetastoreClient, address: Address) -> Any:
        client._address = address
        self.asked.append(address.host)
        answer = self._by_host[address.host].pop(0)
        if isinstance(answer, TTransportException | OSError):
            raise answer
        return type("Service", (), {"get_table": lambda _self, *_: _answer(answer)})()


def _answer(answer: Any) -> Any:
    if isinstance(answer, Exception):
        raise answer
    return answer


def _client(pauses: list[float] | None = None) -> MetastoreClient:
    waited = [] if pauses is None else pauses
    return MetastoreClient(MetastoreSettings((ONE, TWO)), Timing(sleep=waited.append))


def test_next_metastore_is_asked_when_one_does_not_answer_and_is_kept(monkeypatch):
    answers = Answers(monkeypatch, one=[TTransportException(message="refused")], two=["table", "table"])
    client = _client()
    assert client.table("d", "t") == "table"
    assert client.table("d", "t") == "table"
    assert answers.asked == ["one", "two", "two"]


def test_metastores_that_stay_away_are_tried_with_growing_pauses_and_named(monkeypatch):
    away = [OSError("timed out")] * 3
    Answers(monkeypatch, one=list(away), two=list(away))
    pauses: list[float] = []
    with pytest.raises(UnavailableError, match=r"No Hive metastore answered to read the table d\.t") as failed:
        _client(pauses).table("d", "t")
    assert pauses == [1.0, 2.0]
    assert "thrift://one:1: timed out; thrift://two:2: timed out" in failed.value.message
    assert failed.value.code == "hive.unavailable"
    assert failed.value.retriable


def test_table_that_does_not_exist_is_none(monkeypatch):
    Answers(monkeypatch, one=[ttypes.NoSuchObjectException(message="no")])
    assert _client().table("d", "t") is None


@pytest.mark.parametrize(
    ("answer", "kind", "code"),
    [
        (ttypes.MetaException(message="Permission denied: user=x"), AccessError, "hive.forbidden"),
        (ttypes.MetaException(message="Got exception: java.net.ConnectException"), UnavailableError, "hive.failed"),
        (ttypes.InvalidOperationException(message="no such\n  change"), AccessError, "hive.refused"),
        (TApplicationException(TApplicationException.UNKNOWN_METHOD, "Invalid method"), AccessError, "hive.refused"),
    ],
)
def test_refusal_says_who_what_why_and_what_follows(monkeypatch, answer, kind: type[ConnectError], code):
    Answers(monkeypatch, one=[answer])
    with pytest.raises(kind, match=r"The Hive metastore thrift://one:1 would not read the table d\.t: \S") as refused:
        _client().table("d", "t")
    assert refused.value.code == code
    assert "\n" not in refused.value.message
    assert "has published stay" in refused.value.suggestion


def test_server_that_is_no_metastore_counts_as_one_that_does_not_answer():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        settings = MetastoreSettings((Address("127.0.0.1", listener.getsockname()[1]),), timeout_s=0.2, tries=1)
        with pytest.raises(UnavailableError, match=r"time(d )?out"), MetastoreClient(settings) as client:
            client.database_exists("d")


def test_missing_package_is_a_mistake_in_the_configuration(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetastore.hive_metastore", None)
    with pytest.raises(ConfigError, match="pymetastore") as refused:
        MetastoreClient(MetastoreSettings((ONE,)))
    assert refused.value.config_path == "hive.integration"


def test_user_is_hadoops(monkeypatch):
    monkeypatch.setenv("HADOOP_USER_NAME", "loader")
    assert user_name() == "loader"

"""Addresses of an HDFS, and paths of keys."""

from __future__ import annotations

import pickle

import pytest

from airflow_connect.errors import ConfigError
from airflow_connect.stores.hdfs.jvm import _with_host
from airflow_connect.stores.hdfs.settings import HdfsSettings
from airflow_connect.stores.hdfs.store import HdfsStore


@pytest.mark.parametrize(
    ("url", "address", "path"),
    [
        ("hdfs://nn:8020", "hdfs://nn:8020", "/topics/t/f"),
        ("hdfs://nn:8020/", "hdfs://nn:8020", "/topics/t/f"),
        ("hdfs://service/user/connect/", "hdfs://service", "/user/connect/topics/t/f"),
        ("viewfs://cluster/data", "viewfs://cluster", "/data/topics/t/f"),
    ],
)
def test_key_has_its_path_below_the_address(url: str, address: str, path: str) -> None:
    settings = HdfsSettings(url)
    assert settings.address == address
    assert settings.path("topics/t/f") == path
    assert settings.key(path) == "topics/t/f"


@pytest.mark.parametrize("url", ["", "nn:8020", "file:///data", "s3://bucket", "hdfs:///data", "hdfs:nn"])
def test_address_of_something_else_is_refused(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        HdfsSettings(url)
    assert caught.value.config_path == "store.url"
    assert caught.value.message.endswith(".")


def test_store_keeps_its_keytab_to_itself_and_travels() -> None:
    store = HdfsStore(HdfsSettings("hdfs://nn:8020/base/", principal="me@X", keytab="/etc/me.keytab"))
    assert store.name == "hdfs://nn:8020/base"
    assert "me.keytab" not in repr(store)
    assert pickle.loads(pickle.dumps(store)) == store


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("connect/_HOST@REALM", "connect/box.example.org@REALM"),
        ("connect@REALM", "connect@REALM"),
        ("connect/other@REALM", "connect/other@REALM"),
        ("connect/_HOST", "connect/_HOST"),
        ("connect", "connect"),
    ],
)
def test_host_of_a_principal_is_this_machine(given: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.getfqdn", lambda: "Box.Example.ORG")
    assert _with_host(given) == expected

"""Where the metastore is, from keys and hive-site.xml."""

from __future__ import annotations

import pytest

from airflow_connect.errors import ConfigError
from airflow_connect.hive.settings import Address, MetastoreSettings


def _site(folder, **properties: str) -> str:
    entries = "".join(
        f"<property><name>{name.replace('__', '.')}</name><value>{value}</value></property>"
        for name, value in properties.items()
    )
    (folder / "hive-site.xml").write_text(f"<?xml version='1.0'?><configuration>{entries}</configuration>")
    return str(folder)


def test_addresses_of_the_key_win_over_the_file(tmp_path):
    site = _site(tmp_path, hive__metastore__uris="thrift://from-file:1")
    assert MetastoreSettings.from_keys("", site).addresses == (Address("from-file", 1),)
    given = MetastoreSettings.from_keys("thrift://a, thrift://b:10000 ,thrift://[::1]:7/", site)
    assert [str(a) for a in given.addresses] == ["thrift://a:9083", "thrift://b:10000", "thrift://[::1]:7"]


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("5min", 300), ("1500ms", 1.5), ("20s", 20)])
def test_timeout_of_the_file_counts(tmp_path, text, seconds):
    site = _site(tmp_path, hive__metastore__client__socket__timeout=text)
    assert MetastoreSettings.from_keys("thrift://a", site).timeout_s == seconds


def test_timeout_is_hives_own_without_a_file():
    assert MetastoreSettings.from_keys("thrift://a", "").timeout_s == 600


@pytest.mark.parametrize(
    ("uris", "code"),
    [
        ("", "hive.no_address"),
        (" , ", "hive.no_address"),
        ("host:9083", "hive.address"),
        ("thrift://", "hive.address"),
        ("http://a:1", "hive.address"),
        ("thrift://a:x", "hive.address"),
        ("thrift://a/b", "hive.address"),
    ],
)
def test_address_that_is_none_is_refused(uris, code):
    with pytest.raises(ConfigError) as refused:
        MetastoreSettings.from_keys(uris, "")
    assert refused.value.code == code
    assert refused.value.config_path == "hive.metastore.uris"


@pytest.mark.parametrize(
    "properties",
    [
        {"hive__metastore__sasl__enabled": "TRUE"},
        {"hive__metastore__use__SSL": "true"},
        {"metastore__client__thrift__transport__mode": "http"},
    ],
)
def test_security_that_is_not_supported_is_said_before_anything_is_copied(tmp_path, properties):
    with pytest.raises(ConfigError, match="is not supported") as refused:
        MetastoreSettings.from_keys("thrift://a", _site(tmp_path, **properties))
    assert refused.value.code == "hive.security"


@pytest.mark.parametrize("text", [None, "<configuration>", "<!DOCTYPE x><configuration/>"])
def test_file_that_cannot_be_read_is_named(tmp_path, text):
    if text is not None:
        (tmp_path / "hive-site.xml").write_text(text)
    with pytest.raises(ConfigError, match=r"hive-site\.xml cannot be read") as refused:
        MetastoreSettings.from_keys("thrift://a", str(tmp_path))
    assert refused.value.config_path == "hive.conf.dir"


def test_time_that_is_none_is_named(tmp_path):
    with pytest.raises(ConfigError, match="which is not a duration"):
        MetastoreSettings.from_keys("thrift://a", _site(tmp_path, hive__metastore__client__socket__timeout="soon"))

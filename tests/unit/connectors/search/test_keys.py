"""Checks of the configuration, names of indices, and messages."""

from __future__ import annotations

import pytest

from airflow_connect.api.record import Header, SinkRecord
from airflow_connect.connectors.search.config import SearchSinkConfig
from airflow_connect.connectors.search.connector import ElasticsearchSinkConnector
from airflow_connect.connectors.search.documents import DocumentMaker
from airflow_connect.connectors.search.targets import index_name, stream_name
from airflow_connect.errors import ConfigError, DataError
from airflow_connect.proxies import Proxy

BASE = {"name": "s", "connector.class": "ElasticsearchSink", "topics": "t", "connection.url": "http://h:9200"}


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"connection.url": "ftp://h"}, "connection.url"),
        ({"connection.username": "joe"}, "connection.password"),
        ({"connection.api.key": "k", "connection.username": "a", "connection.password": "b"}, "connection.api.key"),
        ({"topic.to.external.resource.mapping": "t:x"}, "topic.to.external.resource.mapping"),
        ({"external.resource.usage": "index"}, "topic.to.external.resource.mapping"),
        (
            {"external.resource.usage": "index", "topic.to.external.resource.mapping": "t:x,u:x"},
            "topic.to.external.resource.mapping",
        ),
        ({"data.stream.type": "logs"}, "data.stream.dataset"),
        ({"data.stream.timestamp.field": "at"}, "data.stream.timestamp.field"),
        ({"data.stream.dataset": "Not-Right", "data.stream.type": "logs"}, "data.stream.dataset"),
        ({"data.stream.type": "logs", "data.stream.dataset": "d", "write.method": "upsert"}, "write.method"),
        (
            {"data.stream.type": "logs", "data.stream.dataset": "d", "behavior.on.null.values": "delete"},
            "behavior.on.null.values",
        ),
        ({"kerberos.user.principal": "me"}, "kerberos.user.principal"),
        ({"batch.size": "0"}, "batch.size"),
    ],
)
def test_wrong_configurations_name_the_key(config, key):
    with pytest.raises(ConfigError) as caught:
        SearchSinkConfig.from_config(BASE | config)
    assert caught.value.config_path == key


def test_pem_files_that_cannot_be_read_are_named():
    tls = {"connection.url": "https://h:9200", "elastic.security.protocol": "SSL"}
    with pytest.raises(ConfigError) as caught:
        _ = SearchSinkConfig.from_config(
            BASE | tls | {"elastic.https.ssl.truststore.location": "/none/ca.pem"}
        ).connection
    assert caught.value.config_path == "elastic.https.ssl.truststore.location"


def test_one_secure_url_makes_all_of_them_secure():
    config = SearchSinkConfig.from_config(BASE | {"connection.url": "https://a/es,b:9201"})
    assert [(n.scheme, n.host, n.port, n.path) for n in config.connection.nodes] == [
        ("https", "a", 443, "/es"),
        ("https", "b", 9201, ""),
    ]


def test_names_of_indices_and_data_streams_are_those_of_confluents_sink():
    assert index_name("Orders") == "orders"
    assert index_name("_x") == index_name("-x") == "x"
    assert index_name("..") == "dotdot"
    assert len(index_name("a" * 249 + "b" * 20)) == 255
    assert stream_name("logs-app", "${topic}", "Clicks") == "logs-app-clicks"
    assert stream_name("logs-app", "eu_${topic}", "Clicks") == "logs-app-eu_clicks"


def test_secrets_are_in_no_text_of_the_configuration():
    raw = BASE | {"connection.username": "joe", "connection.password": "hidden-word"}
    config = SearchSinkConfig.from_config(raw | {"proxy.host": "p", "proxy.username": "u", "proxy.password": "hush"})
    assert "hidden-word" not in repr(config) and "hush" not in repr(config)
    assert config.connection.proxy == Proxy("http://p:8080", "u", "hush")


@pytest.mark.parametrize(
    ("config", "has_effect"),
    [
        ({}, True),
        ({"key.ignore": "true", "topic.key.ignore": "t"}, False),
        ({"topic.key.ignore": "t"}, True),
        ({"write.method": "upsert"}, False),
        ({"data.stream.type": "logs", "data.stream.dataset": "d"}, False),
    ],
    ids=["keys", "offsets", "offsets of one topic", "upserts", "data stream"],
)
def test_header_of_versions_that_has_no_effect_is_named(config, has_effect):
    """Records that are older by their headers replaced newer ones with write.method=upsert, without a word."""
    notes = ElasticsearchSinkConnector.notes_on_config({**BASE, **config, "external.version.header": "v"})
    assert [note[:39] for note in notes] == ([] if has_effect else ["external.version.header has no effect: "])
    assert ElasticsearchSinkConnector.notes_on_config({**BASE, **config}) == ()


def action_with_version(*versions):
    config = SearchSinkConfig.from_config({**BASE, "external.version.header": "v"})
    headers = tuple(Header("v", None, version) for version in versions)
    record = SinkRecord(topic="t", partition=0, offset=7, timestamp=None, key="k", value={"a": 1}, headers=headers)
    return DocumentMaker(config).action(record).lines.split(b"\n")[0]


@pytest.mark.parametrize("given", [5, "5", "+5", "0005"])
def test_versions_in_headers_are_read_as_java_reads_a_long(given):
    assert action_with_version(4, given) == b'{"index":{"_id":"k","version":5,"version_type":"external"}}'


@pytest.mark.parametrize("given", ["1_000", " 5", "", "5.0", 5.5, True, None, b"5", "x", 2**63, str(2**63)])
def test_other_versions_name_the_record(given):
    with pytest.raises(DataError, match=r"^The header v at t-0@7 is not a whole number of 64 bits\."):
        action_with_version(given)


def test_record_without_the_header_of_its_version_is_named():
    with pytest.raises(DataError, match=r"^The record at t-0@7 has no header v, which external\.version\.header names"):
        action_with_version()

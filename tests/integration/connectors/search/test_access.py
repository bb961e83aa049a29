"""Users, API keys, TLS, client certificates, proxies and compression, in front of a real server."""

from __future__ import annotations

import ssl

import pytest

from airflow_connect.connectors.search.client import SearchClient
from airflow_connect.connectors.search.config import SearchSinkConfig
from airflow_connect.errors import AccessError, UnavailableError
from tests.support.copies.jdbc_sink_tasks import record
from tests.support.copies.search_sink import SearchTask, documents
from tests.support.servers.certificates import encrypted, self_signed
from tests.support.servers.search_proxy import ForwardProxy, search_proxy

pytestmark = pytest.mark.integration
BASIC = {"connection_username": "joe", "connection_password": "sëcret:1"}
BASIC_HEADER = "Basic am9lOnPDq2NyZXQ6MQ=="
API_KEY = {"connection_api_key": "a2V5OmlkMTIz"}


def rows(topic, count=100):
    return [record(n, {"n": n}, key=f"k{n}", topic=topic) for n in range(count)]


def wanted(count=100):
    return {f"k{n}": {"n": n} for n in range(count)}


def tls_server(pem, clients=None):
    """The context of a server with a certificate; with `clients`, it demands one that these authorities signed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    if clients is not None:
        context.load_verify_locations(clients)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


@pytest.mark.parametrize(("login", "header"), [(BASIC, BASIC_HEADER), (API_KEY, "ApiKey a2V5OmlkMTIz")])
def test_login_is_accepted_for_every_request_and_a_wrong_one_is_named(opensearch, unique_name, login, header):
    with search_proxy(opensearch.ports[0]) as proxy:
        proxy.logins = (header,)
        SearchTask(proxy.url, unique_name, **login).write(rows(unique_name))
        assert {sent.get("authorization") for sent in proxy.headers} == {header}
        proxy.logins = ("Basic somebody-else",)
        with pytest.raises(AccessError) as refused:
            SearchTask(proxy.url, unique_name, **login).write(rows(unique_name))
    assert documents(opensearch, unique_name) == wanted()
    assert refused.value.code == "search.denied" and "unable to authenticate user" in refused.value.message
    assert not any(secret in str(refused.value) for secret in ("sëcret", header, "a2V5OmlkMTIz"))


def test_login_that_ends_in_the_middle_fails_the_task_and_not_after_repetitions(opensearch, unique_name):
    with search_proxy(opensearch.ports[0]) as proxy:
        proxy.logins = (BASIC_HEADER,)

        def fault(number, _path):
            if number == 2:
                proxy.logins = ("expired",)

        proxy.fault = fault
        exact = {"batch_size": "20", "max_in_flight_requests": "1", "linger_ms": "600000"}
        task = SearchTask(proxy.url, unique_name, **BASIC, **exact)
        with pytest.raises(AccessError):
            task.write(rows(unique_name))
        assert len(proxy.bodies) == 2
    assert sorted(documents(opensearch, unique_name)) == sorted(f"k{n}" for n in range(40))


def test_tls_with_an_authority_of_ones_own(opensearch, unique_name, tmp_path):
    pem = self_signed(tmp_path)
    with search_proxy(opensearch.ports[0], tls=tls_server(pem)) as proxy:
        config = {"elastic_security_protocol": "SSL", "elastic_https_ssl_truststore_location": str(pem)}
        SearchTask(proxy.url, unique_name, **config, **BASIC).write(rows(unique_name))
        assert documents(opensearch, unique_name) == wanted()
        with pytest.raises(UnavailableError) as unknown:
            SearchTask(proxy.url, unique_name, max_retries="0").write(rows(unique_name))
    assert unknown.value.code == "search.unavailable" and "certificate verify failed" in unknown.value.message


def test_server_with_the_certificate_of_another_host_is_refused_unless_names_are_not_compared(
    opensearch, unique_name, tmp_path
):
    pem = self_signed(tmp_path)
    with search_proxy(opensearch.ports[0], tls=tls_server(pem)) as proxy:
        url = proxy.url.replace("127.0.0.1", "localhost")
        config = {"elastic_security_protocol": "SSL", "elastic_https_ssl_truststore_location": str(pem)}
        with pytest.raises(UnavailableError, match=r"(IP address|Hostname) mismatch|doesn't match"):
            SearchTask(url, unique_name, **config, max_retries="0").write(rows(unique_name))
        any_name = {"elastic_https_ssl_endpoint_identification_algorithm": ""}
        SearchTask(url, unique_name, **config, **any_name).write(rows(unique_name))
    assert documents(opensearch, unique_name) == wanted()


def test_server_that_demands_a_client_certificate_gets_the_one_of_the_key_store(opensearch, unique_name, tmp_path):
    for name in ("server", "client"):
        (tmp_path / name).mkdir()
    pem, client = self_signed(tmp_path / "server"), self_signed(tmp_path / "client")
    locked = tmp_path / "client" / "locked.pem"
    locked.write_bytes(encrypted(client, "door"))
    with search_proxy(opensearch.ports[0], tls=tls_server(pem, clients=client)) as proxy:
        config = {"elastic_security_protocol": "SSL", "elastic_https_ssl_truststore_location": str(pem)}
        with pytest.raises(UnavailableError):
            SearchTask(proxy.url, unique_name, **config, max_retries="0").write(rows(unique_name))
        own = {
            "elastic_https_ssl_keystore_location": str(locked), "elastic_https_ssl_key_password": "door",
        }  # fmt: skip
        SearchTask(proxy.url, unique_name, **config, **own).write(rows(unique_name))
    assert documents(opensearch, unique_name) == wanted()


def test_only_the_authorities_of_the_trust_store_are_trusted(opensearch, tmp_path):
    """The HTTP layer would add the public ones to them."""
    pem = self_signed(tmp_path)
    with search_proxy(opensearch.ports[0], tls=tls_server(pem)) as proxy:
        config = {"elastic_security_protocol": "SSL", "elastic_https_ssl_truststore_location": str(pem)}
        connection = SearchSinkConfig.from_config(SearchTask(proxy.url, "t", **config).config).connection
        client = SearchClient(connection)
        assert client.call("GET", "/").is_success
        client.close()
    assert connection.tls is not None and connection.tls.cert_store_stats()["x509"] == 1


@pytest.mark.parametrize("is_secure", [False, True])
def test_http_proxy_with_a_login_is_used_for_every_request(opensearch, unique_name, tmp_path, is_secure):
    pem = self_signed(tmp_path)
    tls = tls_server(pem) if is_secure else None
    with search_proxy(opensearch.ports[0], tls=tls) as server, ForwardProxy("Basic am9lOmh1c2g=") as forward:
        config = {"proxy_host": "127.0.0.1", "proxy_port": str(forward.port), "proxy_username": "joe"}
        if is_secure:
            config |= {"elastic_security_protocol": "SSL", "elastic_https_ssl_truststore_location": str(pem)}
        SearchTask(server.url, unique_name, **config, proxy_password="hush").write(rows(unique_name))
        address = server.url.partition("://")[2]
        commands = {"CONNECT"} if is_secure else {"GET", "PUT", "POST"}
        assert set(forward.targets) == {f"{command} {address}" for command in commands}
        with pytest.raises((AccessError, UnavailableError)) as refused:
            SearchTask(server.url, unique_name, **config, proxy_password="wrong", max_retries="0").write(
                rows(unique_name)
            )
    assert "407" in refused.value.message and "wrong" not in refused.value.message
    assert documents(opensearch, unique_name) == wanted()


def test_requests_are_compressed_if_that_is_asked_for(opensearch, unique_name):
    with search_proxy(opensearch.ports[0]) as proxy:
        SearchTask(proxy.url, unique_name, connection_compression="true").write(rows(unique_name))
        bulk = next(headers for headers in proxy.headers if headers.get("content-type") == "application/x-ndjson")
        assert bulk["content-encoding"] == "gzip" and all(body.startswith(b"\x1f\x8b") for body in proxy.bodies)
    assert documents(opensearch, unique_name) == wanted()

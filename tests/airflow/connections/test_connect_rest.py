"""What the client of Kafka Connect's REST API does with answers that a healthy cluster rarely gives."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from airflow.sdk import Connection

from airflow_connect.control.client.rest import ConnectRest
from airflow_connect.errors import AccessError, ConfigError, ConnectError, UnavailableError
from airflow_connect.hooks.kafka_connect import rest_of
from airflow_connect.retrying import Timing

Handler = Callable[[httpx.Request], httpx.Response]


def rest(handler: Handler, *urls: str) -> ConnectRest:
    """A client whose pauses take no time: its clock counts them."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    client = httpx.Client(transport=httpx.MockTransport(handler))
    return ConnectRest(urls or ("http://w:8083",), client, retry_s=30, timing=Timing(lambda: now[0], sleep))


def answers(*given: tuple[int, Any]) -> Handler:
    """These answers, one after another; the last one again and again."""
    left = list(given)

    def answer(request: httpx.Request) -> httpx.Response:
        status, body = left.pop(0) if len(left) > 1 else left[0]
        return httpx.Response(status, json=body)

    return answer


REBALANCING = (409, {"error_code": 409, "message": "Cannot complete request momentarily due to stale configuration"})


def test_request_is_repeated_while_the_cluster_rebalances() -> None:
    leaderless = (500, {"message": "The leader of the group is unknown"})
    assert rest(answers(REBALANCING, REBALANCING, leaderless, (200, ["a"]))).names() == ["a"]


def test_rebalance_without_end_is_given_up_with_its_reason() -> None:
    with pytest.raises(UnavailableError, match=r"GET /connectors within 30 s.*409: Cannot complete request"):
        rest(answers(REBALANCING)).names()


def test_redirect_is_not_followed_because_requests_carry_secrets() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.url.host == "w"
        return httpx.Response(307, headers={"location": "http://elsewhere/connectors"})

    with pytest.raises(ConfigError, match="a redirect \\(status 307\\), which is not followed") as refused:
        rest(answer).apply("orders", {"connection.password": "secret"})
    assert refused.value.code == "kafka_connect.redirect"
    assert not rest_of(Connection(conn_id="c", conn_type="kafka_connect", host="http://w"))._client.follow_redirects


def test_second_worker_is_asked_when_the_first_does_not_answer() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.host == "one":
            raise httpx.ConnectError("connection refused")
        return httpx.Response(200, json=["a"])

    assert rest(answer, "http://one:8083", "http://two:8083").names() == ["a"]


def test_worker_that_never_answers_is_named() -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("connection refused")

    with pytest.raises(UnavailableError, match=r"http://w:8083 gave no answer \(ConnectError: connection refused\)"):
        rest(refuse).names()


@pytest.mark.parametrize(
    ("status", "kind"), [(401, AccessError), (403, AccessError), (400, ConfigError), (500, UnavailableError)]
)
def test_refusal_has_the_message_of_the_cluster(status: int, kind: type[ConnectError]) -> None:
    with pytest.raises(kind, match=f"GET /connectors with status {status}: no way"):
        rest(answers((status, {"message": "no way"}))).names()


def test_answer_of_a_proxy_that_is_not_json_is_quoted() -> None:
    with pytest.raises(ConfigError, match="status 405: <h1>Not here</h1>"):
        rest(lambda request: httpx.Response(405, text="<h1>Not here</h1>")).names()


@pytest.mark.parametrize("page", [{"text": "default backend - 404"}, {"json": {"message": "no Route matched"}}])
@pytest.mark.parametrize("ask", [lambda r: r.config("c"), lambda r: r.status("c"), lambda r: r.delete("c")])
def test_missing_page_of_a_proxy_is_no_missing_connector(
    ask: Callable[[ConnectRest], object], page: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError, match="with status 404: ") as caught:
        ask(rest(lambda request: httpx.Response(404, **page)))
    assert caught.value.code == "kafka_connect.answer"


def test_login_page_with_status_200_is_no_answer() -> None:
    with pytest.raises(ConfigError, match="is not JSON, so it does not come from Kafka Connect"):
        rest(lambda request: httpx.Response(200, text="<html>login</html>")).names()


def test_secret_that_the_cluster_quotes_is_hidden() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        status = 404 if request.method == "GET" else 400
        return httpx.Response(status, json={"error_code": status, "message": "bad value opensesame1"})

    with pytest.raises(ConfigError) as caught:
        rest(answer).apply("c", {"connection.password": "opensesame1"})
    assert "opensesame1" not in str(caught.value) and "bad value [hidden]" in str(caught.value)


def test_missing_connector_is_told_apart_from_an_old_cluster() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        known = {"/connectors": ["orders"], "/": {"version": "3.4.0"}}
        found = known.get(request.url.path)
        missing = {"error_code": 404, "message": "HTTP 404"}
        return httpx.Response(404, json=missing) if found is None else httpx.Response(200, json=found)

    with pytest.raises(ConfigError, match=r"no connector called order. Did you mean orders"):
        rest(answer).pause("order")
    with pytest.raises(ConfigError, match=r"Kafka Connect 3.4.0 does not know /offsets of connector 'orders'"):
        rest(answer).offsets("orders")


@pytest.mark.parametrize(
    ("fields", "urls"),
    [
        ({"host": "w"}, ["http://w:8083"]),
        ({"host": "a,b", "port": 8443, "schema": "https"}, ["https://a:8443", "https://b:8443"]),
        ({"host": "https://proxy/connect/"}, ["https://proxy/connect"]),
        ({"host": "https://proxy/connect", "port": 8443}, ["https://proxy:8443/connect"]),
        ({"host": "http://a:1, b:2", "port": 3}, ["http://a:1", "http://b:2"]),
    ],
    ids=["bare", "two", "as-written", "port", "own-ports"],
)
def test_addresses_of_a_connection(fields: dict[str, Any], urls: list[str]) -> None:
    assert rest_of(Connection(conn_id="c", conn_type="kafka_connect", **fields))._urls == urls


def test_login_and_headers_of_a_connection_are_sent() -> None:
    extra = json.dumps({"headers": {"X-Tenant": "a"}, "verify": "false", "timeout": "5"})
    connection = Connection(
        conn_id="c", conn_type="kafka_connect", host="w", login="me", password="opensesame1", extra=extra
    )
    client = rest_of(connection)._client
    assert client.headers["X-Tenant"] == "a"
    assert client.timeout.read == 5
    assert isinstance(client.auth, httpx.BasicAuth)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "Connection 'c' has no host"),
        ({"host": "w", "extra": '{"verify": "/no/such/file"}'}, "Connection 'c' cannot be used"),
        ({"host": "w", "extra": '{"timeout": "soon"}'}, "Connection 'c' cannot be used.*soon"),
    ],
    ids=["no-host", "no-file", "no-number"],
)
def test_connection_that_cannot_be_used_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        rest_of(Connection(conn_id="c", conn_type="kafka_connect", **fields))

"""Where a signed request goes when it is redirected, and where it never goes."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_connect.errors import ConfigError
from airflow_connect.stores.s3.file_system import S3FileSystem
from airflow_connect.stores.s3.http.redirects import Address, redirected
from tests.support.servers.s3_interceptor import Answer, S3Interceptor, times
from tests.unit.stores.s3.s3_clients import SECRETS, requests, settings

CREATED = Answer(200, b"<R><UploadId>u1</UploadId></R>")
AMAZON = "http://s3.eu-west-1.amazonaws.com"
CHINA = "http://s3.cn-north-1.amazonaws.com.cn"


def moved_to(address: str, status: int = 307) -> Answer:
    return Answer(status, headers={"location": f"{address}/k?uploads=&token=secret-in-location"})


def hosts(proxy: S3Interceptor) -> list[str]:
    return [seen.headers["host"] for seen in proxy.seen]


@pytest.mark.parametrize(
    ("home", "moved", "path"),
    [
        (AMAZON, "http://bucket.s3-gztb4pa9sq.amazonaws.com", "/k"),
        (AMAZON, "http://bucket.s3.eu-west-1.amazonaws.com", "/k"),
        (AMAZON, "http://s3-eu-west-1.amazonaws.com/bucket", "/bucket/k"),
        (AMAZON, "http://s3.amazonaws.com/bucket", "/bucket/k"),
        (AMAZON, "http://bucket.s3.dualstack.eu-central-1.amazonaws.com", "/k"),
        (CHINA, "http://bucket.s3.cn-northwest-1.amazonaws.com.cn", "/k"),
        ("http://s3-fips.us-gov-west-1.amazonaws.com", "http://bucket.s3-fips.us-gov-east-1.amazonaws.com", "/k"),
        ("http://s3.eusc-de-east-1.amazonaws.eu", "http://bucket.s3.eusc-de-east-1.amazonaws.eu", "/k"),
    ],
)
def test_redirect_as_amazon_makes_them_is_followed_and_signed_for_the_other_host(
    home: str, moved: str, path: str
) -> None:
    with S3Interceptor(times(1, moved_to(moved)), times(1, CREATED)) as proxy:
        assert requests(home, proxy_url=proxy.url).create_upload("k", {}, {}) == "u1"
    first, second = proxy.seen
    assert hosts(proxy) == [home.removeprefix("http://"), moved.removeprefix("http://").partition("/")[0]]
    assert (second.path, second.query) == (path, "uploads=")
    assert first.headers["authorization"] != second.headers["authorization"]


@pytest.mark.parametrize(
    ("home", "moved"),
    [
        (CHINA, "http://evil.com.cn"),
        (CHINA, "http://bucket.s3.cn-north-1.evil.com.cn"),
        (CHINA, "http://bucket.s3.eu-west-1.amazonaws.com"),
        (AMAZON, "http://bucket.s3.cn-north-1.amazonaws.com.cn"),
        (AMAZON, "http://bucket.s3.us-gov-west-1.amazonaws.com"),
        (AMAZON, "http://evil.com"),
        (AMAZON, "http://evilamazonaws.com"),
        (AMAZON, "http://s3.evilamazonaws.com"),
        (AMAZON, "http://other.s3.eu-west-1.amazonaws.com"),
        (AMAZON, "http://ec2-203-0-113-7.eu-west-1.compute.amazonaws.com"),
        (AMAZON, "http://s3-1234567890.eu-west-1.elb.amazonaws.com"),
        (AMAZON, "http://s3.eu-west-1.elb.amazonaws.com"),
        (AMAZON, "http://me:you@bucket.s3.eu-west-1.amazonaws.com"),
        (AMAZON, "http://bucket.s3.eu-west-1.amazonaws.com:8080"),
        (AMAZON, "https://bucket.s3.eu-west-1.amazonaws.com"),
        (AMAZON, "http://[bucket"),
        (AMAZON, ""),
        (AMAZON, "http://s3.eu-west-1.amazonaws.com"),
        ("http://s3.example.com", "http://b.s3-eu.example.com"),
        ("http://s3.example.com", "http://s3.example.com"),
        ("http://s3.example.com", "http://s3.eu-west-1.amazonaws.com"),
        ("http://192.0.2.7", "http://192.1.2.7"),
    ],
)
def test_redirect_to_another_host_is_refused_and_nothing_is_sent_there(home: str, moved: str) -> None:
    with S3Interceptor(times(9, moved_to(moved))) as proxy, pytest.raises(ConfigError) as caught:
        requests(home, proxy_url=proxy.url).create_upload("k", {}, {})
    assert hosts(proxy) == [home.removeprefix("http://")]
    assert (caught.value.code, caught.value.config_path) == ("s3.redirect", "store.url")
    assert not [secret for secret in (*SECRETS, "secret-in-location", "me:you") if secret in str(caught.value)]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_of_any_kind_says_where_it_leads(status: int) -> None:
    away = moved_to("https://store.example:9000", status)
    with S3Interceptor(times(9, away)) as proxy, pytest.raises(ConfigError) as caught:
        requests("http://store.example:9000", proxy_url=proxy.url).create_upload("k", {}, {})
    assert len(proxy.seen) == 1
    assert "was redirected to https://store.example:9000, which is not followed" in caught.value.message
    assert caught.value.suggestion == "If the bucket is served at https://store.example:9000, set store.url to it."


def test_redirects_in_a_circle_end_after_one() -> None:
    away, back = "http://bucket.s3-1.amazonaws.com", "http://bucket.s3.eu-west-1.amazonaws.com"
    answers = [times(1, moved_to(away)), times(9, moved_to(back))]
    with S3Interceptor(*answers) as proxy, pytest.raises(ConfigError, match="was redirected to"):
        requests(AMAZON, proxy_url=proxy.url).create_upload("k", {}, {})
    assert len(proxy.seen) == 2


def test_redirect_from_tls_to_plain_http_is_not_followed() -> None:
    home = Address("https", "s3.eu-west-1.amazonaws.com", "/bucket")
    assert redirected(home, "bucket", "http://bucket.s3.eu-west-1.amazonaws.com/k") is None
    moved = redirected(home, "bucket", "https://bucket.s3.eu-west-1.amazonaws.com/k")
    assert moved == Address("https", "bucket.s3.eu-west-1.amazonaws.com", "")


def test_file_source_does_not_follow_a_redirect_to_another_host() -> None:
    changes: dict[str, Any] = {"part_retries": 0}
    with S3Interceptor(times(9, moved_to("http://evil.com.cn"))) as proxy, pytest.raises(ConfigError) as caught:
        S3FileSystem(settings(CHINA, proxy_url=proxy.url, **changes)).find("s3://bucket/k")
    assert (hosts(proxy), caught.value.code) == (["s3.cn-north-1.amazonaws.com.cn"], "s3.redirect")

"""Retries, redirects, proxies and headers of single requests."""

from __future__ import annotations

import base64
import socket
import subprocess
import sys

import pytest

from airflow_connect.errors import AccessError, ConfigError, ConnectError, UnavailableError
from airflow_connect.stores.s3.requests import S3Requests
from tests.support.servers.s3_interceptor import Answer, Dropped, S3Interceptor, error, times
from tests.unit.stores.s3.s3_clients import SECRETS, requests, transport

CREATED = Answer(200, b"<R><UploadId>u1</UploadId></R>")
PART = Answer(200, headers={"etag": '"e1"'})


@pytest.mark.parametrize(
    "failure",
    [
        error(500, "InternalError"),
        error(503, "SlowDown"),
        error(429, "TooManyRequests"),
        error(400, "RequestTimeout"),
        error(200, "InternalError"),
        Answer(502, b"<html>"),
        Dropped,
        Answer(200, b"<R><Uplo", declared=40),
        Answer(200, b"<R><UploadId>u"),
        Answer(200, b"<html><body>Welcome</body></html>"),
        Answer(200),
    ],
    ids=str,
)
def test_create_after_failures_within_the_retries_succeeds(failure: Answer | type[Dropped]) -> None:
    pauses: list[float] = []
    with S3Interceptor(times(3, failure), times(1, CREATED)) as server:
        made = S3Requests(transport(server.url, pauses)).create_upload("k", {}, {})
    assert made == "u1"
    assert len(pauses) == 3
    assert len(server.seen) == 4


def test_part_without_etag_is_sent_again() -> None:
    with S3Interceptor(times(1, Answer(200)), times(1, PART)) as server:
        assert requests(server.url).upload_part("k", "u1", 7, b"bytes") == "e1"
    assert [(seen.query, seen.body) for seen in server.seen] == [("partNumber=7&uploadId=u1", b"bytes")] * 2


def test_create_failing_for_ever_says_what_where_and_how_often() -> None:
    with S3Interceptor(times(99, error(503, "SlowDown"))) as server, pytest.raises(UnavailableError) as caught:
        requests(server.url, part_retries=2).create_upload("t/k", {}, {})
    assert str(caught.value).startswith("CreateMultipartUpload of s3://bucket/t/k at ")
    assert "failed 3 times. Last failure: 503 SlowDown" in str(caught.value)
    assert caught.value.retriable


def test_create_nobody_listening_is_unavailable() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(UnavailableError, match=r"ConnectionRefusedError"):
        requests(f"http://127.0.0.1:{port}").create_upload("k", {}, {})


def test_create_server_silent_is_unavailable_after_the_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(UnavailableError, match="TimeoutError"):
            requests(url, read_timeout_ms=50, part_retries=1).create_upload("k", {}, {})


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (error(403, "AccessDenied"), AccessError, "Grant s3:PutObject"),
        (error(400, "ExpiredToken"), AccessError, "have expired"),
        (error(404, "NoSuchBucket"), AccessError, "Create bucket bucket"),
        (error(301, "PermanentRedirect", x_amz_bucket_region="eu-1"), ConfigError, "s3.region=eu-1"),
    ],
)
def test_create_refused_is_not_retried_and_shows_no_secret(
    answer: Answer, kind: type[ConnectError], words: str
) -> None:
    with S3Interceptor(times(9, answer)) as server, pytest.raises(kind, match=words) as caught:
        requests(server.url).create_upload("k", {}, {})
    assert len(server.seen) == 1
    assert not [secret for secret in SECRETS if secret in f"{caught.value!r} {caught.value}"]


def test_proxy_with_password_is_used_and_authenticated() -> None:
    with S3Interceptor(times(1, CREATED)) as proxy:
        made = S3Requests(
            transport(
                "http://store.example:9000",
                proxy_url=proxy.url,
                proxy_user="me",
                proxy_password="proxy-secret",
            )
        )
        assert made.create_upload("a b", {}, {}) == "u1"
    seen = proxy.seen[0]
    assert (seen.path, seen.headers["host"]) == ("/bucket/a%20b", "store.example:9000")
    assert base64.b64decode(seen.headers["proxy-authorization"].split()[1]) == b"me:proxy-secret"


def test_create_sends_every_option_as_a_signed_header() -> None:
    options = {"sse_name": "aws:kms", "sse_kms_key_id": "key-1", "acl": "bucket-owner-full-control"}
    with S3Interceptor(times(1, CREATED)) as server:
        requests(server.url, **options).create_upload("k", {"content-encoding": "gzip"}, {"connect-run-id": "r"})
    headers = server.seen[0].headers
    expected = {
        "x-amz-server-side-encryption": "aws:kms",
        "x-amz-server-side-encryption-aws-kms-key-id": "key-1",
        "x-amz-acl": "bucket-owner-full-control",
        "content-encoding": "gzip",
        "x-amz-meta-connect-run-id": "r",
        "x-amz-security-token": "static-token",
    }
    signed = headers["authorization"].split("SignedHeaders=")[1].split(",")[0].split(";")
    assert {name: headers[name] for name in expected} == expected
    assert set(expected) <= set(signed)


def test_customer_key_goes_with_create_part_complete_and_head() -> None:
    answers = [CREATED, PART, Answer(200, b"<R><ETag>e</ETag></R>"), Answer(200, headers={"etag": '"e"'})]
    with S3Interceptor(*(times(1, answer) for answer in answers)) as server:
        client = requests(server.url, sse_name="AES256", sse_customer_key=SECRETS[3])
        client.upload_part("k", client.create_upload("k", {}, {}), 1, b"x")
        client.complete_upload("k", "u1", [(1, "e1")], replacing=None)
        client.head_object("k")
    name = "x-amz-server-side-encryption-customer-"
    keys = {seen.headers[f"{name}key"] for seen in server.seen}
    assert len(server.seen) == 4
    assert [base64.b64decode(key).decode() for key in keys] == [SECRETS[3]]
    assert "x-amz-server-side-encryption" not in server.seen[0].headers


def test_digest_of_a_part_is_sent_only_on_demand() -> None:
    with S3Interceptor(times(2, PART)) as server:
        requests(server.url).upload_part("k", "u", 1, b"x")
        requests(server.url, send_digest=True).upload_part("k", "u", 1, b"x")
    digest = bytes.fromhex("9dd4e461268c8034f5c8564e155c67a6")  # md5 of "x"
    assert [seen.headers.get("content-md5") for seen in server.seen] == [None, base64.b64encode(digest).decode()]


def test_list_uploads_follows_markers_and_stops_at_a_repeated_one() -> None:
    page = (
        b"<R><Bucket>b</Bucket><IsTruncated>true</IsTruncated><NextKeyMarker>k</NextKeyMarker>"
        b"<NextUploadIdMarker>m</NextUploadIdMarker><Upload><Key>k</Key><UploadId>u</UploadId>"
        b"<Initiated>2026-11-21T00:00:00.000Z</Initiated></Upload></R>"
    )
    with S3Interceptor(times(9, Answer(200, page))) as server:
        found = list(requests(server.url).list_uploads("p/"))
    assert [(upload.key, upload.upload_id, upload.started_ms) for upload in found] == [("k", "u", 1795219200000)] * 2
    assert "key-marker=k&max-uploads=1000&prefix=p%2F&upload-id-marker=m&uploads=" in server.seen[1].query


def test_proxy_away_names_the_failure() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        proxy = f"http://me:proxy-secret@127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(UnavailableError, match=r"ProxyError|NewConnectionError") as caught:
        requests("http://store.example", proxy_url=proxy, part_retries=1).create_upload("k", {}, {})
    assert "proxy-secret" not in str(caught.value)


def test_proxy_of_an_unknown_kind_is_a_config_error() -> None:
    with pytest.raises(ConfigError) as caught:
        requests("http://store.example", proxy_url="socks9://me:proxy-secret@p:1").create_upload("k", {}, {})
    assert caught.value.config_path == "s3.proxy.url"
    assert "proxy-secret" not in str(caught.value)


def test_importing_both_roles_loads_no_heavy_library() -> None:
    code = "import sys, airflow_connect.stores.s3.staging, airflow_connect.stores.s3.publish; "
    code += "print({'boto3', 'botocore', 'urllib3', 'requests', 'pyarrow'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"

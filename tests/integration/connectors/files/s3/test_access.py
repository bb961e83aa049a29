"""Credentials from everywhere, and what is said before the copy when something is missing."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import boto3
import pytest

from airflow_connect.runtime.driver.entry import run_connector
from airflow_connect.runtime.spec import RunSpec
from tests.integration.connectors.files.s3.objects import contents
from tests.support.copies.s3 import Sink
from tests.support.servers.s3_interceptor import Answer, S3Interceptor, Seen, error, times

pytestmark = pytest.mark.integration

WITHOUT_KEYS = {"aws.access.key.id": None, "aws.secret.access.key": None}


@pytest.fixture
def sink(make_topic, produce, make_sink):
    """A sink with one record to copy."""
    topic = make_topic()
    produce(topic, [(0, None, "1")])
    return make_sink(topic)


def run_with(sink: Sink, aws: dict[str, str], **changes: Any) -> Any:
    spec = RunSpec(sink.connector(**changes), sink.worker(), aws=aws)
    return run_connector(spec, sink.events.append, sink.engine)


def test_keys_of_the_environment_are_used_when_the_connector_has_none(sink, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", sink.s3.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", sink.s3.secret_key)

    sink.run(**WITHOUT_KEYS)

    assert list(contents(sink).values()) == [[1]]


def test_airflow_connection_gives_keys_region_and_address(sink):
    connection = {
        "access_key_id": sink.s3.access_key, "secret_access_key": sink.s3.secret_key, "region": "eu-west-1",
        "endpoint_url": sink.s3.endpoint_url,
    }  # fmt: skip

    report = run_with(sink, connection, **WITHOUT_KEYS, **{"store.url": None, "s3.region": None})

    assert report.status == "done", report.error
    assert list(contents(sink).values()) == [[1]]


def test_no_credentials_anywhere_says_where_to_put_them(sink, monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))

    report = sink.try_run(**WITHOUT_KEYS)

    assert (report.status, report.error["code"]) == ("failed", "s3.no_credentials")
    for place in ("aws.access.key.id", "Airflow", "AWS_*"):
        assert place in report.error["suggestion"]


@pytest.mark.parametrize("source", ["connector", "connection"])
def test_role_is_assumed_and_its_keys_sign(sink, moto_url, monkeypatch, source):
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", moto_url)
    boto3.client(
        "s3", endpoint_url=moto_url, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b"
    ).create_bucket(Bucket=sink.bucket)
    role = "arn:aws:iam::123456789012:role/copy"
    given: dict[str, Any] = {
        "s3.credentials.provider.class": "io.confluent.connect.s3.auth.AwsAssumeRoleCredentialsProvider",
        "s3.credentials.provider.sts.role.arn": role,
        "s3.credentials.provider.sts.role.session.name": "nightly",
        "s3.credentials.provider.sts.role.external.id": "ext",
    }
    connection = {"access_key_id": "base", "secret_access_key": "secret"}
    if source == "connection":
        given, connection = {}, {**connection, "role_arn": role, "external_id": "ext"}
    with S3Interceptor(upstream=moto_url) as server:
        region = {"store.url": server.url, "s3.region": "us-east-1"}
        report = run_with(sink, connection, **WITHOUT_KEYS, **region, **given)

    assert report.status == "done", report.error
    assert {seen.headers["authorization"].partition("Credential=")[2][:4] for seen in server.seen} == {"ASIA"}
    assert all(seen.headers["x-amz-security-token"] for seen in server.seen)


def failed_before_the_copy(sink: Sink, code: str, **given: Any) -> dict[str, Any]:
    """The error of a run that started no task and left nothing."""
    report = sink.try_run(**given)
    assert report.status == "failed"
    assert (report.error["code"], sink.engine.jobs) == (code, 0)
    assert sink.s3.secret_key not in json.dumps(report.to_json())
    return report.error


def test_wrong_secret_and_unknown_key_are_called_wrong_credentials(sink):
    wrong = failed_before_the_copy(sink, "s3.credentials_wrong", **{"aws.secret.access.key": "wrong-secret"})
    unknown = failed_before_the_copy(sink, "s3.credentials_wrong", **{"aws.access.key.id": "nobody"})

    assert wrong["configPath"] == unknown["configPath"] == "aws.access.key.id"
    assert "wrong-secret" not in json.dumps(wrong)
    assert (sink.keys(), sink.uploads()) == ([], [])


def test_missing_bucket_is_named(sink):
    found = failed_before_the_copy(sink, "s3.no_bucket", **{"s3.bucket.name": "no-such-bucket-here"})

    assert found["configPath"] == "s3.bucket.name"
    assert "no-such-bucket-here" in found["suggestion"]


@pytest.mark.parametrize(
    "answer",
    [
        Answer(
            400,
            b"<Error><Code>AuthorizationHeaderMalformed</Code><Message>m</Message><Region>eu-north-1</Region></Error>",
        ),
        Answer(301, b"<Error><Code>PermanentRedirect</Code></Error>", {"x-amz-bucket-region": "eu-north-1"}),
    ],
    ids=["400", "301"],
)
def test_bucket_in_another_region_is_said_with_both_regions(sink, answer):
    with S3Interceptor(times(99, answer)) as server:
        found = failed_before_the_copy(sink, "s3.region", **{"store.url": server.url, "s3.region": "us-west-2"})

    assert "eu-north-1" in found["message"] and "us-west-2" in found["message"]
    assert found["suggestion"] == "Set s3.region=eu-north-1."


def denied(method: str, query: str) -> Any:
    """403 to requests of this kind, the real server's answers to all others."""

    def rule(seen: Seen, _: Any) -> Answer | None:
        return error(403, "AccessDenied") if seen.method == method and query in seen.query else None

    return rule


@pytest.mark.parametrize(
    ("method", "query", "permission"),
    [
        ("POST", "uploads", "s3:PutObject"),
        ("DELETE", "uploadId", "s3:AbortMultipartUpload"),
        ("HEAD", "", "s3:ListBucket"),
    ],
)
def test_missing_permission_is_named_before_the_copy(sink, s3, method, query, permission):
    with S3Interceptor(denied(method, query), upstream=s3.endpoint_url) as server:
        found = failed_before_the_copy(sink, "s3.forbidden", **{"store.url": server.url})

    assert permission in found["suggestion"]
    assert sink.bucket in found["message"]


def test_permission_to_list_uploads_is_only_needed_for_sweeping(sink, s3, caplog):
    with S3Interceptor(denied("GET", "uploads"), upstream=s3.endpoint_url) as server:
        sink.run(**{"store.url": server.url})

    assert list(contents(sink).values()) == [[1]]
    assert "cannot be swept" in caplog.text and "s3:ListBucketMultipartUploads" in caplog.text


def test_nobody_at_the_address_is_worth_a_retry(sink):
    with S3Interceptor() as server:
        url = server.url
    report = sink.try_run(**{"store.url": url, "s3.part.retries": "0"})

    assert (report.status, report.error["retriable"]) == ("failed", True)
    assert url.partition("://")[2] in report.error["message"]


def test_throttling_is_retried_as_often_as_configured(make_topic, produce, make_sink, s3):
    topic = make_topic()
    produce(topic, [(0, None, "1")])
    busy = error(503, "SlowDown")
    with S3Interceptor(upstream=s3.endpoint_url) as server:
        sink = make_sink(topic, **{"store.url": server.url, "s3.retry.backoff.ms": "1"})
        server.rules[:] = [times(2, busy, method="PUT")]
        refused = sink.try_run(**{"s3.part.retries": "1"})
        nothing_visible = sink.keys()
        server.rules[:] = [times(2, busy, method="PUT")]
        done = dataclasses.replace(sink).try_run(**{"s3.part.retries": "2"})

    assert (refused.status, refused.error["code"], nothing_visible) == ("failed", "s3.unavailable", [])
    assert done.status == "done", done.error
    assert list(contents(sink).values()) == [[1]]
    assert sink.uploads() == []

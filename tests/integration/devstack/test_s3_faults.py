"""The fault proxy before the real S3 server: what a client sees, and what the server did meanwhile."""

from __future__ import annotations

import time

import pytest
from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as ClientConnectionError

from tests.devstack.s3_faults import Fault, Rule, S3FaultProxy

pytestmark = pytest.mark.integration

NO_RETRY = {"retries": {"total_max_attempts": 1, "mode": "standard"}}
MIB = 1 << 20


@pytest.fixture
def proxy(s3):
    with S3FaultProxy.start(s3.endpoint_url) as running:
        yield running


@pytest.fixture
def client(s3, proxy):
    with_proxy = s3.client(proxy.endpoint_url, **NO_RETRY)
    yield with_proxy
    with_proxy.close()


def keys(s3, bucket):
    return [entry["Key"] for entry in s3.client().list_objects_v2(Bucket=bucket).get("Contents", [])]


def test_without_rules_requests_pass_and_signatures_hold(s3, proxy, client, bucket):
    body = bytes(range(256)) * (6 * MIB // 256)
    key = "a=b/c d/é+&.json"
    upload = client.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
    part = client.upload_part(Bucket=bucket, Key=key, UploadId=upload, PartNumber=1, Body=body)
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    client.complete_multipart_upload(Bucket=bucket, Key=key, UploadId=upload, MultipartUpload=parts)
    assert client.get_object(Bucket=bucket, Key=key)["Body"].read() == body
    assert client.head_object(Bucket=bucket, Key=key)["ContentLength"] == len(body)
    assert keys(s3, bucket) == [key]
    assert [request.operation for request in proxy.seen()] == [
        "CreateMultipartUpload",
        "UploadPart",
        "CompleteMultipartUpload",
        "GetObject",
        "HeadObject",
    ]
    assert {request.key for request in proxy.seen()} == {key}


def test_wrong_secret_through_the_proxy_is_refused_by_the_server(s3, proxy, bucket):
    import boto3

    stranger = boto3.client(
        "s3",
        endpoint_url=proxy.endpoint_url,
        aws_access_key_id=s3.access_key,
        aws_secret_access_key="wrong",
        region_name=s3.region,
    )
    with pytest.raises(ClientError) as refused:
        stranger.put_object(Bucket=bucket, Key="k", Body=b"x")
    stranger.close()
    assert refused.value.response["Error"]["Code"] == "SignatureDoesNotMatch"


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [(Fault.SLOW_DOWN, 503, "SlowDown"), (Fault.INTERNAL_ERROR, 500, "InternalError")],
)
def test_error_answer_carries_s3_code_and_nothing_is_stored(s3, proxy, client, bucket, fault, status, code):
    rule = proxy.add(Rule(fault, operation="PutObject"))
    with pytest.raises(ClientError) as failed:
        client.put_object(Bucket=bucket, Key="k", Body=b"x" * MIB)
    assert failed.value.response["ResponseMetadata"]["HTTPStatusCode"] == status
    assert failed.value.response["Error"]["Code"] == code
    assert keys(s3, bucket) == []
    client.put_object(Bucket=bucket, Key="k", Body=b"x")
    assert keys(s3, bucket) == ["k"]
    assert rule.hits == 1


def test_drop_closes_before_the_server_sees_anything(s3, proxy, client, bucket):
    proxy.add(Rule(Fault.DROP, operation="PutObject"))
    with pytest.raises((ClientConnectionError, HTTPClientError)):
        client.put_object(Bucket=bucket, Key="k", Body=b"x" * MIB)
    assert keys(s3, bucket) == []


def test_lost_answer_is_an_error_although_the_server_did_it(s3, proxy, client, bucket):
    proxy.add(Rule(Fault.LOSE_ANSWER, operation="PutObject"))
    with pytest.raises((ClientConnectionError, HTTPClientError)):
        client.put_object(Bucket=bucket, Key="k", Body=b"x")
    assert keys(s3, bucket) == ["k"]


def test_cut_answer_of_get_ends_in_the_middle(proxy, client, bucket):
    client.put_object(Bucket=bucket, Key="k", Body=b"x" * MIB)
    proxy.add(Rule(Fault.CUT_ANSWER, operation="GetObject"))
    body = client.get_object(Bucket=bucket, Key="k")["Body"]
    with pytest.raises((ClientConnectionError, HTTPClientError)):
        body.read()


def test_cut_answer_without_body_breaks_the_status_line(s3, proxy, client, bucket):
    proxy.add(Rule(Fault.CUT_ANSWER, operation="PutObject"))
    with pytest.raises((ClientConnectionError, HTTPClientError)):
        client.put_object(Bucket=bucket, Key="k", Body=b"x")
    assert keys(s3, bucket) == ["k"]


def test_damaged_body_is_refused_by_the_server_and_the_refusal_arrives(s3, proxy, client, bucket):
    rule = proxy.add(Rule(Fault.DAMAGE, operation="PutObject"))
    with pytest.raises(ClientError) as refused:
        client.put_object(Bucket=bucket, Key="k", Body=b"x" * MIB)
    assert refused.value.response["Error"]["Code"] in ("XAmzContentSHA256Mismatch", "BadDigest")
    assert (rule.hits, keys(s3, bucket)) == (1, [])


def test_delay_passes_the_request_on_later(s3, proxy, client, bucket):
    proxy.add(Rule(Fault.NONE, operation="PutObject", delay_s=0.4))
    started = time.monotonic()
    client.put_object(Bucket=bucket, Key="k", Body=b"x")
    assert time.monotonic() - started >= 0.4
    assert keys(s3, bucket) == ["k"]


def test_rule_with_predicate_skip_and_times_hits_only_those(proxy, client, bucket):
    hit_keys = []
    rule = proxy.add(
        Rule(
            Fault.SLOW_DOWN,
            matches=lambda request: request.key.startswith("a"),
            skip=1,
            times=2,
            on_hit=lambda request: hit_keys.append(request.key),
        )
    )
    outcomes = {}
    for key in ("a1", "b1", "a2", "a3", "a4"):
        try:
            client.put_object(Bucket=bucket, Key=key, Body=b"x")
            outcomes[key] = "stored"
        except ClientError as error:
            outcomes[key] = error.response["Error"]["Code"]
    assert outcomes == {"a1": "stored", "b1": "stored", "a2": "SlowDown", "a3": "SlowDown", "a4": "stored"}
    assert (rule.hits, hit_keys) == (2, ["a2", "a3"])


def test_clear_forgets_rules_and_requests(proxy, client, bucket):
    proxy.add(Rule(Fault.SLOW_DOWN, times=None))
    proxy.clear()
    client.put_object(Bucket=bucket, Key="k", Body=b"x")
    assert [(request.operation, request.fault) for request in proxy.seen()] == [("PutObject", Fault.NONE)]


def test_retrying_client_recovers_from_two_slow_downs(s3, proxy, bucket):
    patient = s3.client(proxy.endpoint_url, retries={"total_max_attempts": 3, "mode": "standard"})
    proxy.add(Rule(Fault.SLOW_DOWN, operation="PutObject", times=2))
    patient.put_object(Bucket=bucket, Key="k", Body=b"x")
    patient.close()
    assert len(proxy.seen("PutObject")) == 3
    assert keys(s3, bucket) == ["k"]

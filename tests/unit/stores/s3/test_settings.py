"""Settings reject what would fail later, build addresses, and never show a secret."""

from __future__ import annotations

import base64
import pickle
from types import SimpleNamespace
from typing import Any

import boto3
import botocore.awsrequest
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError

from airflow_connect.errors import ConfigError
from airflow_connect.stores.s3.partitions import partitions
from airflow_connect.stores.s3.settings import S3Credentials, S3Settings
from tests.unit.stores.s3.s3_clients import SECRETS

EVERY_SECRET = S3Settings(
    bucket="b",
    sse_name="AES256",
    sse_customer_key=SECRETS[3],
    proxy_url="http://u:proxy-secret@proxy:1",
    proxy_password=SECRETS[2],
    credentials=S3Credentials("id", SECRETS[0], SECRETS[1], role_external_id=SECRETS[4]),
)


def test_repr_with_every_secret_shows_none() -> None:
    shown = repr(EVERY_SECRET)
    assert "bucket='b'" in shown
    assert not [secret for secret in SECRETS if secret in shown]


def test_pickle_round_trip_keeps_everything() -> None:
    assert pickle.loads(pickle.dumps(EVERY_SECRET)) == EVERY_SECRET


@pytest.mark.parametrize(
    ("changes", "url"),
    [
        ({}, "https://s3.us-west-2.amazonaws.com/b"),
        ({"path_style": False}, "https://b.s3.us-west-2.amazonaws.com"),
        ({"path_style": False, "wan_mode": True}, "https://b.s3-accelerate.amazonaws.com"),
        ({"region": "cn-north-1"}, "https://s3.cn-north-1.amazonaws.com.cn/b"),
        ({"region": "eusc-de-east-1"}, "https://s3.eusc-de-east-1.amazonaws.eu/b"),
        ({"region": "eusc-de-south-9"}, "https://s3.eusc-de-south-9.amazonaws.eu/b"),
        ({"region": "us-iso-east-1", "path_style": False}, "https://b.s3.us-iso-east-1.c2s.ic.gov"),
        ({"region": "moon-1"}, "https://s3.moon-1.amazonaws.com/b"),
        ({"endpoint": "http://h:9000/"}, "http://h:9000/b"),
        ({"endpoint": "minio.example"}, "https://minio.example/b"),
        ({"endpoint": "https://h/base", "path_style": False}, "https://b.h/base"),
    ],
)
def test_base_url_of_addressing_modes(changes: dict[str, Any], url: str) -> None:
    assert S3Settings(bucket="b", **changes).base_url == url


def botocore_url(region: str, bucket: str, *, path_style: bool, wan_mode: bool) -> str:
    """Where botocore's client would send a request for a bucket, or its error."""
    client = boto3.client(
        "s3",
        region_name=region,
        aws_access_key_id="a",
        aws_secret_access_key="b",
        config=Config(
            s3={
                "addressing_style": "path" if path_style else "virtual",
                "use_accelerate_endpoint": wan_mode,
                "us_east_1_regional_endpoint": "regional",
            }
        ),
    )
    sent: list[str] = []

    def stop(request: Any, **_: Any) -> Any:
        sent.append(request.url)
        return botocore.awsrequest.AWSResponse(request.url, 200, {}, SimpleNamespace(stream=tuple))

    client.meta.events.register("before-send.s3.HeadObject", stop)
    try:
        client.head_object(Bucket=bucket, Key="k")
    finally:
        client.close()
    return sent[0].removesuffix("/k")


def test_every_region_of_s3_has_the_address_that_botocore_has() -> None:
    session = boto3.Session()
    regions = {
        region
        for partition in session.get_available_partitions()
        for region in session.get_available_regions("s3", partition_name=partition)
    }
    assert {"eusc-de-east-1", "us-iso-east-1", "us-isob-east-1", "us-isof-south-1", "us-gov-west-1"} < regions
    # A client takes 30 ms to make: every region is asked in one way, one of each partition in all.
    for region in sorted(regions):
        ours = S3Settings(bucket="bucket", region=region, path_style=False).base_url
        assert ours == botocore_url(region, "bucket", path_style=False, wan_mode=False), region
    for partition in partitions():
        region = min(partition.regions & regions)
        for bucket, path_style in (("bucket", True), ("dotted.bucket", False)):
            ours = S3Settings(bucket=bucket, region=region, path_style=path_style).base_url
            assert ours == botocore_url(region, bucket, path_style=path_style, wan_mode=False)


@pytest.mark.parametrize(
    ("region", "bucket"),
    [("eu-west-1", "bucket"), ("cn-north-1", "bucket"), ("us-gov-west-1", "bucket"), ("eu-west-1", "dotted.bucket")],
)
def test_acceleration_is_accepted_where_botocore_accepts_it(region: str, bucket: str) -> None:
    try:
        expected = botocore_url(region, bucket, path_style=False, wan_mode=True)
    except BotoCoreError:
        expected = ""
    given: dict[str, Any] = {"bucket": bucket, "region": region, "path_style": False, "wan_mode": True}
    if expected:
        assert S3Settings(**given).base_url == expected
        return
    with pytest.raises(ConfigError) as caught:
        S3Settings(**given)
    assert (caught.value.code, caught.value.config_path) == ("s3.wan_mode", "s3.wan.mode")


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"bucket": ""}, "s3.bucket.name"),
        ({"bucket": "a/b"}, "s3.bucket.name"),
        ({"wan_mode": True}, "s3.wan.mode"),
        ({"part_size_bytes": 5 * 1024 * 1024 - 1}, "s3.part.size"),
        ({"part_retries": -1}, "s3.part.retries"),
        ({"retry_backoff_ms": -1}, "s3.retry.backoff.ms"),
        ({"acl": "everybody"}, "s3.acl.canned"),
        ({"sse_name": "rot13"}, "s3.ssea.name"),
        ({"sse_name": "AES256", "sse_customer_key": "short"}, "s3.sse.customer.key"),
        ({"endpoint": "ftp://h"}, "store.url"),
        ({"endpoint": "http://user:pass@h"}, "store.url"),
    ],
)
def test_settings_that_cannot_work_name_the_key(changes: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        S3Settings(**{"bucket": "b", **changes})
    assert caught.value.config_path == key
    assert "pass" not in str(caught.value).replace("password", "")


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({"access_key_id": "id"}, "aws.secret.access.key"),
        ({"secret_access_key": "static-secret"}, "aws.access.key.id"),
    ],
)
def test_credentials_with_half_a_pair_name_the_other(given: dict[str, str], missing: str) -> None:
    with pytest.raises(ConfigError) as caught:
        S3Credentials(**given)
    assert caught.value.config_path == missing
    assert "static-secret" not in str(caught.value)


@pytest.mark.parametrize("text", [SECRETS[3], base64.b64encode(SECRETS[3].encode()).decode()])
def test_customer_key_bytes_verbatim_or_base64_are_equal(text: str) -> None:
    given = S3Settings(bucket="b", sse_name="AES256", sse_customer_key=text)
    assert given.customer_key_bytes() == SECRETS[3].encode()

"""Settings reject what would fail later, build addresses, and never show a secret."""

from __future__ import annotations

import base64
import pickle
from typing import Any

import pytest

from airflow_connect.api.errors import ConfigError
from airflow_connect.stores.s3_settings import S3Credentials, S3Settings
from tests.unit.stores.s3_clients import SECRETS

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
        ({"endpoint": "http://h:9000/"}, "http://h:9000/b"),
        ({"endpoint": "minio.example"}, "https://minio.example/b"),
        ({"endpoint": "https://h/base", "path_style": False}, "https://b.h/base"),
    ],
)
def test_base_url_of_addressing_modes(changes: dict[str, Any], url: str) -> None:
    assert S3Settings(bucket="b", **changes).base_url == url


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

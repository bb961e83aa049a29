"""Options that s3proxy does not know: tags, ACL, encryption. moto plays the server; this proves no exactly-once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from airflow_connect.stores.s3.publish import S3Publisher
from airflow_connect.stores.s3.settings import S3Credentials, S3Settings
from airflow_connect.stores.s3.staging import S3Stager
from tests.integration.stores.conftest import PART_BYTES, identity

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """A moto server."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def client(endpoint: str, unique_name: str) -> S3Client:
    """boto3, with a bucket called like the test."""
    made = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="id",
        aws_secret_access_key="s",
    )
    made.create_bucket(Bucket=unique_name)
    return made


def copied(endpoint: str, bucket: str, **options: Any) -> None:
    """Stage and publish `t/k` with two parts."""
    settings = S3Settings(
        bucket=bucket,
        region="us-east-1",
        endpoint=endpoint,
        part_size_bytes=PART_BYTES,
        credentials=S3Credentials("id", "s"),
        **options,
    )
    stager = S3Stager(settings, "run-1")
    file = stager.open(identity("t/k"))
    file.write(bytes(PART_BYTES + 1))
    staged = file.close(10, 7).result(30)
    stager.close()
    publisher = S3Publisher(settings, "t/")
    publisher.preflight()
    publisher.publish([staged], lambda _: None)
    assert list(publisher.list_staged(["t/"])) == []


def test_tags_on_the_object_are_confluents(endpoint: str, client: S3Client, unique_name: str) -> None:
    copied(endpoint, unique_name, object_tagging=True, extra_tags=(("team", "a b"),))
    tags = client.get_object_tagging(Bucket=unique_name, Key="t/k")["TagSet"]
    found = {tag["Key"]: tag["Value"] for tag in tags}
    assert found == {"startOffset": "0", "endOffset": "9", "recordCount": "7", "team": "a b"}


def test_kms_encryption_is_set_with_its_key(endpoint: str, client: S3Client, unique_name: str) -> None:
    copied(endpoint, unique_name, sse_name="aws:kms", sse_kms_key_id="key-1")
    head = client.head_object(Bucket=unique_name, Key="t/k")
    assert (head["ServerSideEncryption"], head["SSEKMSKeyId"]) == ("aws:kms", "key-1")


def test_canned_acl_is_set(endpoint: str, client: S3Client, unique_name: str) -> None:
    copied(endpoint, unique_name, acl="public-read")
    grants = client.get_object_acl(Bucket=unique_name, Key="t/k")["Grants"]
    assert "READ" in [grant["Permission"] for grant in grants if grant["Grantee"].get("URI")]

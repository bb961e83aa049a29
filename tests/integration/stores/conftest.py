"""A bucket of the real server, and ways to it: direct, and through a proxy that spoils what it is told to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from airflow_connect.api.staging import StagedFile
from airflow_connect.devstack.s3 import S3Server
from airflow_connect.stores.s3.publish import S3Publisher
from airflow_connect.stores.s3.settings import S3Credentials, S3Settings
from airflow_connect.stores.s3.staging import S3Stager
from airflow_connect.stores.store import FileIdentity
from tests.devstack.s3_faults import S3FaultProxy

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

PART_BYTES = 5 * 1024 * 1024


@dataclass
class Store:
    """The store under test, and boto3 to look at what came of it."""

    settings: S3Settings
    direct: S3Client
    make_stager: Callable[..., S3Stager]

    def publisher(self, **changes: Any) -> S3Publisher:
        """A publisher, with changed settings."""
        from dataclasses import replace

        return S3Publisher(replace(self.settings, **changes), "t/")

    def stage(self, *keys: str, data: bytes = b"bytes", **changes: Any) -> list[StagedFile]:
        """Stage equal content under each key."""
        stager = self.make_stager(**changes)
        futures = []
        for key in keys:
            file = stager.open(identity(key))
            file.write(data)
            futures.append(file.close(10, 10))
        return [future.result(30) for future in futures]

    def uploads(self) -> list[str]:
        """Keys of all unfinished uploads, as boto3 sees them."""
        listed = self.direct.list_multipart_uploads(Bucket=self.settings.bucket)
        return [upload["Key"] for upload in listed.get("Uploads", [])]

    def objects(self) -> dict[str, bytes]:
        """All visible objects with their content."""
        listed = self.direct.list_objects_v2(Bucket=self.settings.bucket).get("Contents", [])
        return {entry["Key"]: self.read(entry["Key"]) for entry in listed}

    def read(self, key: str) -> bytes:
        """Content of an object."""
        return self.direct.get_object(Bucket=self.settings.bucket, Key=key)["Body"].read()


def identity(key: str) -> FileIdentity:
    """A file of t-0 that starts at offset 0."""
    return FileIdentity(key, "t", 0, 0, "application/json")


def store_at(s3: S3Server, bucket: str, endpoint: str) -> Iterator[Store]:
    """The store on `bucket` at an address of the server, until the iterator goes on."""
    from dataclasses import replace

    stagers: list[S3Stager] = []
    settings = S3Settings(
        bucket=bucket,
        region=s3.region,
        endpoint=endpoint,
        part_size_bytes=PART_BYTES,
        retry_backoff_ms=1,
        credentials=S3Credentials(s3.access_key, s3.secret_key),
    )

    def make_stager(**changes: Any) -> S3Stager:
        stagers.append(S3Stager(replace(settings, **changes), "run-1"))
        return stagers[-1]

    yield Store(settings, s3.client(), make_stager)
    for stager in stagers:
        stager.close()


@pytest.fixture
def store(s3: S3Server, bucket: str) -> Iterator[Store]:
    """The store on a new bucket."""
    yield from store_at(s3, bucket, s3.endpoint_url)


@pytest.fixture
def faults(s3: S3Server) -> Iterator[S3FaultProxy]:
    """A proxy before the server; add rules to it."""
    with S3FaultProxy.start(s3.endpoint_url) as proxy:
        yield proxy


@pytest.fixture
def faulty_store(s3: S3Server, bucket: str, faults: S3FaultProxy) -> Iterator[Store]:
    """The store on a new bucket behind `faults`; its boto3 client goes to the server itself."""
    yield from store_at(s3, bucket, faults.endpoint_url)

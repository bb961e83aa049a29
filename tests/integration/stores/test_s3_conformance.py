"""S3 does what every store must do, on a real server."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from airflow_connect.devstack.launching.process import free_ports
from airflow_connect.devstack.s3 import S3Server
from airflow_connect.stores.s3.settings import S3Credentials, S3Settings
from airflow_connect.stores.s3.store import S3Store
from airflow_connect.stores.store import Store
from airflow_connect.testing import StoreConformance

pytestmark = [pytest.mark.integration, pytest.mark.soak]


class TestS3Store(StoreConformance):
    many_files: ClassVar[int] = 3000 if os.environ.get("AIRFLOW_CONNECT_SOAK") else 150
    # An upload is created under its final name, and an ETag says how an object was uploaded, not what it holds.
    names_hold_end: ClassVar[bool] = False
    compares_content: ClassVar[bool] = False

    @pytest.fixture
    def target(self, s3: S3Server, bucket: str) -> tuple[S3Server, str]:
        """A new bucket."""
        return s3, bucket

    def open_store(self, target: Any) -> Store:
        server, bucket = target
        return S3Store(
            S3Settings(
                bucket=bucket,
                region=server.region,
                endpoint=server.endpoint_url,
                part_size_bytes=5 << 20,
                retry_backoff_ms=1,
                credentials=S3Credentials(server.access_key, server.secret_key),
            )
        )

    def visible(self, target: Any) -> Mapping[str, bytes]:
        server, bucket = target
        client = server.client()
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        keys = [entry["Key"] for page in pages for entry in page.get("Contents", ())]
        return {key: client.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys}

    def put_foreign(self, target: Any, key: str, data: bytes) -> None:
        server, bucket = target
        server.client().put_object(Bucket=bucket, Key=key, Body=data)

    def unusable_stores(self, target: Any) -> Iterable[Store]:
        (nobody,) = free_ports(1)
        store = self.open_store(target)
        assert isinstance(store, S3Store)
        wrong = replace(store.settings, part_retries=0)
        yield S3Store(replace(wrong, bucket="there-is-no-such-bucket"))
        yield S3Store(replace(wrong, credentials=S3Credentials("nobody", "wrong")))
        yield S3Store(replace(wrong, endpoint=f"http://127.0.0.1:{nobody}"))

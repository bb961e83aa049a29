"""Settings and clients for tests that talk to a scripted server."""

from __future__ import annotations

from typing import Any

from airflow_connect.api.staging import StagedFile
from airflow_connect.retrying import Timing
from airflow_connect.stores.s3.http.transport import S3Transport
from airflow_connect.stores.s3.requests import S3Requests
from airflow_connect.stores.s3.settings import S3Credentials, S3Settings

SECRETS = ("static-secret", "static-token", "proxy-secret", "customer-secret-of-32-characters", "external-secret")


def settings(endpoint: str, **changes: Any) -> S3Settings:
    """Settings of bucket `bucket` at `endpoint`."""
    credentials = S3Credentials("static-id", "static-secret", "static-token")
    return S3Settings(**{"bucket": "bucket", "endpoint": endpoint, "credentials": credentials, **changes})


def transport(endpoint: str, pauses: list[float] | None = None, **changes: Any) -> S3Transport:
    """A transport that does not wait; `pauses` gets what it would have waited, in seconds."""
    waited = [] if pauses is None else pauses
    return S3Transport(settings(endpoint, **changes), timing=Timing(sleep=waited.append))


def requests(endpoint: str, **changes: Any) -> S3Requests:
    """Operations that retry without waiting."""
    return S3Requests(transport(endpoint, **changes))


def staged(key: str = "t/k", parts: int = 1, size_bytes: int = 10) -> StagedFile:
    """A staged file as a stager would report it."""
    etags = [[number, f"{number:032x}"] for number in range(1, parts + 1)]
    token = {"upload_id": f"u-{key}", "parts": etags, "file_id": f"f-{key}"}
    return StagedFile(key, "t", 0, 0, 10, 10, size_bytes, token)

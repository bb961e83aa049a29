"""Checks before anything is copied: the bucket exists, is in this region, and grants the needed permissions."""

from __future__ import annotations

import logging
import uuid

from airflow_connect.errors import ConnectError
from airflow_connect.stores.s3.requests import S3Requests
from airflow_connect.stores.store import PROBE_NAME

log = logging.getLogger(__name__)


def check_bucket(requests: S3Requests, prefix: str) -> None:
    """Start and abort an upload, request its object, list uploads: five requests, nothing visible.

    Order matters: only replies with a body distinguish a wrong key from a missing permission, and HEAD has none.

    Args:
        requests: the bucket.
        prefix: where the run will write; permissions may be limited to it.

    Raises:
        AccessError: credentials, bucket or permission are missing; the message names which.
        ConfigError: the bucket is in another region.
        UnavailableError: the address does not answer.
    """
    key = f"{prefix}{PROBE_NAME}-{uuid.uuid4().hex[:8]}"
    upload_id = requests.create_upload(key, {}, {})
    requests.abort_upload(key, upload_id)
    # Without s3:ListBucket, S3 answers 403 for a missing object, so a lost file would look like a refusal.
    requests.head_object(key)
    try:
        next(requests.list_uploads(prefix, page_size=1), None)
    except ConnectError as error:
        # Only sweeping needs this permission; copying and publishing do not.
        log.warning("Uploads that a killed run leaves behind cannot be swept: %s", error)

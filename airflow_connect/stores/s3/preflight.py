"""Checks before anything is copied: the bucket exists, is in this region, and grants the needed permissions."""

from __future__ import annotations

import logging
import os

from airflow_connect.errors import AccessError, ConnectError
from airflow_connect.stores.s3.requests import S3Requests, odd_key
from airflow_connect.stores.store import PROBE_NAME, has_odd_directories

log = logging.getLogger(__name__)


def check_bucket(requests: S3Requests, prefix: str) -> None:
    """Start and abort an upload, request its object, list uploads: five requests, nothing visible.

    Order matters: only replies with a body distinguish a wrong key from a missing permission, and HEAD has none.

    Args:
        requests: the bucket.
        prefix: where the run will write; permissions may be limited to it.

    Raises:
        AccessError: credentials, bucket or permission are missing; the message names which.
        ConfigError: the bucket is in another region, or the store does not keep the names of this prefix.
        UnavailableError: the address does not answer.
    """
    key = f"{prefix}{PROBE_NAME}-{os.urandom(4).hex()}"
    upload_id = _started(requests, key)
    try:
        requests.check_key_is_kept(key, upload_id)
    finally:
        requests.abort_upload(key, upload_id)
    # Without s3:ListBucket, S3 answers 403 for a missing object, so a lost file would look like a refusal.
    requests.head_object(key)
    try:
        next(requests.list_uploads(prefix, page_size=1), None)
    except ConnectError as error:
        # Only sweeping needs this permission; copying and publishing do not.
        log.warning("Uploads that a killed run leaves behind cannot be swept: %s", error)


def _started(requests: S3Requests, key: str) -> str:
    """A new upload's id; a store that refuses the key itself does not say which setting it comes from."""
    try:
        return requests.create_upload(key, {}, {})
    except AccessError as error:
        # A proxy that folds slashes changes what was signed.
        if error.code in ("s3.refused", "s3.credentials_wrong") and has_odd_directories(key):
            raise odd_key(key, str(error)) from error
        raise

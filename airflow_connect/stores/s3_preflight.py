"""Before anything is copied: is the bucket there, in this region, and may we do what a run does?"""

from __future__ import annotations

import logging
import uuid

from airflow_connect.api.errors import ConnectError
from airflow_connect.stores.leftovers import PROBE_NAME
from airflow_connect.stores.s3_requests import S3Requests

log = logging.getLogger(__name__)


def check_bucket(requests: S3Requests, prefix: str) -> None:
    """Start and abort an upload, look for its object, list uploads: four requests, nothing visible.

    Order matters: only replies with a body tell a wrong key from a missing permission, and HEAD has none.

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
    # Without s3:ListBucket a missing object is answered with 403, and a lost file could not be told from a
    # refusal.
    requests.head_object(key)
    try:
        next(requests.list_uploads(prefix, page_size=1), None)
    except ConnectError as error:
        # Only sweeping needs it; copying and publishing do not.
        log.warning("Uploads that a killed run leaves behind cannot be swept: %s", error)

"""S3's name for an HTTP request, determined from method and query alone (path-style addressing)."""

from __future__ import annotations

from collections.abc import Mapping

# Operations that a query parameter determines: method, parameter, operation. The first match counts.
# Source: request syntax of the Amazon S3 API reference.
BY_PARAMETER = (
    ("POST", "uploads", "CreateMultipartUpload"),
    ("PUT", "partNumber", "UploadPart"),
    ("POST", "uploadId", "CompleteMultipartUpload"),
    ("DELETE", "uploadId", "AbortMultipartUpload"),
    ("GET", "uploadId", "ListParts"),
    ("GET", "uploads", "ListMultipartUploads"),
    ("GET", "location", "GetBucketLocation"),
    ("POST", "delete", "DeleteObjects"),
    ("PUT", "tagging", "PutObjectTagging"),
    ("GET", "tagging", "GetObjectTagging"),
    ("GET", "list-type", "ListObjectsV2"),
)
ON_OBJECT = {"PUT": "PutObject", "GET": "GetObject", "HEAD": "HeadObject", "DELETE": "DeleteObject"}
ON_BUCKET = {"PUT": "CreateBucket", "GET": "ListObjects", "HEAD": "HeadBucket", "DELETE": "DeleteBucket"}


def operation_name(method: str, has_bucket: bool, has_key: bool, query: Mapping[str, str]) -> str:
    """Return `UploadPart`, `CompleteMultipartUpload`, ..., or the method itself if unknown."""
    for of_method, parameter, operation in BY_PARAMETER:
        if method == of_method and parameter in query:
            return operation
    if has_key:
        return ON_OBJECT.get(method, method)
    if has_bucket:
        return ON_BUCKET.get(method, method)
    return "ListBuckets" if method == "GET" else method

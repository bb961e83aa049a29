"""S3's operation names, told from method and query."""

from __future__ import annotations

import pytest

from tests.devstack.s3_operations import operation_name


@pytest.mark.parametrize(
    ("method", "path", "query", "operation"),
    [
        ("POST", "b/k", {"uploads": ""}, "CreateMultipartUpload"),
        ("PUT", "b/k", {"partNumber": "1", "uploadId": "u"}, "UploadPart"),
        ("POST", "b/k", {"uploadId": "u"}, "CompleteMultipartUpload"),
        ("DELETE", "b/k", {"uploadId": "u"}, "AbortMultipartUpload"),
        ("GET", "b/k", {"uploadId": "u"}, "ListParts"),
        ("GET", "b", {"uploads": ""}, "ListMultipartUploads"),
        ("GET", "b", {"list-type": "2", "prefix": "p"}, "ListObjectsV2"),
        ("POST", "b", {"delete": ""}, "DeleteObjects"),
        ("PUT", "b/k", {}, "PutObject"),
        ("HEAD", "b/k", {}, "HeadObject"),
        ("HEAD", "b", {}, "HeadBucket"),
        ("GET", "", {}, "ListBuckets"),
        ("PATCH", "b/k", {}, "PATCH"),
    ],
)
def test_operation_name_follows_method_and_query(method, path, query, operation):
    bucket, _, key = path.partition("/")
    assert operation_name(method, bool(bucket), bool(key), query) == operation

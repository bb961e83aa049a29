"""The contents of the bucket, counted by reading it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

THREADS = 8


class CountedObject(NamedTuple):
    """An object and its number of lines."""

    key: str
    records: int
    size_bytes: int


def count_objects(client: S3Client, bucket: str) -> list[CountedObject]:
    """Read every object of a bucket of JSON lines and count its records; by key."""
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket)
    keys = sorted(entry["Key"] for page in pages for entry in page.get("Contents", []))

    def count(key: str) -> CountedObject:
        body = client.get_object(Bucket=bucket, Key=key)["Body"].read()
        return CountedObject(key, body.count(b"\n"), len(body))

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(count, keys))


def directories(objects: list[CountedObject]) -> list[tuple[str, int, int, int]]:
    """Directory, number of objects, records and bytes; by directory."""
    sums: dict[str, tuple[int, int, int]] = {}
    for found in objects:
        directory = found.key.rpartition("/")[0]
        files, records, size = sums.get(directory, (0, 0, 0))
        sums[directory] = (files + 1, records + found.records, size + found.size_bytes)
    return [(directory, *sums[directory]) for directory in sorted(sums)]

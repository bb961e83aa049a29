"""What arrived: every record's id, read back from the bucket through S3."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.json
import pyarrow.parquet as pq
from isal import igzip

from airflow_connect.devstack.s3 import S3Server

_ID = pa.schema([pa.field("id", pa.int64())])


@dataclass(frozen=True, slots=True)
class Arrived:
    """Objects and bytes under a prefix, and what is wrong with the records in them ("" if nothing)."""

    objects: int
    size_bytes: int
    problem: str


def check_arrivals(s3: S3Server, bucket: str, prefix: str, records: int) -> Arrived:
    """Read every object below `prefix`: ids 0 to `records - 1` must be there exactly once."""
    client = s3.client(max_pool_connections=8)
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    listed = [(entry["Key"], entry["Size"]) for page in pages for entry in page.get("Contents", ())]
    seen = np.zeros(records, dtype=np.int64)
    with ThreadPoolExecutor(4) as pool:
        for ids in pool.map(lambda found: _ids(client.get_object(Bucket=bucket, Key=found[0])), listed):
            np.add.at(seen, ids, 1) if len(ids) < 1000 else seen.__iadd__(np.bincount(ids, minlength=records))
    missing, doubled = int((seen == 0).sum()), int((seen > 1).sum())
    unfinished = client.list_multipart_uploads(Bucket=bucket, Prefix=prefix).get("Uploads", [])
    problems = [
        text
        for count, text in (
            (missing, f"{missing} records are missing"),
            (doubled, f"{doubled} records are there twice"),
            (len(unfinished), f"{len(unfinished)} uploads are unfinished"),
        )
        if count
    ]
    return Arrived(len(listed), sum(size for _, size in listed), "; ".join(problems))


def _ids(answer: dict) -> np.ndarray:
    body = answer["Body"].read()
    if body[:4] == b"PAR1":
        return pq.read_table(io.BytesIO(body), columns=["id"]).column(0).to_numpy()
    if body[:2] == b"\x1f\x8b":
        body = igzip.decompress(body)
    options = pa.json.ParseOptions(explicit_schema=_ID, unexpected_field_behavior="ignore")
    reading = pa.json.ReadOptions(use_threads=False, block_size=1 << 22)
    return pa.json.read_json(io.BytesIO(body), reading, options).column(0).to_numpy()


def remove(s3: S3Server, bucket: str, prefix: str) -> None:
    """Delete every object below `prefix`."""
    client = s3.client()
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        keys = [{"Key": entry["Key"]} for entry in page.get("Contents", ())]
        if keys:
            client.delete_objects(Bucket=bucket, Delete={"Objects": keys})

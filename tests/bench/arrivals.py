"""What arrived: every record's id, read back from the bucket through S3, or from files."""

from __future__ import annotations

import io
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.json
import pyarrow.parquet as pq
from isal import igzip

from airflow_connect.devstack.s3 import S3Server
from tests.support.hdfs_files import all_files, get, split

BUCKET = "bench"
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
    listed = {entry["Key"]: entry["Size"] for page in pages for entry in page.get("Contents", ())}
    unfinished = client.list_multipart_uploads(Bucket=bucket, Prefix=prefix).get("Uploads", [])
    return _check(
        listed, lambda key: client.get_object(Bucket=bucket, Key=key)["Body"].read(), records, len(unfinished)
    )


def check_files(folder: Path, records: int) -> Arrived:
    """The same for files below a directory."""
    found = {str(path): path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    listed = {path: size for path, size in found.items() if "/+tmp/" not in path}
    return _check(listed, lambda path: Path(path).read_bytes(), records, len(found) - len(listed))


def check_hdfs(directory: str, records: int) -> Arrived:
    """The same for files of an HDFS below `hdfs://host:port/directory`."""
    found = all_files(directory)
    listed = {name: size for name, size in found.items() if "+tmp" not in name.split("/")}
    return _check(listed, lambda name: get(f"{directory}/{name}"), records, len(found) - len(listed))


def remove_hdfs(directory: str) -> None:
    """Delete a directory of an HDFS with all that is in it."""
    hdfs, path = split(directory)
    hdfs.delete(path, True)


def _check(listed: dict[str, int], read: Callable[[str], bytes], records: int, unfinished: int) -> Arrived:
    seen = np.zeros(records, dtype=np.int64)
    # A backup has a document for each run, which holds no records.
    beside = (".keys.", ".headers.")
    of_records = [
        name for name in listed if "+runs" not in name.split("/") and not any(part in name for part in beside)
    ]
    of_keys = [name for name in listed if any(part in name for part in beside)]
    with ThreadPoolExecutor(4) as pool:
        keys = sum(pool.map(lambda name: igzip.decompress(read(name)).count(b"\n"), of_keys))
        for ids in pool.map(lambda name: _ids(read(name)), of_records):
            np.add.at(seen, ids, 1) if len(ids) < 1000 else seen.__iadd__(np.bincount(ids, minlength=records))
    missing, doubled = int((seen == 0).sum()), int((seen > 1).sum())
    problems = [
        text
        for count, text in (
            (missing, f"{missing} records are missing"),
            (doubled, f"{doubled} records are there twice"),
            (of_keys and records - keys, f"{keys} keys or headers are there"),
            (unfinished, f"{unfinished} uploads or temporary files are unfinished"),
        )
        if count
    ]
    return Arrived(len(listed), sum(listed.values()), "; ".join(problems))


def _ids(body: bytes) -> np.ndarray:
    if body[:4] == b"PAR1":
        file = pq.ParquetFile(io.BytesIO(body))
        if "id" in file.schema_arrow.names:
            return file.read(columns=["id"]).column(0).to_numpy()
        body = b"\n".join(file.read(columns=["value"]).column(0).to_pylist())  # Whole records.
    if body[:4] == b"Obj\1":
        body = b"\n".join(record["value"] for record in fastavro.reader(io.BytesIO(body)))
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

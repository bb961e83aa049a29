"""ETags of multipart objects, and how an object is recognised as the one that was staged."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from urllib.parse import quote

from airflow_connect.api.staging import StagedFile
from airflow_connect.stores.s3.requests import ObjectFacts

RUN_ID = "connect-run-id"
FILE_ID = "connect-file-id"
OFFSETS = "connect-offsets"
RECORDS = "connect-records"

_MD5 = re.compile(r"[0-9a-f]{32}")


def multipart_etag(part_etags: Sequence[str]) -> str:
    """The ETag that S3 gives an object made of these parts, in order; "" if part ETags are not MD5 digests.

    MD5 of the concatenated binary MD5 digests of the parts, a dash, and their number (not in Amazon's API reference,
    but every server follows it). With SSE-KMS and SSE-C the ETags only look like digests, so an equal ETag proves
    equality, but a different one proves nothing.
    """
    if not part_etags or not all(_MD5.fullmatch(etag) for etag in part_etags):
        return ""
    digests = b"".join(bytes.fromhex(etag) for etag in part_etags)
    return f"{hashlib.md5(digests, usedforsecurity=False).hexdigest()}-{len(part_etags)}"


def object_metadata(run_id: str, file_id: str, start: int, end: int | None, records: int | None) -> dict[str, str]:
    """User metadata of a staged object.

    Args:
        run_id: any text; percent-encoded because S3 accepts only ASCII.
        file_id: unique forever; it identifies this very upload, whatever the ETag is.
        start, end: offsets `[start, end)`; a file that was uploaded in parts while it grew has no `end` here.
        records: number of records, unknown like `end`.
    """
    metadata = {RUN_ID: quote(run_id, safe="/:+ "), FILE_ID: file_id}
    metadata[OFFSETS] = f"{start}-" if end is None else f"{start}-{end}"
    if records is not None:
        metadata[RECORDS] = str(records)
    return metadata


def parts_of(file: StagedFile) -> list[tuple[int, str]]:
    """Part numbers and ETags of a staged file, from its token."""
    return [(int(number), str(etag)) for number, etag in file.token["parts"]]


def is_same_object(file: StagedFile, found: ObjectFacts) -> bool:
    """Whether `found` is the object that publishing `file` creates: the same upload, or the same bytes."""
    if found.size_bytes != file.size_bytes:
        return False
    if found.metadata.get(FILE_ID) == file.token["file_id"]:
        return True
    expected = multipart_etag([etag for _, etag in parts_of(file)])
    return bool(expected) and found.etag == expected

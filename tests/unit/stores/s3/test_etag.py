"""ETags of multipart objects, and recognising our own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_connect.stores.s3.etag import is_same_object, multipart_etag, object_metadata
from airflow_connect.stores.s3.requests import ObjectFacts
from tests.unit.stores.s3.s3_clients import staged


def test_multipart_etag_of_known_parts_is_what_s3_answers() -> None:
    # 3 MiB of "y" and 3 MiB of "z" in parts of 5 and 1 MiB; recorded from s3proxy 4.1.0.
    parts = ["02289ca46c4c97a5cb5eb7528774dd0c", "93c2f35c8192b7986a798e1453ae86f1"]
    assert multipart_etag(parts) == "5210ae129a043fd87f0785c41f97772a-2"


@pytest.mark.parametrize("etags", [[], ["not-md5"], ["0" * 32, "0" * 33], ["A" * 32]])
def test_multipart_etag_of_other_etags_is_unknown(etags: list[str]) -> None:
    assert multipart_etag(etags) == ""


FILE = staged(parts=2)
ETAG = multipart_etag([etag for _, etag in FILE.token["parts"]])


@pytest.mark.parametrize(
    ("found", "same"),
    [
        (ObjectFacts(10, ETAG, {}), True),
        (ObjectFacts(10, "kms-etag", {"connect-file-id": "f-t/k"}), True),
        (ObjectFacts(11, ETAG, {"connect-file-id": "f-t/k"}), False),
        (ObjectFacts(10, "other", {"connect-file-id": "another"}), False),
        (ObjectFacts(10, "other", {}), False),
    ],
)
def test_is_same_object_by_upload_or_by_bytes(found: ObjectFacts, same: bool) -> None:
    assert is_same_object(FILE, found) is same


def test_is_same_object_without_md5_etags_does_not_match_an_empty_etag() -> None:
    encrypted = replace(FILE, token={**FILE.token, "parts": [[1, "opaque"]]})
    assert not is_same_object(encrypted, ObjectFacts(10, "", {}))


def test_object_metadata_of_any_run_id_is_ascii() -> None:
    known = object_metadata("käse/2026-11-21T00:00:00+00:00", "f1", 3, 9, 6)
    assert known == {
        "connect-run-id": "k%C3%A4se/2026-11-21T00:00:00+00:00",
        "connect-file-id": "f1",
        "connect-offsets": "3-9",
        "connect-records": "6",
    }
    assert object_metadata("r", "f", 3, None, None)["connect-offsets"] == "3-"

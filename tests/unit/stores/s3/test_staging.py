"""When a staged file is complete: not before its last part."""

from __future__ import annotations

from typing import Any, cast

import pytest

from airflow_connect.errors import AuditError
from airflow_connect.formats.spill import SpillBuffer
from airflow_connect.stores.s3.requests import S3Requests
from airflow_connect.stores.s3.staging import _Upload
from airflow_connect.stores.store import FileIdentity


class Requests:
    """Answers at once."""

    possible_duplicates = False

    def create_upload(self, *_: Any) -> str:
        return "upload"

    def check_key_is_kept(self, *_: Any) -> None:
        """Every key is."""

    def upload_part(self, _key: str, _upload_id: str, number: int, _data: Any) -> str:
        return f"etag-{number}"


def part(data: bytes) -> SpillBuffer:
    buffer = SpillBuffer()
    buffer.append(data)
    return buffer


def test_upload_whose_first_part_ends_while_the_last_waits_for_room_is_not_finished() -> None:
    """Losing this race once cut objects off after their first part."""
    upload = _Upload(cast("S3Requests", Requests()), FileIdentity("k", "t", 0, 0), "run")
    upload.expect_part()
    upload.expect_end(10, 2, 8)
    upload.run_part(1, part(b"12345"))
    was_done = upload.result.done()
    upload.expect_part()
    upload.expect_no_more()
    upload.run_part(2, part(b"678"))

    staged = upload.result.result(timeout=1)
    assert not was_done
    assert staged.size_bytes == 8
    assert staged.token["parts"] == [[1, "etag-1"], [2, "etag-2"]]


@pytest.mark.parametrize("written", [7, 9])
def test_upload_whose_parts_do_not_add_up_to_what_was_written_is_refused(written: int) -> None:
    upload = _Upload(cast("S3Requests", Requests()), FileIdentity("some/key", "t", 0, 0), "run")
    upload.expect_end(10, 2, written)
    upload.expect_part()
    upload.run_part(1, part(b"12345678"))
    upload.expect_no_more()

    with pytest.raises(AuditError, match=rf"some/key was written as {written} bytes in 1 parts, but 8 bytes in 1"):
        upload.result.result(timeout=1)


def test_upload_without_one_of_its_parts_is_refused() -> None:
    upload = _Upload(cast("S3Requests", Requests()), FileIdentity("k", "t", 0, 0), "run")
    upload.expect_end(10, 2, 8)
    upload.expect_part()
    upload.expect_part()
    upload.run_part(1, part(b"12345678"))
    upload.run_part(3, part(b""))
    upload.expect_no_more()

    with pytest.raises(AuditError, match="in 2 parts"):
        upload.result.result(timeout=1)

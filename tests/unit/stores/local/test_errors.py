"""What the operating system says becomes a sentence with the path, a code, and what to do."""

from __future__ import annotations

import errno
import os

import pytest

from airflow_connect.errors import AccessError, ConnectError, UnavailableError
from airflow_connect.stores.local.errors import error_for

SAYS: list[tuple[int, type[ConnectError], str]] = [
    (errno.ENOSPC, UnavailableError, "local.disk_full"),
    (errno.EDQUOT, UnavailableError, "local.quota"),
    (errno.EMFILE, UnavailableError, "local.too_many_open_files"),
    (errno.EIO, UnavailableError, "local.unavailable"),
    (errno.ESTALE, UnavailableError, "local.unavailable"),
    (errno.EACCES, AccessError, "local.forbidden"),
    (errno.EPERM, AccessError, "local.forbidden"),
    (errno.EROFS, AccessError, "local.read_only"),
    (errno.ENOTDIR, AccessError, "local.not_a_directory"),
    (errno.EISDIR, AccessError, "local.is_a_directory"),
    (errno.ENAMETOOLONG, AccessError, "local.name_too_long"),
    (errno.EXDEV, AccessError, "local.other_file_system"),
    (errno.ELOOP, AccessError, "local.symbolic_links"),
    (errno.ENOENT, AccessError, "local.not_found"),
]


@pytest.mark.parametrize(("number", "kind", "code"), SAYS)
def test_every_refusal_has_its_kind_and_code(number: int, kind: type[ConnectError], code: str) -> None:
    error = error_for(OSError(number, os.strerror(number)), "write", "/data/x")

    assert (type(error), error.code) == (kind, code)
    assert "cannot write /data/x" in error.message
    assert os.strerror(number) in error.message
    assert error.suggestion.endswith(".")
    assert "{" not in error.suggestion

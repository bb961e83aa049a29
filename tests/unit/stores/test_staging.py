"""What stagers share: the answer to a task that waits, and sizes that must agree."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from airflow_connect.api.errors import AuditError
from airflow_connect.stores.staging import check_size, resolve
from airflow_connect.stores.store import FileIdentity


def test_result_gets_what_is_made() -> None:
    result: Future[int] = Future()

    assert resolve(result, lambda: 3) is None
    assert result.result(0) == 3


def test_result_gets_every_kind_of_error_and_the_caller_too() -> None:
    def make() -> int:
        raise KeyboardInterrupt

    result: Future[int] = Future()
    error = resolve(result, make)

    assert isinstance(error, KeyboardInterrupt)
    assert result.exception(0) is error


@pytest.mark.parametrize("fails", [False, True])
def test_cancelled_result_stays_cancelled(fails: bool) -> None:
    def make() -> int:
        if fails:
            raise ValueError("too late")
        return 3

    result: Future[int] = Future()
    result.cancel()

    assert (resolve(result, make) is None) is not fails
    assert result.cancelled()


def test_size_that_the_store_does_not_confirm_is_an_audit_error() -> None:
    check_size("hdfs://nn/f", 3, 3)
    with pytest.raises(AuditError, match="hdfs://nn/f was written as 3 bytes, but holds 2; nothing was published"):
        check_size("hdfs://nn/f", 3, 2)


def test_staged_file_says_what_its_identity_does() -> None:
    identity = FileIdentity("k", "t", 4, 5, role="key", key_at=lambda end: f"k+{end - 1}")
    staged = identity.staged(identity.final_key(9), 9, 3, 70, {"path": "p"})

    assert (staged.key, staged.topic, staged.partition, staged.start, staged.end) == ("k+8", "t", 4, 5, 9)
    assert (staged.records, staged.size_bytes, staged.token, staged.role) == (3, 70, {"path": "p"}, "key")

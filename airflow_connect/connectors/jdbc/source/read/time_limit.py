"""What `read.timeout.ms` limits: reading, and looking for what is new."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow_connect.connectors.jdbc.source.settings.keys import JdbcSourceKeys
from airflow_connect.databases.read_timeout import ReadTimeout
from airflow_connect.databases.urls import DatabaseAddress
from airflow_connect.errors import ConnectError, UnavailableError


@contextmanager
def time_limit(timeout: ReadTimeout, address: DatabaseAddress, what: str) -> Iterator[None]:
    """End what waits for the database for too long.

    Args:
        timeout: knows the connections.
        address: of the database.
        what: what is being done: `read the table "a"."b"`.

    Raises:
        UnavailableError: it was ended.
    """
    try:
        with timeout.watching():
            yield
    except ConnectError:
        if not timeout.expired:
            raise
        raise UnavailableError(
            f"The database {address.display} could not be used to {what}: it has sent nothing for"
            f" {timeout.timeout_s:g} s, which is the limit in {JdbcSourceKeys.read_timeout_ms}.",
            code="database.read_timeout",
            suggestion="Check whether the server hangs. Nothing is lost: the next run continues from the committed"
            f" offsets. If a statement takes that long until its first row, raise {JdbcSourceKeys.read_timeout_ms}.",
            config_path=JdbcSourceKeys.read_timeout_ms.name,
        ) from None

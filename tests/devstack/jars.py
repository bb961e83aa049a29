"""The jars of the servers that only tests use."""

from __future__ import annotations

from pathlib import Path

from airflow_connect.jvm.jars import locked_jars

LOCKS = Path(__file__).with_name("locks")


def fetch_jars(lock_name: str) -> list[Path]:
    """The files of a lock of this folder: see `airflow_connect.jvm.jars.locked_jars.fetch_jars`."""
    return locked_jars.fetch_jars(lock_name, LOCKS)

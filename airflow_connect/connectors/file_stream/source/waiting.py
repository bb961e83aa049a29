"""Whether a plan copies anything: the last line or event of a file may have to wait for what is not written yet."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_connect.connectors.file_stream.source.config import FileSourceConfig
from airflow_connect.connectors.file_stream.source.open_item import OpenItem
from airflow_connect.connectors.file_stream.source.work import Item
from airflow_connect.errors import DataError
from airflow_connect.stores.file_system import GoneError
from airflow_connect.stores.file_systems import FileSystems

_BLOCK_BYTES = 1 << 16
"""Read at once: the first line is enough."""


def copies_something(items: Iterable[Item], config: FileSourceConfig, file_systems: FileSystems) -> bool:
    """Whether any item has a line or event that a run copies. Looks into items up to the first that has one."""
    return any(_holds_line(item, config, file_systems) for item in items)


def _holds_line(item: Item, config: FileSourceConfig, file_systems: FileSystems) -> bool:
    try:
        opened = OpenItem.of(item, None, config, file_systems, block_bytes=_BLOCK_BYTES)
    except (DataError, GoneError):
        return True  # the task reports it
    try:
        return opened.next_block() is not None
    except (DataError, GoneError):
        return True
    finally:
        opened.close()

"""What a task that copies files of values gets from the driver, as a key of its configuration."""

from __future__ import annotations

import base64
import heapq
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from airflow_connect.connectors.restore.backup import BackupFile
from airflow_connect.connectors.restore.values.files import ValueFile
from airflow_connect.connectors.restore.values.progress import RowRange
from airflow_connect.connectors.restore.work import ANY_TIME

VALUE_CHAINS = "airflow_connect.restore.values"
"""Key of a task's configuration; set by the connector, not by users."""


class ValueChain(NamedTuple):
    """Files that are copied one after the other, as planned.

    Attributes:
        source: the source partition.
        label: of what is copied, for messages.
        topic: that records go to.
        partition: of it; -1: the producer chooses.
        offset: where the run begins, the source offset.
        files: in order.
        passed: files that are copied.
        newest_ms: the last modification of those.
        is_one_directory: whether all files of the partition are in the same directory, those that are copied, too.
        passed_names: fingerprint of the names of those that are copied.
        deletes_before_ms, first_ms, last_ms, needs_keys: what the topic takes and keeps, see
            `airflow_connect.connectors.restore.work.Chain`.
        rows: of the file, which is divided; None: all.
        size_bytes: of these rows, about; 0: of the files.
    """

    source: Mapping[str, Any]
    label: str
    topic: str
    partition: int
    offset: Mapping[str, Any]
    files: list[ValueFile]
    passed: int = 0
    newest_ms: int = 0
    is_one_directory: bool = False
    passed_names: int = 0
    deletes_before_ms: int = 0
    first_ms: int = ANY_TIME[0]
    last_ms: int = ANY_TIME[1]
    needs_keys: bool = False
    rows: RowRange | None = None
    size_bytes: int = 0

    @property
    def size(self) -> int:
        """Bytes to read, with something for each request."""
        return (self.size_bytes or sum(file.size for file in self.files)) + 1000 * len(self.files)

    @property
    def end(self) -> int | None:
        """Number of the first record of the file that is not copied; None: all are."""
        return None if self.rows is None else self.rows.end


def divided(chains: Sequence[ValueChain], max_tasks: int) -> list[list[ValueChain]]:
    """Largest chain first, into the task with the fewest bytes (Graham 1969); no task is empty."""
    bins = [(0, number) for number in range(min(max_tasks, len(chains)))]
    contents: list[list[ValueChain]] = [[] for _ in bins]
    for chain in sorted(chains, key=lambda one: (-one.size, one.label)):
        load, number = heapq.heappop(bins)
        contents[number].append(chain)
        heapq.heappush(bins, (load + chain.size, number))
    return contents


def task_config(config: Mapping[str, str], chains: Sequence[ValueChain]) -> dict[str, str]:
    """The configuration of a task."""
    text = json.dumps(list(chains), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return {**config, VALUE_CHAINS: base64.b64encode(zlib.compress(text)).decode()}


def chains_of(config: Mapping[str, str]) -> list[ValueChain]:
    """The chains of a task."""
    rows = json.loads(zlib.decompress(base64.b64decode(config[VALUE_CHAINS])).decode("utf-8", "surrogatepass"))
    return [_chain(*row) for row in rows]


def _chain(*row: Any) -> ValueChain:
    written = dict(zip(ValueChain._fields, row, strict=True))
    files = [_file(*file) for file in written["files"]]
    rows = None if written["rows"] is None else RowRange(*written["rows"])
    return ValueChain(**{**written, "files": files, "rows": rows})


def _file(start: int, *parts: list[Any] | None) -> ValueFile:
    return ValueFile(start, *(None if part is None else BackupFile(*part) for part in parts))

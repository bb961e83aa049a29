"""Resumes where Confluent's HDFS sink stopped: in its model the file system holds the offsets, not the group.

For each topic-partition, as in that sink's recovery:

1. the decisions in its write-ahead log are carried out: temporary files of complete blocks get their final names,
unless those are taken;
2. the offset is the highest end offset plus one in complete blocks of the log, its predecessor `log.1` and the names
   of published files; it wins over the offset of the consumer group;
3. the logs are renamed (`log.taken-over`), so that Confluent's sink, if the connector returns to it, uses the names of
files, which are then more recent than its old log.

Nothing is lost if a run ends between these steps: repeating them finds the same offset.
Temporary files are deleted only if a log of the topic-partition names them and they did not get a final name. Their
writer is dead, because a group with members was rejected before. Other files in `+tmp` could belong to any connector,
so they stay. Source: TopicPartitionWriter.recover, FSWAL.apply and extractLatestOffset,
FileUtils.fileStatusWithMaxOffset. Those use only the last block of the log, if there is one; the highest of all is the
same unless the log is outdated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import chain

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.connectors.files.hdfs.file_trees import FileTree, Found
from airflow_connect.connectors.files.hdfs.wal import Move, WalContent, read_wal
from airflow_connect.layout.names.object_names import NameSettings
from airflow_connect.layout.names.topic_directories import directory_of

ASIDE = ".taken-over"
_LOGS = ("log", "log.1")
COMMITTED = re.compile(r"([a-zA-Z0-9._\-]+)\+(\d+)\+(\d+)\+(\d+)(\.\w+)?", re.ASCII)
"""Name of a published file: topic, partition, first and last offset, extension."""
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:(//[^/]*)?")
_TEMPORARY = re.compile(r"/\+tmp/.*_tmp(\.\w+)?\Z", re.DOTALL)
_SMALLEST_PARQUET = 8
_THREADS = 16


class TakingOver:
    """Finds where another connector stopped, and completes what it had begun."""

    def __init__(self, tree: FileTree, names: NameSettings, logs_dir: str) -> None:
        """`logs_dir`: `logs.dir`, with its substitutions."""
        self._tree = tree
        self._names = names
        self._logs_dir = logs_dir
        self._ends_of_topic = cache(self._ends_in_names)

    def offsets(self, partitions: Iterable[TopicPartition], *, apply: bool) -> Mapping[TopicPartition, int]:
        """The first offset that is not in files, for each of `partitions` that has files or logs.

        Args:
            partitions: the topic-partitions to check.
            apply: whether to complete unfinished work and rename the logs; otherwise nothing is changed.

        Raises:
            AccessError, UnavailableError: the file system refused, or did not answer.
            ConfigError: topics.dir or logs.dir does not fit a topic.
        """
        found = {tp: self._offset(tp, apply=apply) for tp in partitions}
        return {tp: offset for tp, offset in found.items() if offset is not None}

    def _offset(self, tp: TopicPartition, *, apply: bool) -> int | None:
        logs = self._logs(tp, apply=apply)
        if apply:
            for content in logs.values():
                self._finish(content)
        ends = [
            end
            for content in logs.values()
            for block in content.blocks
            for move in block
            if (end := _end_of(_path(move.final), tp)) is not None
        ]
        ends += [end for number, end in self._ends_of_topic(tp.topic, apply) if number == tp.partition]
        if apply:
            self._put_aside(logs)
        return max(ends) + 1 if ends else None

    def _logs(self, tp: TopicPartition, *, apply: bool) -> dict[str, WalContent]:
        """The contents of a topic-partition's logs, including logs that an earlier try has renamed."""
        directory = directory_of(self._logs_dir, self._names.topic_pattern or "", tp.topic).strip("/")
        place = self._tree.path("/".join(part for part in (directory, tp.topic, str(tp.partition)) if part))
        found = {}
        for path in (f"{place}/{name}{aside}" for name in _LOGS for aside in ("", ASIDE)):
            if not self._tree.exists(path):
                continue
            if apply:
                self._tree.settle(path)
            found[path] = read_wal(self._tree.read(path) or b"")
        return found

    def _finish(self, content: WalContent) -> None:
        """Rename what the log decided, then delete the rest. A log can be long, and each check takes a request."""
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="taking-over") as pool:
            for _ in pool.map(self._rename, (move for block in content.blocks for move in block)):
                pass
            for _ in pool.map(self._discard, (*chain.from_iterable(content.blocks), *content.unfinished)):
                pass

    def _rename(self, move: Move) -> None:
        temporary = _path(move.temporary)
        if self._tree.exists(temporary):
            self._tree.move(temporary, _path(move.final))

    def _discard(self, move: Move) -> None:
        temporary = _path(move.temporary)
        if _TEMPORARY.search(temporary):
            self._tree.remove(temporary)

    def _put_aside(self, logs: Mapping[str, WalContent]) -> None:
        for path in logs:
            if not path.endswith(ASIDE):
                self._tree.remove(path + ASIDE)  # From an earlier takeover; the offset already includes it.
                self._tree.move(path, path + ASIDE)

    def _ends_in_names(self, topic: str, apply: bool) -> list[tuple[int, int]]:
        """(partition, last offset) of every published file of a topic; listed once for all its partitions."""
        directory = self._tree.path(f"{self._names.prefix_of(topic)}{topic}")
        found = []
        for file in self._tree.walk(directory):
            name = COMMITTED.fullmatch(file.path.rpartition("/")[2])
            if name is None or name[1] != topic:
                continue
            if _is_empty_parquet(file):
                if apply:
                    self._tree.remove(file.path)
                continue
            found.append((int(name[2]), int(name[4])))
        return found


def _is_empty_parquet(file: Found) -> bool:
    """Whether a crash of Confluent's sink left the file empty; such a file holds no records."""
    return ".parquet" in file.path.rpartition("/")[2] and file.size < _SMALLEST_PARQUET


def _end_of(path: str, tp: TopicPartition) -> int | None:
    """The last offset in a final file name of `tp`, else None."""
    name = COMMITTED.fullmatch(path.rpartition("/")[2])
    return int(name[4]) if name and name[1] == tp.topic and int(name[2]) == tp.partition else None


def _path(url: str) -> str:
    """Path inside the file system, doubled slashes removed: Confluent's sink writes `<url>/topics//+tmp/...`."""
    found = _ADDRESS.match(url)
    return re.sub("/{2,}", "/", url[found.end() :] if found else url)

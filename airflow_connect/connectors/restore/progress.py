"""How far a chain is restored: what is committed for a partition of the backup."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.errors import OffsetError

BACKUP, TOPIC, PARTITION = "backup", "topic", "partition"


def partition_of(root: str, tp: TopicPartition) -> dict[str, Any]:
    """The source partition of a chain."""
    return {BACKUP: root, TOPIC: tp.topic, PARTITION: tp.partition}


def topic_partition_of(root: str, partition: Mapping[str, Any]) -> TopicPartition | None:
    """The chain of a source partition; None if it belongs to another backup."""
    if partition.get(BACKUP) != root or set(partition) != {BACKUP, TOPIC, PARTITION}:
        return None
    return TopicPartition(str(partition[TOPIC]), int(partition[PARTITION]))


@dataclass(frozen=True, slots=True)
class Progress:
    """The source offset of a chain.

    Attributes:
        position: every record of the backup with a lower offset is restored.
        first_open: start of the first file of which a part may not be restored yet; `position` if there is none.
        open: files that begin at `first_open` or later, and before `position`.
        passed: files that begin before `position`.
        newest_ms: the last modification of those files, milliseconds since the epoch.
        names: fingerprint of their names, see `passed`; "": an earlier release has kept none.
        file: that held the last restored record.
        version: of that file: its ETag, or size and time.
        target: topic that records go to.
        topic_id: its id.
        run: that has written this.
        later: settings that the topic gets when all is restored, see `remembered`.
        begin: offset from which on records were restored; -1: none was, or it is unknown.
    """

    position: int
    first_open: int
    open: int = 0
    passed: int = 0
    newest_ms: int = 0
    file: str = ""
    version: str = ""
    target: str = ""
    topic_id: str = ""
    run: str = ""
    later: str = ""
    begin: int = -1
    names: str = ""

    def to_offset(self) -> dict[str, Any]:
        """The source offset."""
        return asdict(self)

    def after(self, **changes: Any) -> Progress:
        """The same for the same topic, with other values."""
        return replace(self, **changes)

    @classmethod
    def of(cls, offset: Mapping[str, Any]) -> Progress:
        """What a source offset means.

        Raises:
            OffsetError: it has another form.
        """
        kinds = {one.name: int if one.type == "int" else str for one in fields(cls)}
        offset = {"later": "", "begin": -1, "names": "", **offset}  # offsets of the first builds do not have them
        is_right = set(offset) == set(kinds) and all(type(offset[name]) is kind for name, kind in kinds.items())
        if not is_right or not 0 <= offset["first_open"] <= offset["position"]:
            raise OffsetError(
                f"{dict(offset)} is not an offset of a restore.",
                code="restore.offset",
                suggestion="Offsets of Confluent's S3 source cannot be continued. Delete the offset: the partition is"
                " then restored from the beginning of the backup.",
            )
        return cls(**offset)

"""What topics get back when all is restored: kept beside the offsets, because it must outlive a run that dies.

It is written in the transaction that claims the topics, before a setting is changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from airflow_connect.api.source import SourceOffset, SourcePartition
from airflow_connect.connectors.restore.progress import BACKUP
from airflow_connect.errors import OffsetError

TARGET, TOPIC_ID, SETTINGS = "target", "topic_id", "settings"


class Remembered(NamedTuple):
    """Settings of a topic that are to be set again.

    Attributes:
        topic: that records are restored to.
        topic_id: its id.
        settings: by name.
    """

    topic: str
    topic_id: str
    settings: Mapping[str, str]

    def entry(self, root: str) -> tuple[SourcePartition, SourceOffset]:
        """A source partition of its own, and its offset: values of offsets are numbers and texts."""
        text = json.dumps(dict(self.settings), sort_keys=True)
        return {BACKUP: root, TARGET: self.topic}, {TOPIC_ID: self.topic_id, SETTINGS: text}


def remembered(root: str, offsets: Iterable[tuple[SourcePartition, SourceOffset]]) -> Iterator[Remembered]:
    """What is kept for the topics of a backup.

    Raises:
        OffsetError: an entry has another form.
    """
    for partition, offset in offsets:
        if set(partition) != {BACKUP, TARGET} or partition[BACKUP] != root:
            continue
        try:
            settings = {str(name): str(value) for name, value in json.loads(offset[SETTINGS]).items()}
            yield Remembered(str(partition[TARGET]), str(offset[TOPIC_ID]), settings)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise OffsetError(
                f"{dict(offset)} is not what a restore keeps for topic {partition[TARGET]}.",
                code="restore.offset",
                suggestion="Delete this offset, and set the settings of the topic by hand.",
            ) from error

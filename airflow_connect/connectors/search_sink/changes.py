"""What a topic with more partitions, or another id, means for documents that earlier runs have written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_connect.connectors.search_sink import keys
from airflow_connect.connectors.search_sink.conflicts import Versions

if TYPE_CHECKING:
    from airflow_connect.api.sink import TopicChange
    from airflow_connect.connectors.search_sink.config import DocumentConfig


def change_note(change: TopicChange, documents: DocumentConfig) -> str | None:
    """A sentence about a changed topic; None if the documents do not depend on it.

    The versions of documents whose ids are keys are offsets, which compare within one partition of one topic.
    """
    ids, versions = documents.ids_of(change.topic), documents.versions_of(change.topic)
    before, now = change.partitions_before, change.partitions
    what = f"Topic {change.topic} has {now} partitions, and had {before} at the last commit"
    if change.is_recreated:
        what = (
            f"Topic {change.topic} was deleted and created again since the last commit (partitions before: {before},"
            f" now: {now})"
        )
    if ids == keys.BY_KEY and versions is Versions.OFFSETS:
        return (
            f"{what}. The ids of its documents are the keys of records, and a key may now be in another partition, or"
            " at a lower offset. The server refuses a record whose offset is below the version of an older document:"
            " such records are counted as filtered, with a note. One with a higher offset may replace a newer document."
            " If the index must be right, delete it or use another one, and copy the topic again from its beginning."
        )
    if ids not in (keys.BY_KEY, keys.BY_SERVER) and change.is_recreated:
        return (
            f"{what}. The ids of its documents are topic, partition and offset, so its records replace documents of the"
            " old topic with the same ids, and the others stay. Delete the index, or use another one, if it must have"
            " the documents of the new topic only."
        )
    return None

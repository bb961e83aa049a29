"""What a topic with more partitions, or another id, means for documents that earlier runs have written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_connect.connectors.search import keys
from airflow_connect.connectors.search.conflicts import Versions

if TYPE_CHECKING:
    from airflow_connect.api.cluster_facts import TopicChange
    from airflow_connect.connectors.search.config import DocumentConfig

_OF_VERSIONS = (
    "The ids of its documents are the keys of records, and a key may now be in another partition, or at a lower offset."
    " The server refuses a record whose offset is below the version of an older document, or equal to it: such records"
    " are counted as filtered, with a note, by this run and by later ones. One with a higher offset may replace a newer"
    " document. If the index must be right, "
)
_REPAIR_RECREATED = "delete it or use another one, and copy the topic again from its beginning."
_REPAIR_GROWN = (
    "set external.version.header and copy the topic into another index, because the versions in this one are offsets."
    " Or send the records to a new topic, and write that one to another index: a copy of this topic from its beginning"
    " has the records of a key from both partitions, too."
)
_OF_UPSERTS = (
    "The ids of its documents are the keys of records, and a key may now be in another partition. Upserts have no"
    " versions, and there is no order between partitions: fields of an older record may replace those of a newer one"
    " while both are copied. If the index must be right, delete it or use another one, and copy the topic again: the"
    " records of before the change in a run of their own."
)
_OF_KEYS_IN_A_STREAM = (
    "The ids of its documents are the keys of records, and the data stream keeps the record of a key that comes first:"
    " those of the earlier records stay, and the others are counted as filtered, with a note. Set key.ignore=true to"
    " write every record, or use another data stream."
)
_OF_OFFSETS = (
    "The ids of its documents are topic, partition and offset, so its records replace documents of the old topic with"
    " the same ids, and the others stay. Delete the index, or use another one, if it must have the documents of the new"
    " topic only."
)
_OF_OFFSETS_IN_A_STREAM = (
    "The ids of its documents are topic, partition and offset, and the data stream never replaces a document: a record"
    " with the partition and the offset of a document of the old topic is NOT written, although it counts as written"
    " before. Delete the data stream, or use another one, and copy the topic again from its beginning."
)


def change_note(change: TopicChange, documents: DocumentConfig) -> str | None:
    """Sentences about a changed topic; None if the documents do not depend on it.

    The versions of documents whose ids are keys are offsets, which compare within one partition of one topic. The topic
    is taken by its name in Kafka, also where a transformation gives its records another one.
    """
    before, now = change.partitions_before, change.partitions
    what = f"Topic {change.topic} has {now} partitions, and had {before} at the last commit"
    if change.is_recreated:
        what = (
            f"Topic {change.topic} was deleted and created again since the last commit (partitions before: {before},"
            f" now: {now})"
        )
    has_keys = documents.ids_of(change.topic) == keys.BY_KEY
    means = _of_keys(change, documents) if has_keys else _of_offsets(change, documents)
    return f"{what}. {means}" if means else None


def _of_keys(change: TopicChange, documents: DocumentConfig) -> str:
    if documents.is_stream:
        return _OF_KEYS_IN_A_STREAM
    if documents.upserts:
        return "" if change.is_recreated else _OF_UPSERTS
    if documents.versions_of(change.topic) is not Versions.OFFSETS:
        return ""
    return _OF_VERSIONS + (_REPAIR_RECREATED if change.is_recreated else _REPAIR_GROWN)


def _of_offsets(change: TopicChange, documents: DocumentConfig) -> str:
    if not change.is_recreated or documents.ids_of(change.topic) != keys.BY_OFFSET:
        return ""
    return _OF_OFFSETS_IN_A_STREAM if documents.is_stream else _OF_OFFSETS

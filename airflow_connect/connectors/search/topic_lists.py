"""Entries of `topic.key.ignore` and `topic.schema.ignore` that have no effect, because a transformation renames topics.

Both keys take the names of topics after transformations, which only tasks see.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from airflow_connect.connectors.search.keys import SearchKeys

if TYPE_CHECKING:
    from airflow_connect.api.sink_state import CopiedRun
    from airflow_connect.connectors.search.config import DocumentConfig

RENAMED = "renamed"
"""Member of what a task returns for a partition: the topics of its records after transformations."""
MOST_NAMES = 100
"""Of a partition, such as of a topic whose records go to an index for each user."""
_SHOWN = 3


def notes_on_lists(run: CopiedRun, documents: DocumentConfig) -> Iterator[str]:
    """A sentence for each topic in Kafka that is an entry, and whose records all got names that are not the entry."""
    names: dict[str, set[str]] = {}
    is_certain = True
    for report in run.reports:
        found = report.details.get(RENAMED, ())
        names.setdefault(report.range.topic, set()).update(found)
        is_certain = is_certain and len(found) < MOST_NAMES
    used = {name for found in names.values() for name in found}
    concerned = {topic for topic, found in names.items() if found and is_certain} - used
    lists = (
        (SearchKeys.ignores_key_of, documents.ignores_key_of),
        (SearchKeys.ignores_schema_of, documents.ignores_schema_of),
    )
    for key, entries in lists:
        for topic in sorted(concerned & {*entries}):
            shown = sorted(names[topic])
            more = f" and {len(shown) - _SHOWN} more" if shown[_SHOWN:] else ""
            yield (
                f"{key} has {topic}, which has no effect: transformations give its records the topic"
                f" {', '.join(shown[:_SHOWN])}{more}, and {key} takes names after transformations, as with Confluent's"
                " sink. Put the names that are meant into it."
            )

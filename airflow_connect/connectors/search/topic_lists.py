"""Entries of `topic.key.ignore` and `topic.schema.ignore` that have no effect.

Both keys take the names of topics after transformations, which only tasks see; without any, the configuration tells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    for key, entries in _lists(documents):
        for topic in sorted(concerned & entries):
            if names[topic] <= entries:
                continue  # The names that count are in the list, too.
            shown = sorted(names[topic])
            more = f" and {len(shown) - _SHOWN} more" if shown[_SHOWN:] else ""
            yield (
                f"{key} has {topic}, which has no effect: transformations give its records the topic"
                f" {', '.join(shown[:_SHOWN])}{more}, and {key} takes names after transformations, as with Confluent's"
                " sink. Put the names that are meant into it."
            )


def notes_on_entries(config: Mapping[str, str], documents: DocumentConfig) -> Iterator[str]:
    """A sentence for each list with entries that are none of `topics`, if there are no transformations."""
    topics = {topic.strip() for topic in config.get("topics", "").split(",")} - {""}
    if not topics or config.get("transforms", "").strip():
        return
    for key, entries in _lists(documents):
        if unknown := sorted(entries - topics):
            more = f" and {len(unknown) - _SHOWN} more" if unknown[_SHOWN:] else ""
            yield f"{key} has {', '.join(unknown[:_SHOWN])}{more}, which has no effect: topics has no such topic."


def _lists(documents: DocumentConfig) -> tuple[tuple[str, frozenset[str]], ...]:
    return (
        (SearchKeys.ignores_key_of.name, documents.ignores_key_of),
        (SearchKeys.ignores_schema_of.name, documents.ignores_schema_of),
    )

"""Topics to which a source has written, and which Kafka no longer has, or has under another id.

A source continues after the last record that it copied, so a topic that was deleted, or created again, lacks what was
copied before. The ids of the topics that runs wrote to are kept with the state of the connector.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from airflow_connect.api.offsets import is_other_topic
from airflow_connect.counting import counted, names, plural
from airflow_connect.errors import ConnectError
from airflow_connect.kafka.admin import topics

if TYPE_CHECKING:
    from airflow_connect.kafka.clients.short_lived import Admin

MOST_TOPICS = 10_000
"""How many topics are remembered."""
_SHOWN = 10


class WrittenTopics:
    """The topics of one connector during one run."""

    def __init__(self, known: Mapping[str, str], admin: Admin) -> None:
        """`known`: topics to which earlier runs wrote, with Kafka's ids."""
        self._known, self._admin = dict(known), admin

    def look(self, partitions: int, since: str = "") -> list[str]:
        """Sentences about the topics that have changed; they are told once.

        Args:
            partitions: how many source partitions have an offset: without one, everything is copied again.
            since: when the topics were as they are known; "": when the last run ended.

        Raises:
            ConnectError: Kafka did not answer.
        """
        ids, deleted = topics.ids_of(self._admin, sorted(self._known))
        recreated = [name for name, found in ids.items() if is_other_topic(self._known[name], found)]
        self._known = {name: ids.get(name, known) for name, known in self._known.items() if name not in deleted}
        return _notes(sorted(deleted), recreated, since) if partitions else []

    def after(self, written: Collection[str], partitions: int) -> tuple[Mapping[str, str], list[str]]:
        """The topics to remember, with their ids, and sentences about those that have changed during the run.

        Args:
            written: topics to which the run has written.
            partitions: how many source partitions have an offset now.
        """
        if not written:
            return self._known, []
        for name in written:
            self._known.setdefault(name, "")
        try:
            notes = self.look(partitions, " during this run")
        except ConnectError as error:
            # The records are committed, so the run has not failed.
            unknown = f"The ids of the topics to which this run has written are unknown: {error.message}"
            notes = [f"{unknown} If one of them is deleted and created again before the next run, that is not noticed."]
        more = len(self._known) - MOST_TOPICS
        if more > 0:
            notes.append(
                f"Of {counted(more, 'topic')}, it is not noticed if they are deleted or created again: only the ids of"
                f" {plural(MOST_TOPICS, 'topic')} are kept."
            )
        return dict(sorted(self._known.items())[:MOST_TOPICS]), notes


def _notes(deleted: Sequence[str], recreated: Sequence[str], since: str) -> list[str]:
    notes = []
    when = since or " since the last run"
    for found, what in ((deleted, "deleted"), (recreated, "deleted and created again")):
        if found:
            notes.append(
                f"{plural(len(found), 'topic', 'were')} {what}{when}: {names(found, _SHOWN)}. The connector continues"
                " at its offsets, so what it had copied there before is NOT copied again. To copy it again, delete"
                " these offsets, or set them back."
            )
    return notes

"""Topics of which an earlier run began to copy, nothing is committed, and which Kafka no longer has."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from airflow_connect.api.offsets import is_other_topic
from airflow_connect.counting import plural
from airflow_connect.exactly_once.state import BegunTopic


def notes_on_begun(
    begun: Mapping[str, BegunTopic], topic_ids: Mapping[str, str], deleted: Collection[str]
) -> tuple[str, ...]:
    """A sentence about each of these topics that was deleted, or recreated.

    Nothing is committed, so there is no offset that could be wrong, and no reason to refuse the run: nobody can copy
    the records any more.

    Args:
        begun: the topics.
        topic_ids: the topics of this run, with Kafka's ids.
        deleted: topics that Kafka does not have.
    """
    notes = []
    for topic, (topic_id, run_id, offsets) in sorted(begun.items()):
        current = topic_ids.get(topic, "")
        if is_other_topic(topic_id, current):
            what = (
                f"Topic {topic} was recreated: its id is {current}, and was {topic_id} when run {run_id} began to copy"
            )
        elif topic in deleted:
            what = f"Kafka no longer has topic {topic}, of which run {run_id} began to copy"
        else:
            continue
        notes.append(
            f"{what} {plural(offsets, 'offset')}. No run has committed an offset of it: what was not written is gone"
            " with the topic."
        )
    return tuple(notes)

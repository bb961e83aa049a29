"""What topics get back when all is restored: kept in the offsets, because it must outlive a run that dies.

It is written in the transaction that claims the topics, before a setting is changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from airflow_connect.errors import OffsetError

if TYPE_CHECKING:
    from airflow_connect.connectors.restore.progress import Progress
    from airflow_connect.connectors.restore.values.progress import ValueProgress


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


def text_of(settings: Mapping[str, str]) -> str:
    """The form in an offset, whose values are numbers and texts."""
    return json.dumps(dict(settings), sort_keys=True) if settings else ""


def remembered(progresses: Iterable[Progress | ValueProgress]) -> list[Remembered]:
    """What is kept, by topic: of each setting, what the newest run has kept for this very topic.

    Raises:
        OffsetError: something else is kept there.
    """
    found: dict[str, Remembered] = {}
    for one in sorted(progresses, key=lambda one: one.run):
        if not one.later:
            continue
        known = found.get(one.target)
        before = known.settings if known is not None and known.topic_id == one.topic_id else {}
        settings = {**before, **settings_in(one.later, one.target)}
        found[one.target] = Remembered(one.target, one.topic_id, settings)
    return [found[topic] for topic in sorted(found)]


def settings_in(text: str, topic: str) -> dict[str, str]:
    """The settings of a topic that `text_of` has written.

    Raises:
        OffsetError: something else is kept there.
    """
    if not text:
        return {}
    try:
        return {str(name): str(value) for name, value in json.loads(text).items()}
    except (ValueError, AttributeError) as error:
        raise OffsetError(
            f"{text!r} is not what a restore keeps of the settings of {topic}.",
            code="restore.offset",
            suggestion="Set the settings of the topic by hand.",
        ) from error

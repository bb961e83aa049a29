"""Which topics records can have after a chain of transformations. A sweep needs this for the files of a dead run.

The driver does not see the records, so names that depend on them are only partly known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from airflow_connect.api.config import plugins
from airflow_connect.config.resolved.transforms import PredicateConfig, TransformConfig
from airflow_connect.layout.names.object_names import TOPIC_CHARACTER
from airflow_connect.transforms.predicates import TopicNameMatches
from airflow_connect.transforms.topics.regex_router import RegexRouter
from airflow_connect.transforms.topics.timestamp_router import TimestampRouter


class TopicName(NamedTuple):
    """A name with possibly unknown parts; None stands for any characters that are legal in topic names."""

    parts: tuple[str | None, ...]

    @property
    def exact(self) -> str | None:
        """The whole name, if it is known."""
        return "".join(part or "" for part in self.parts) if None not in self.parts else None

    @property
    def head(self) -> str:
        """The known beginning of the name."""
        known = self.parts.index(None) if None in self.parts else len(self.parts)
        return "".join(part or "" for part in self.parts[:known])

    @property
    def regex(self) -> str:
        """Regular expression that matches every such name."""
        return "".join(f"{TOPIC_CHARACTER}*" if part is None else re.escape(part) for part in self.parts)


ANY_TOPIC = TopicName((None,))


def final_topics(chain: Sequence[TransformConfig], topic: str) -> list[TopicName]:
    """Names that records of `topic` can have after the chain, sorted by their expressions."""
    names = {TopicName((topic,))}
    for transform in chain:
        names = {after for name in names for after in _after(transform, name)}
    return sorted(names, key=lambda name: name.regex)


def _after(transform: TransformConfig, name: TopicName) -> Iterable[TopicName]:
    """Names after one transformation."""
    renamed = _renamed(transform, name)
    applies = None if transform.predicate is None else _holds(transform.predicate, name)
    if transform.predicate is None or applies is (not transform.negate):
        return {renamed}
    return {name} if applies is transform.negate else {name, renamed}


def _renamed(transform: TransformConfig, name: TopicName) -> TopicName:
    kind = plugins.load(transform.plugin)
    if kind is TimestampRouter:
        return TopicName(_configured(TimestampRouter(), transform).parts_of(name.parts))
    if kind is RegexRouter:
        router = _configured(RegexRouter(), transform)
        return ANY_TOPIC if name.exact is None else TopicName((router.new_name(name.exact),))
    is_ours = transform.plugin.path in plugins.built_in(transform.plugin.kind).values()
    return name if is_ours or not kind.renames_topics else ANY_TOPIC


def _holds(predicate: PredicateConfig, name: TopicName) -> bool | None:
    """Whether a predicate is true for all records of a name; None: it depends on the record, or is unknown."""
    if plugins.load(predicate.plugin) is not TopicNameMatches or name.exact is None:
        return None
    return bool(_configured(TopicNameMatches(), predicate).matches(name.exact))


def _configured(plugin: Any, config: TransformConfig | PredicateConfig) -> Any:
    plugin.configure(config.settings)
    return plugin

"""Which topics are mirrored, and which of their settings.

Source: MirrorSourceConnector.shouldReplicateTopic, DefaultTopicFilter, DefaultConfigPropertyFilter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from airflow_connect.connectors.mirror.policy import ReplicationPolicy
from airflow_connect.java.patterns.compiled import JavaPattern, compile_java_pattern


class Patterns:
    """Java patterns, of which one must match the whole name."""

    def __init__(self, patterns: Iterable[str]) -> None:
        """Compile them.

        Raises:
            PatternError: one cannot be used.
        """
        self._compiled: list[JavaPattern] = [compile_java_pattern(pattern) for pattern in patterns]

    def __contains__(self, name: object) -> bool:
        """Whether one of them matches."""
        return isinstance(name, str) and any(pattern.fullmatch(name) for pattern in self._compiled)


@dataclass(frozen=True, slots=True)
class TopicSelection:
    """Decides which topics of the source cluster are mirrored.

    Attributes:
        include, exclude: `topics` and `topics.exclude`.
        heartbeats: whether heartbeats of other mirrors are mirrored, too.
        policy: knows internal topics and cycles.
    """

    include: Patterns
    exclude: Patterns
    heartbeats: bool
    policy: ReplicationPolicy

    def select(self, topics: Iterable[str]) -> Sequence[str]:
        """The topics to mirror, sorted."""
        return sorted(topic for topic in topics if self._takes(topic))

    def has(self, topic: str) -> bool:
        """Whether `topics` and `topics.exclude` select a topic, whatever its origin is (DefaultTopicFilter)."""
        return topic in self.include and topic not in self.exclude

    def _takes(self, topic: str) -> bool:
        if not self.has(topic) and not (self.heartbeats and self.policy.is_heartbeats(topic)):
            return False
        return not self.policy.is_internal(topic) and not self.policy.is_cycle(topic)

"""Which topics are mirrored, and which of their settings.

Source: MirrorSourceConnector.shouldReplicateTopic, DefaultTopicFilter, DefaultConfigPropertyFilter.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from airflow_connect.connectors.mirror.policy import ReplicationPolicy
from airflow_connect.counting import names
from airflow_connect.java.patterns.compiled import JavaPattern, compile_java_pattern


class Patterns:
    """Java patterns, of which one must match the whole name."""

    def __init__(self, patterns: Iterable[str]) -> None:
        """Compile them.

        Raises:
            PatternError: one cannot be used.
        """
        self._compiled: dict[str, JavaPattern] = {pattern: compile_java_pattern(pattern) for pattern in patterns}

    def __contains__(self, name: object) -> bool:
        """Whether one of them matches."""
        return isinstance(name, str) and any(pattern.fullmatch(name) for pattern in self._compiled.values())

    def matching(self, topics: Collection[str]) -> Iterator[tuple[str, list[str]]]:
        """Each pattern, with the topics that it matches."""
        for text, pattern in self._compiled.items():
            yield text, [topic for topic in topics if pattern.fullmatch(topic)]


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

    def unused(self, topics: Collection[str]) -> Mapping[str, str]:
        """The entries of `topics` that select none of these topics, with the reason as a clause."""
        found: dict[str, str] = {}
        for entry, matching in self.include.matching(topics):
            if not any(self._takes(topic) for topic in matching):
                reasons: dict[str, list[str]] = {}
                for topic in matching:
                    reasons.setdefault(self._why_not(topic), []).append(topic)
                clauses = [f"{why} ({names(left_out)})" for why, left_out in reasons.items()]
                found[entry] = "; ".join(clauses) or "no topic that the principal may describe has such a name"
        return found

    def _why_not(self, topic: str) -> str:
        if self.policy.is_internal(topic):
            return "topics with names of internal ones are never mirrored"
        if self.policy.is_cycle(topic):
            return f"topics that came from {self.policy.target}, by their names, are not mirrored back to it"
        return "topics.exclude excludes what it matches"

    def _takes(self, topic: str) -> bool:
        if not self.has(topic) and not (self.heartbeats and self.policy.is_heartbeats(topic)):
            return False
        return not self.policy.is_internal(topic) and not self.policy.is_cycle(topic)

"""How topics of the source cluster are named in the target cluster.

Source: org.apache.kafka.connect.mirror.{ReplicationPolicy,DefaultReplicationPolicy,IdentityReplicationPolicy} (KIP-382,
KIP-690).
"""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_POLICY = "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"
IDENTITY_POLICY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
POLICIES = (DEFAULT_POLICY, IDENTITY_POLICY)
HEARTBEATS = "heartbeats"


@dataclass(frozen=True, slots=True)
class ReplicationPolicy:
    """Names of remote topics, and what a name says about its origin.

    Attributes:
        source: alias of the source cluster.
        target: alias of the target cluster.
        separator: between alias and topic.
        internal_separator: the same in names of MirrorMaker 2's own topics.
        keeps_names: whether remote topics have the names of their originals (IdentityReplicationPolicy).
    """

    source: str
    target: str
    separator: str = "."
    internal_separator: str = "."
    keeps_names: bool = False

    def remote_topic(self, topic: str) -> str:
        """The name of a topic in the target cluster."""
        return topic if self._keeps_name(topic) else f"{self.source}{self.separator}{topic}"

    def offset_syncs_topic(self, location: str) -> str:
        """The topic with offset syncs in the cluster `source` or `target`; it is named after the other cluster."""
        other = self.target if location == "source" else self.source
        return self._internal(f"mm2-offset-syncs{self.internal_separator}{other}")

    @property
    def checkpoints_topic(self) -> str:
        """The topic of the target cluster with checkpoints of the source cluster's groups."""
        return self._internal(f"{self.source}{self.internal_separator}checkpoints")

    def _internal(self, name: str) -> str:
        return f"{name}{self.internal_separator}internal"

    def is_heartbeats(self, topic: str) -> bool:
        """Whether a topic holds MirrorMaker 2's heartbeats, of this cluster or mirrored from another one."""
        return self._original(topic) == HEARTBEATS

    def is_internal(self, topic: str) -> bool:
        """Whether a topic belongs to Kafka, Kafka Connect or MirrorMaker 2 itself; such topics are never mirrored."""
        suffixes = ("-internal", ".internal", f"{self.internal_separator}internal")
        return topic.startswith(("__", ".")) or topic.endswith(suffixes)

    def is_cycle(self, topic: str) -> bool:
        """Whether a topic was mirrored from the target cluster, directly or through other clusters."""
        while (origin := self._source_of(topic)) is not None:
            if origin == self.target:
                return True
            upstream = topic if self._keeps_name(topic) else self._upstream(topic, origin)
            if upstream == topic:
                return False
            topic = upstream
        return False

    def goes_round(self, topic: str) -> bool:
        """Whether the name of a topic says that its records left the source cluster before, and came back.

        Then two mirrors have different aliases for one cluster, so neither recognises the cycle (KAFKA-9914); an alias
        that holds the separator is never recognised. One occurrence of the alias is no proof: any topic may have it.
        """
        parts, alias = topic.split(self.separator), f"{self.source}{self.separator}"
        rests = (self.separator.join(parts[index:]) for index in range(len(parts)))
        return not self._keeps_name(topic) and sum(rest.startswith(alias) for rest in rests) > 1

    def _keeps_name(self, topic: str) -> bool:
        return self.keeps_names and not topic.endswith(HEARTBEATS)

    def _source_of(self, topic: str) -> str | None:
        """The cluster from which a topic was mirrored; None: it is an original."""
        if self._keeps_name(topic):
            return self.source
        # As Java's String.split: empty parts at the end do not count.
        parts = topic.split(self.separator)
        while parts and not parts[-1]:
            parts.pop()
        return parts[0] if len(parts) > 1 else None

    def _upstream(self, topic: str, origin: str) -> str:
        return topic[len(origin) + len(self.separator) :]

    def _original(self, topic: str) -> str:
        while not self._keeps_name(topic) and (origin := self._source_of(topic)) is not None:
            topic = self._upstream(topic, origin)
        return topic

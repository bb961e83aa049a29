"""One run per connector: the transactional id that a run takes away from its predecessors (invariant 2)."""

from __future__ import annotations


def transactional_id(worker_group_id: str, connector: str) -> str:
    """`<group.id>-<connector>`: the same for every run of a connector, whatever machine it runs on.

    Kafka gives the producer that calls `init_transactions` last a higher epoch and refuses the others
    (KIP-98, KIP-360).
    """
    return f"{worker_group_id}-{connector}"


def sink_group(connector: str) -> str:
    """The consumer group that holds a sink's offsets, as Kafka Connect names it: `connect-<name>`."""
    return f"connect-{connector}"

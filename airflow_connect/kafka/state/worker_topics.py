"""The topics for runs and for offsets of sources, as a worker configuration names them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from airflow_connect.kafka.state import runs_topic
from airflow_connect.kafka.state.compacted_topics import CompactedTopic
from airflow_connect.kafka.state.topic_upkeep import Upkeep

if TYPE_CHECKING:
    from airflow_connect.config.resolved.worker import WorkerConfig
    from airflow_connect.kafka.clients.short_lived import Admin
    from airflow_connect.kafka.state.runs_topic import RunsTopic

Tell = Callable[[str], None]
"""Gets what a topic could not be given, as a sentence."""


def ensure_runs(admin: Admin, worker: WorkerConfig, tell: Tell) -> RunsTopic:
    """Find or create the runs topic; raises as `runs_topic.ensure`."""
    upkeep = Upkeep(worker.runs_topic_settings, worker.alters_state_topics, tell)
    return runs_topic.ensure(admin, worker.runs_topic, worker.runs_partitions, worker.runs_replication_factor, upkeep)


def offsets(worker: WorkerConfig, name: str, tell: Tell) -> CompactedTopic:
    """The topic for offsets of sources; `name`: that of the worker, or `offsets.storage.topic` of a connector."""
    shared = worker.sources
    upkeep = Upkeep(shared.offsets_topic_settings, worker.alters_state_topics, tell)
    return CompactedTopic(
        name, shared.offsets_partitions, shared.offsets_replication_factor, "offset.storage.topic", upkeep
    )

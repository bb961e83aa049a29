"""The keys of the heartbeat connector.

Source: MirrorHeartbeatConfig of Apache Kafka 4.3 for names, types and defaults.
"""

from __future__ import annotations

from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Importance, KeyFamily, Type
from airflow_connect.api.config.typed import KeyGroup
from airflow_connect.api.config.validators import Range
from airflow_connect.connectors.mirror.keys import SOURCE_CLUSTER, TARGET_CLUSTER, PolicyKeys

_HEARTBEATS = KeyGroup("Heartbeats")


class HeartbeatConfig(PolicyKeys):
    """Every key of the heartbeat connector; those of every source are added by the runtime."""

    emits = _HEARTBEATS.low.boolean("emit.heartbeats.enabled", True, "Whether a heartbeat is written in each run.")
    replication_factor = _HEARTBEATS.low.short(
        "heartbeats.topic.replication.factor",
        3,
        "Replicas of the topic heartbeats, if it is created; -1: the cluster's default.",
        Range(-1),
    )

    @classmethod
    def define(cls, definition: ConfigDef) -> None:
        """What no code of the connector reads, and settings of clients."""
        super().define(definition)
        definition.define(
            ConfigKey(
                "emit.heartbeats.interval.seconds", Type.LONG, 1, "Seconds between two heartbeats.", None,
                Importance.LOW, "Heartbeats", ignored="Each run writes one heartbeat.",
            )
        )  # fmt: skip
        definition.define_family(
            KeyFamily(SOURCE_CLUSTER, "Connection to the source cluster; the heartbeat connector does not open it."),
            KeyFamily(TARGET_CLUSTER, "Connection to the target cluster, for creating the topic."),
            KeyFamily("target.admin.", "The admin client of the target cluster; precedes `admin.`."),
            KeyFamily("admin.", "The admin client of the target cluster."),
        )

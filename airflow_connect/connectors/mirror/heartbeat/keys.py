"""Definitions of the heartbeat connector's keys.

Source: MirrorHeartbeatConfig of Apache Kafka 4.3 for names, types and defaults.
"""

from __future__ import annotations

from functools import cache

from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Importance, KeyFamily, Type
from airflow_connect.api.config.validators import Range
from airflow_connect.connectors.mirror import keys

EMIT = "emit.heartbeats.enabled"
REPLICATION_FACTOR = "heartbeats.topic.replication.factor"
_HEARTBEATS = "Heartbeats"


@cache
def heartbeat_keys() -> ConfigDef:
    """Every key of the heartbeat connector; those of every source are added by the runtime."""
    low = Importance.LOW
    definition = ConfigDef().define(
        *keys.cluster_keys(),
        *keys.policy_keys(),
        ConfigKey(EMIT, Type.BOOLEAN, True, "Whether a heartbeat is written in each run.", None, low, _HEARTBEATS),
        ConfigKey(
            REPLICATION_FACTOR, Type.SHORT, 3,
            "Replicas of the topic heartbeats, if it is created; -1: the cluster's default.",
            Range(-1), low, _HEARTBEATS,
        ),
        ConfigKey(
            "emit.heartbeats.interval.seconds", Type.LONG, 1, "Seconds between two heartbeats.", None, low,
            _HEARTBEATS, ignored="Each run writes one heartbeat.",
        ),
    )  # fmt: skip
    definition.define_family(
        KeyFamily(keys.SOURCE_CLUSTER, "Connection to the source cluster; the heartbeat connector does not open it."),
        KeyFamily(keys.TARGET_CLUSTER, "Connection to the target cluster, for creating the topic."),
        KeyFamily("target.admin.", "The admin client of the target cluster; precedes `admin.`."),
        KeyFamily("admin.", "The admin client of the target cluster."),
    )
    definition.define_rule((keys.SOURCE_ALIAS, keys.TARGET_ALIAS), keys.aliases_differ)
    return definition

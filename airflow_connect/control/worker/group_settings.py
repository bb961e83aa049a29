"""How long the group of workers waits for one of them: Kafka Connect's keys, with its defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Importance, Type
from airflow_connect.api.config.validators import Range
from airflow_connect.errors import ConfigError
from airflow_connect.kafka.admin.worker_membership import Timeouts

SESSION, HEARTBEAT, REBALANCE = "session.timeout.ms", "heartbeat.interval.ms", "rebalance.timeout.ms"
LONGEST_MS = 3_600_000
"""The longest session that librdkafka knows."""


def timeouts_of(resolved: Mapping[str, Any]) -> Timeouts:
    """From a worker configuration, references resolved.

    Raises:
        ConfigError: a value is wrong, or a session is too short for its heartbeats.
    """
    default = Timeouts()
    keys = ((SESSION, default.session), (HEARTBEAT, default.heartbeat), (REBALANCE, default.rebalance))
    definition = ConfigDef().define(
        *(ConfigKey(name, Type.INT, ms, "", Range(1, LONGEST_MS), Importance.LOW) for name, ms in keys)
    )
    parsed = definition.parse({name: resolved[name] for name, _ in keys if resolved.get(name) is not None})
    found = Timeouts(parsed[SESSION], parsed[HEARTBEAT], parsed[REBALANCE])
    if found.heartbeat >= found.session:
        raise ConfigError(
            f"{HEARTBEAT}={found.heartbeat} is not less than {SESSION}={found.session}.",
            config_path=HEARTBEAT,
            suggestion=f"Set it to a third of {SESSION}.",
        )
    return found

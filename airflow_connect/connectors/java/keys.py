"""Keys that every Java connector has besides its own and those of all connectors."""

from __future__ import annotations

from typing import Any

from airflow_connect.api.config.typed import KeyGroup
from airflow_connect.api.config.validators import Lambda, Range
from airflow_connect.api.sink import Delivery
from airflow_connect.config.keys.java_hosts import JavaKeys as JavaKeys  # noqa: PLC0414 (of all Java connectors)

_JAVA = KeyGroup("Java")
IDEMPOTENT = "idempotent"
PLUGIN, RUN = "plugin", "run"
AUTO, ALWAYS, NEVER = "auto", "true", "false"


def _check_pause(name: str, value: Any) -> None:
    if value is not None:
        Range(0).check(name, value)


class JavaSourceKeys(JavaKeys):
    """Those of sources: when a run is complete."""

    # fmt: off
    idle_ms = _JAVA.medium.long(
        "airflow.java.idle.ms", 2_000,
        "A run ends when the plugin is ready and has returned nothing for so many milliseconds, in at least"
        " `airflow.java.idle.polls` polls.",
        Range(0), display_name="Idle time",
    )
    idle_polls = _JAVA.low.integer(
        "airflow.java.idle.polls", 2, "How many polls in a row must return nothing before a run ends.",
        Range(1), display_name="Idle polls",
    )
    start_timeout_ms = _JAVA.medium.long(
        "airflow.java.start.timeout.ms", 300_000,
        "How long a plugin that tells whether it is ready (Debezium) may take to get ready, in milliseconds, while it"
        " returns nothing. The run fails after it: it does not count as empty.",
        Range(1_000), display_name="Longest start",
    )
    start_grace_ms = _JAVA.medium.optional_long(
        "airflow.java.start.grace.ms",
        "How long a run waits for the first record of a plugin that does not tell whether it is ready, in milliseconds."
        " Not set: 30000 if the connector has no committed offset, 5000 otherwise.",
        Lambda(_check_pause, "[0,...] or not set"), display_name="Wait for the first record",
    )
    # fmt: on


class JavaSinkKeys(JavaKeys):
    """Those of sinks: what the plugin promises."""

    # fmt: off
    delivery = _JAVA.medium.choice(
        "airflow.java.delivery", Delivery.AT_LEAST_ONCE.value, [Delivery.AT_LEAST_ONCE.value, IDEMPOTENT],
        "What the plugin promises with this configuration. `idempotent`: writing a record again changes nothing, as"
        " with upserts by the record's key.",
        display_name="Delivery",
    )
    offsets = _JAVA.medium.choice(
        "airflow.java.offsets", RUN, [RUN, PLUGIN],
        "`run`: the plugin must confirm every record before the run commits (`preCommit`). `plugin`: the plugin keeps"
        " offsets of its own, and the run commits what it has passed to the plugin.",
        display_name="Offsets",
    )
    flush_timeout_ms = _JAVA.low.long(
        "airflow.java.flush.timeout.ms", 60_000,
        "How long the plugin may take to confirm the records of a run at its end, in milliseconds.",
        Range(0), display_name="Longest flush",
    )
    group_member = _JAVA.low.choice(
        "airflow.java.group.member", AUTO, [AUTO, ALWAYS, NEVER],
        "Whether each task joins the consumer group, for plugins that commit the offsets of the group themselves with"
        " their worker's consumer. `auto`: for Apache's Iceberg sink.",
        display_name="Member of the group",
    )
    # fmt: on


class JavaConnectorKeys(JavaSourceKeys, JavaSinkKeys):
    """All of them, for the page."""

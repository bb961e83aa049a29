"""Definitions of the keys that every source connector has: Kafka Connect's own and ours.

Names, types, defaults, validators and groups of Connect's keys: Kafka 4.3 (SourceConnectorConfig, TopicCreationConfig:
KIP-158, KIP-618). Documentation texts are ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from airflow_connect.api.config.config_def import (
    REQUIRED,
    ConfigDef,
    ConfigKey,
    Importance,
    KeyFamily,
    Problem,
    Type,
    Width,
)
from airflow_connect.api.config.typed import Checks, KeyGroup
from airflow_connect.api.config.validators import CaseInsensitiveValidString, Lambda, Range, ValidList
from airflow_connect.api.config.values import invalid
from airflow_connect.config.keys.sink import (
    AT_LEAST_ONCE,
    AT_MOST_ONCE,
    EXACTLY_ONCE,
    POSITIVE_OR_NONE,
    CommonKeys,
    SinkKeys,
    families,
)
from airflow_connect.java.patterns.compiled import compile_java_pattern
from airflow_connect.java.patterns.nodes import PatternError

TOPIC_CREATION = "topic.creation."
DEFAULT_GROUP = "default"
REPLICATION_FACTOR, PARTITIONS, INCLUDE, EXCLUDE = "replication.factor", "partitions", "include", "exclude"

REQUESTED, REQUIRED_SUPPORT = "requested", "required"
POLL, INTERVAL, CONNECTOR = "poll", "interval", "connector"

_EXACTLY, _CREATION, _RUN = KeyGroup("Exactly Once Support"), KeyGroup("Topic Creation"), KeyGroup("Run")
_OFFSETS, _ERRORS = KeyGroup("Offsets"), KeyGroup("Error Handling")
_GUARANTEES = (EXACTLY_ONCE, AT_LEAST_ONCE, AT_MOST_ONCE)


def _check_positive_or_none(name: str, value: Any) -> None:
    if value is not None:
        Range(0).check(name, value)


def _check_guarantee(name: str, value: Any) -> None:
    if value is not None and value not in _GUARANTEES:
        raise invalid(name, value, f"String must be one of: {', '.join(_GUARANTEES)}")


def _check_not_blank(name: str, value: Any) -> None:
    if value is not None and not str(value).strip():
        raise invalid(name, value, "String must be non-empty")


def _check_count(name: str, value: Any) -> None:
    if value is not None and value < 1 and value != -1:
        raise invalid(name, value, "Value must be at least 1, or -1 to use the broker's default")


def _check_patterns(name: str, value: Any) -> None:
    for pattern in value or ():
        try:
            compile_java_pattern(pattern)
        except PatternError as error:
            raise invalid(name, value, f"Invalid regex: {error}") from None


class SourceKeys(CommonKeys):
    """Keys of every source connector: common ones, transactions, topic creation and the limits of a run."""

    # fmt: off
    requires_exactly_once = _EXACTLY.medium.text(
        "exactly.once.support", REQUESTED,
        "`required`: the run is refused unless the connector declares that it supports exactly-once with this"
        " configuration. `requested`: delivery is exactly-once unless the connector declares that it does not"
        " support it.",
        CaseInsensitiveValidString(REQUESTED, REQUIRED_SUPPORT), width=Width.SHORT, display_name="Exactly once support",
    ).to(lambda chosen: chosen.lower() == REQUIRED_SUPPORT)
    boundary = _EXACTLY.medium.text(
        "transaction.boundary", POLL,
        "Where Kafka transactions end: `poll` after each batch that the task returns, `interval` after"
        " transaction.boundary.interval.ms, `connector` where the task decides.",
        CaseInsensitiveValidString(POLL, INTERVAL, CONNECTOR), width=Width.SHORT, display_name="Transaction Boundary",
    ).to(str.lower)
    boundary_interval_ms = _EXACTLY.low.optional_long(
        "transaction.boundary.interval.ms",
        "Time between two transactions with transaction.boundary=interval, in milliseconds. Not set: the worker's"
        " offset.flush.interval.ms.",
        Lambda(_check_positive_or_none, "[0,...] or not set"), width=Width.SHORT,
        display_name="Transaction boundary interval",
    )
    offsets_topic = _OFFSETS.low.text(
        "offsets.storage.topic", None,
        "Offsets topic of its own for this connector. It is created if it does not exist; the worker's offsets"
        " topic then gets a copy in the same transaction.",
        Lambda(_check_not_blank, "non-empty string or not set"), display_name="Offsets topic",
    ).to(lambda topic: (topic or "").strip())
    delivery_guarantee = _RUN.medium.text(
        "delivery.guarantee", None,
        "`exactly_once`: records and source offsets are one Kafka transaction. `at_least_once`: records first, then"
        " offsets; after a crash between them, records are copied again. `at_most_once`: offsets first, then"
        " records; a crash between them loses records. Not set: exactly_once, unless the connector or the"
        " worker rules it out.",
        Lambda(_check_guarantee, f"[{', '.join(_GUARANTEES)}] or not set"), display_name="Delivery guarantee",
    ).or_blank()
    topic_creation_groups = _CREATION.low.words(
        "topic.creation.groups", "",
        "Names of groups of topics that the connector may create, each with its own"
        " `topic.creation.<group>.include`, `.exclude`, `.partitions`, `.replication.factor` and topic settings."
        " Topics that match no group are created with the settings of `topic.creation.default.*`.",
        ValidList(), width=Width.LONG, display_name="Topic Creation Groups",
    )
    run_idle_polls = _RUN.medium.integer(
        "run.idle.polls", None,
        "A task ends after this many polls in a row without a record. Not set: 3 for sources that never report"
        " their end, no limit for sources that do. A poll that has not returned does not count.",
        POSITIVE_OR_NONE, display_name="Idle polls",
    ).or_none()
    run_max_records = _RUN.medium.optional_long(
        "run.max.records",
        "Maximum number of records that one run copies, shared evenly among its tasks: a task stops after the"
        " batch that reaches its share.",
        POSITIVE_OR_NONE, display_name="Records per run",
    ).or_zero()
    run_max_bytes = _RUN.low.optional_long(
        "run.max.bytes",
        "Maximum number of bytes of keys and values that one run writes, shared among its tasks: a task stops"
        " after the batch that reaches its share.",
        POSITIVE_OR_NONE, display_name="Bytes per run",
    ).or_zero()
    run_max_seconds = _RUN.low.optional_long(
        "run.max.seconds",
        "Maximum time that tasks poll, in seconds. It is checked between two polls; what was copied is"
        " committed.",
        POSITIVE_OR_NONE, display_name="Seconds per run",
    ).or_zero()
    run_interval_seconds = SinkKeys.run_interval_seconds
    run_timeout_seconds = SinkKeys.run_timeout_seconds
    errors_max_records = _ERRORS.medium.optional_long(
        "errors.max.records",
        "Maximum number of records that errors.tolerance=all may skip in one task. If one more fails, the run"
        " fails. Not set: no limit.",
        POSITIVE_OR_NONE, display_name="Failed records per task",
    )
    # fmt: on

    @classmethod
    def define(cls, definition: ConfigDef) -> None:
        """The keys and families."""
        super().define(definition)
        created = KeyFamily(TOPIC_CREATION, "Settings of topics that the connector creates (KIP-158).")
        definition.define_family(*families(), created)

    @classmethod
    def checks(cls) -> Checks:
        """The names of groups."""
        yield (cls.topic_creation_groups,), _groups_are_named_well


def source_keys() -> ConfigDef:
    """A new definition with the keys of every source connector."""
    return ConfigDef().include(SourceKeys.config_def())


def with_topic_creation(definition: ConfigDef, raw: Mapping[str, Any]) -> ConfigDef:
    """`definition` and the keys of every group of topics that a configuration names.

    Source: SourceConnectorConfig.enrich: they exist only if some `topic.creation.` key is given, and then those of
    `default` are required.
    """
    is_known = f"{TOPIC_CREATION}{DEFAULT_GROUP}.{PARTITIONS}" in definition.keys
    if is_known or not any(str(name).startswith(TOPIC_CREATION) for name in raw):
        return definition
    enriched = ConfigDef().include(definition)
    listed = str(raw.get(SourceKeys.topic_creation_groups.name) or "")
    for group in dict.fromkeys([DEFAULT_GROUP, *filter(None, (g.strip() for g in listed.split(",")))]):
        enriched.define(*_group_keys(group))
    return enriched


def _group_keys(group: str) -> list[ConfigKey]:
    low = Importance.LOW
    name = f"{TOPIC_CREATION}{group}."
    default = REQUIRED if group == DEFAULT_GROUP else None
    counts = [
        ConfigKey(
            f"{name}{REPLICATION_FACTOR}", Type.SHORT,
            default, "Replication factor of new topics; -1 is the broker's default.",
            Lambda(_check_count, "Positive number, or -1 to use the broker's default"),
            low, "Topic Creation", display_name=f"Replication Factor of {group}",
        ),
        ConfigKey(
            f"{name}{PARTITIONS}", Type.INT,
            default, "Number of partitions of new topics; -1 is the broker's default.",
            Lambda(_check_count, "Positive number, or -1 to use the broker's default"),
            low, "Topic Creation", display_name=f"Partitions of {group}",
        ),
    ]  # fmt: skip
    if group == DEFAULT_GROUP:
        return counts
    patterns = [
        ConfigKey(
            f"{name}{which}", Type.LIST, "",
            f"Regular expressions of topics that {what} this group; the whole name must match.",
            Lambda(_check_patterns, "list of valid regexes"), low, "Topic Creation",
            display_name=f"{which.title()} of {group}",
        )
        for which, what in ((INCLUDE, "belong to"), (EXCLUDE, "do not belong to"))
    ]  # fmt: skip
    return [*patterns, *counts]


def _groups_are_named_well(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    groups = SourceKeys.topic_creation_groups.of(parsed)
    suggestion = "Remove `default`: it always exists."
    if DEFAULT_GROUP in groups:
        yield Problem(SourceKeys.topic_creation_groups.name, "The group `default` must not be listed.", suggestion)

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
from airflow_connect.api.config.validators import CaseInsensitiveValidString, Lambda, Range, ValidList
from airflow_connect.api.config.values import invalid
from airflow_connect.config.keys import sink as keys
from airflow_connect.java.patterns.compiled import compile_java_pattern
from airflow_connect.java.patterns.nodes import PatternError

EXACTLY_ONCE_SUPPORT = "exactly.once.support"
TRANSACTION_BOUNDARY = "transaction.boundary"
TRANSACTION_BOUNDARY_INTERVAL_MS = "transaction.boundary.interval.ms"
OFFSETS_STORAGE_TOPIC = "offsets.storage.topic"
RUN_IDLE_POLLS = "run.idle.polls"
TOPIC_CREATION = "topic.creation."
TOPIC_CREATION_GROUPS = "topic.creation.groups"
DEFAULT_GROUP = "default"
REPLICATION_FACTOR, PARTITIONS, INCLUDE, EXCLUDE = "replication.factor", "partitions", "include", "exclude"

REQUESTED, REQUIRED_SUPPORT = "requested", "required"
POLL, INTERVAL, CONNECTOR = "poll", "interval", "connector"

_EXACTLY, _CREATION, _RUN, _OFFSETS = "Exactly Once Support", "Topic Creation", "Run", "Offsets"
_ERRORS = "Error Handling"
_GUARANTEES = (keys.EXACTLY_ONCE, keys.AT_LEAST_ONCE, keys.AT_MOST_ONCE)


def source_keys() -> ConfigDef:
    """Keys of every source connector: common ones, transactions, topic creation and the limits of a run."""
    definition = keys.common_keys().define(*_transaction_keys()).define(*_creation_keys()).define(*_run_keys())
    definition.define_family(*_families())
    definition.define_rule((TOPIC_CREATION_GROUPS,), _groups_are_named_well)
    return definition


def with_topic_creation(definition: ConfigDef, raw: Mapping[str, Any]) -> ConfigDef:
    """`definition` and the keys of every group of topics that a configuration names.

    Source: SourceConnectorConfig.enrich: they exist only if some `topic.creation.` key is given, and then those of
    `default` are required.
    """
    is_known = f"{TOPIC_CREATION}{DEFAULT_GROUP}.{PARTITIONS}" in definition.keys
    if is_known or not any(str(name).startswith(TOPIC_CREATION) for name in raw):
        return definition
    enriched = ConfigDef().include(definition)
    listed = str(raw.get(TOPIC_CREATION_GROUPS) or "")
    for group in dict.fromkeys([DEFAULT_GROUP, *filter(None, (g.strip() for g in listed.split(",")))]):
        enriched.define(*_group_keys(group))
    return enriched


def _transaction_keys() -> list[ConfigKey]:
    medium, low = Importance.MEDIUM, Importance.LOW
    return [
        ConfigKey(
            EXACTLY_ONCE_SUPPORT, Type.STRING, REQUESTED,
            "`required`: the run is refused unless the connector declares that it supports exactly-once with this"
            " configuration. `requested`: delivery is exactly-once unless the connector declares that it does not"
            " support it.",
            CaseInsensitiveValidString(REQUESTED, REQUIRED_SUPPORT), medium, _EXACTLY, width=Width.SHORT,
            display_name="Exactly once support",
        ),
        ConfigKey(
            TRANSACTION_BOUNDARY, Type.STRING, POLL,
            "Where Kafka transactions end: `poll` after each batch that the task returns, `interval` after"
            " transaction.boundary.interval.ms, `connector` where the task decides.",
            CaseInsensitiveValidString(POLL, INTERVAL, CONNECTOR), medium, _EXACTLY, width=Width.SHORT,
            display_name="Transaction Boundary",
        ),
        ConfigKey(
            TRANSACTION_BOUNDARY_INTERVAL_MS, Type.LONG, None,
            "Time between two transactions with transaction.boundary=interval, in milliseconds. Not set: the worker's"
            " offset.flush.interval.ms.",
            Lambda(_check_positive_or_none, "[0,...] or not set"), low, _EXACTLY, width=Width.SHORT,
            display_name="Transaction boundary interval",
        ),
        ConfigKey(
            OFFSETS_STORAGE_TOPIC, Type.STRING, None,
            "Offsets topic of its own for this connector. It is created if it does not exist; the worker's offsets"
            " topic then gets a copy in the same transaction.",
            Lambda(_check_not_blank, "non-empty string or not set"), low, _OFFSETS,
            display_name="Offsets topic",
        ),
        ConfigKey(
            keys.DELIVERY_GUARANTEE, Type.STRING, None,
            "`exactly_once`: records and source offsets are one Kafka transaction. `at_least_once`: records first, then"
            " offsets; after a crash between them, records are copied again. `at_most_once`: offsets first, then"
            " records; a crash between them loses records. Not set: exactly_once, unless the connector or the"
            " worker rules it out.",
            Lambda(_check_guarantee, f"[{', '.join(_GUARANTEES)}] or not set"), medium, _RUN,
            display_name="Delivery guarantee",
        ),
    ]  # fmt: skip


def _creation_keys() -> list[ConfigKey]:
    return [
        ConfigKey(
            TOPIC_CREATION_GROUPS, Type.LIST, "",
            "Names of groups of topics that the connector may create, each with its own"
            " `topic.creation.<group>.include`, `.exclude`, `.partitions`, `.replication.factor` and topic settings."
            " Topics that match no group are created with the settings of `topic.creation.default.*`.",
            ValidList(), Importance.LOW, _CREATION, width=Width.LONG, display_name="Topic Creation Groups",
        ),
    ]  # fmt: skip


def _group_keys(group: str) -> list[ConfigKey]:
    low = Importance.LOW
    name = f"{TOPIC_CREATION}{group}."
    default = REQUIRED if group == DEFAULT_GROUP else None
    counts = [
        ConfigKey(
            f"{name}{REPLICATION_FACTOR}", Type.SHORT,
            default, "Replication factor of new topics; -1 is the broker's default.",
            Lambda(_check_count, "Positive number, or -1 to use the broker's default"),
            low, _CREATION, display_name=f"Replication Factor of {group}",
        ),
        ConfigKey(
            f"{name}{PARTITIONS}", Type.INT,
            default, "Number of partitions of new topics; -1 is the broker's default.",
            Lambda(_check_count, "Positive number, or -1 to use the broker's default"),
            low, _CREATION, display_name=f"Partitions of {group}",
        ),
    ]  # fmt: skip
    if group == DEFAULT_GROUP:
        return counts
    patterns = [
        ConfigKey(
            f"{name}{which}", Type.LIST, "",
            f"Regular expressions of topics that {what} this group; the whole name must match.",
            Lambda(_check_patterns, "list of valid regexes"), low, _CREATION,
            display_name=f"{which.title()} of {group}",
        )
        for which, what in ((INCLUDE, "belong to"), (EXCLUDE, "do not belong to"))
    ]  # fmt: skip
    return [*patterns, *counts]


def _run_keys() -> list[ConfigKey]:
    medium, low = Importance.MEDIUM, Importance.LOW
    positive = Lambda(_check_at_least_one_or_none, "[1,...] or not set")
    return [
        ConfigKey(
            RUN_IDLE_POLLS, Type.INT, None,
            "A task ends after this many polls in a row without a record. Not set: 3 for sources that never report"
            " their end, no limit for sources that do. A poll that has not returned does not count.",
            positive, medium, _RUN, display_name="Idle polls",
        ),
        ConfigKey(
            keys.RUN_MAX_RECORDS, Type.LONG, None,
            "Maximum number of records that one run copies, shared evenly among its tasks: a task stops after the"
            " batch that reaches its share.",
            positive, medium, _RUN, display_name="Records per run",
        ),
        ConfigKey(
            keys.RUN_MAX_BYTES, Type.LONG, None,
            "Maximum number of bytes of keys and values that one run writes, shared among its tasks: a task stops"
            " after the batch that reaches its share.",
            positive, low, _RUN, display_name="Bytes per run",
        ),
        ConfigKey(
            keys.RUN_MAX_SECONDS, Type.LONG, None,
            "Maximum time that tasks poll, in seconds. It is checked between two polls; what was copied is"
            " committed.",
            positive, low, _RUN, display_name="Seconds per run",
        ),
        *keys.worker_run_keys(),
        ConfigKey(
            keys.ERRORS_MAX_RECORDS, Type.LONG, None,
            "Maximum number of records that errors.tolerance=all may skip in one task. If one more fails, the run"
            " fails. Not set: no limit.",
            positive, medium, _ERRORS, display_name="Failed records per task",
        ),
    ]  # fmt: skip


def _families() -> list[KeyFamily]:
    return [
        *(family for family in keys.sink_keys().families),
        KeyFamily(TOPIC_CREATION, "Settings of topics that the connector creates (KIP-158)."),
    ]


def _groups_are_named_well(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    groups = parsed[TOPIC_CREATION_GROUPS]
    suggestion = "Remove `default`: it always exists."
    if DEFAULT_GROUP in groups:
        yield Problem(TOPIC_CREATION_GROUPS, "The group `default` must not be listed.", suggestion)


def _check_positive_or_none(name: str, value: Any) -> None:
    if value is not None:
        Range(0).check(name, value)


def _check_at_least_one_or_none(name: str, value: Any) -> None:
    if value is not None:
        Range(1).check(name, value)


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


__all__ = ["source_keys", "with_topic_creation"]

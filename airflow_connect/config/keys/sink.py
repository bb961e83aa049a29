"""Definitions of the keys that every sink connector has: Kafka Connect's own and ours.

Names, types, defaults, validators, importance, groups and messages of Connect's keys: Kafka 4.3
(ConnectorConfig, SinkConnectorConfig), as recorded in answers of its REST API. Documentation texts are ours.
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
from airflow_connect.api.config.patterns import check_java_pattern
from airflow_connect.api.config.plugins import PluginKind, resolve
from airflow_connect.api.config.validators import (
    Lambda,
    NonEmptyStringWithoutControlChars,
    Range,
    ValidList,
    ValidString,
)
from airflow_connect.api.config.values import InvalidValueError, invalid
from airflow_connect.config.keys import transforms as transform_keys
from airflow_connect.config.keys.points_in_time import parse_timestamp_ms
from airflow_connect.errors import ConfigError
from airflow_connect.java.patterns.compiled import compile_java_pattern

NAME = "name"
CONNECTOR_CLASS = "connector.class"
TASKS_MAX = "tasks.max"
TASKS_MAX_ENFORCE = "tasks.max.enforce"
KEY_CONVERTER = "key.converter"
VALUE_CONVERTER = "value.converter"
HEADER_CONVERTER = "header.converter"
CONFIG_ACTION_RELOAD = "config.action.reload"
ERRORS_RETRY_TIMEOUT = "errors.retry.timeout"
ERRORS_RETRY_DELAY_MAX_MS = "errors.retry.delay.max.ms"
ERRORS_TOLERANCE = "errors.tolerance"
ERRORS_MAX_RECORDS = "errors.max.records"
ERRORS_LOG_ENABLE = "errors.log.enable"
ERRORS_LOG_INCLUDE_MESSAGES = "errors.log.include.messages"
TOPICS = "topics"
TOPICS_REGEX = "topics.regex"
DLQ_TOPIC = "errors.deadletterqueue.topic.name"
DLQ_REPLICATION_FACTOR = "errors.deadletterqueue.topic.replication.factor"
DLQ_CONTEXT_HEADERS = "errors.deadletterqueue.context.headers.enable"
FLUSH_ON_END = "flush.on.end"
DELIVERY_GUARANTEE = "delivery.guarantee"
RUN_MAX_RECORDS = "run.max.records"
RUN_MAX_BYTES = "run.max.bytes"
RUN_MAX_SECONDS = "run.max.seconds"
SPLIT_PARTITIONS = "split.partitions"
SPLIT_MIN_RECORDS = "split.min.records"
RUN_INTERVAL_SECONDS = "run.interval.seconds"
RUN_TIMEOUT_SECONDS = "run.timeout.seconds"
RUN_LAG_RECORDS = "run.lag.records"
RUN_LAG_SECONDS = "run.lag.seconds"
RUN_UNTIL_TIMESTAMP = "run.until.timestamp"
OFFSETS_OUT_OF_RANGE = "offsets.out.of.range"
CONSUMER_OVERRIDE = "consumer.override."
PRODUCER_OVERRIDE = "producer.override."
ADMIN_OVERRIDE = "admin.override."

EXACTLY_ONCE, AT_LEAST_ONCE, AT_MOST_ONCE = "exactly_once", "at_least_once", "at_most_once"

_COMMON = "Common"
_ERRORS, _RUN = "Error Handling", "Run"
_ONE_RUN = "A run reads the configuration once, when it starts, so there is nothing to reload."
_NO_VERSIONS = "Only one version of each plugin is installed, so there is nothing to choose."
_LICENCE = "This software needs no licence key."


def common_keys() -> ConfigDef:
    """Keys of every connector."""
    return (
        ConfigDef().define(*_identity_keys()).define(*_converter_keys()).define(*_chain_keys()).define(*_error_keys())
    )


def sink_keys() -> ConfigDef:
    """Keys of every sink connector: common ones, topics, dead letter queue and the limits of a run."""
    definition = common_keys().define(*_topic_keys()).define(*_dead_letter_keys()).define(*_run_keys())
    definition.define_family(*_families())
    definition.define_rule((TOPICS, TOPICS_REGEX), _exactly_one_topic_key)
    definition.define_rule((TOPICS, TOPICS_REGEX, DLQ_TOPIC), _dead_letters_are_not_consumed)
    return definition


def _identity_keys() -> list[ConfigKey]:
    high, low = Importance.HIGH, Importance.LOW
    return [
        ConfigKey(
            NAME, Type.STRING, REQUIRED,
            "Name of the connector, unique in the Kafka cluster: it is part of the name of the consumer group that"
            " holds the offsets, `connect-<name>`.",
            NonEmptyStringWithoutControlChars(), high, _COMMON, order=1, display_name="Connector name",
        ),
        ConfigKey(
            CONNECTOR_CLASS, Type.STRING, REQUIRED,
            "Class of the connector: the Java name that Kafka Connect uses, its alias, an entry point, or a"
            " dotted Python path (package.module:Class).",
            Lambda(_check_connector, "connector class"), high, _COMMON, PluginKind.CONNECTOR, order=2,
            width=Width.LONG, display_name="Connector class",
        ),
        ConfigKey(
            "connector.plugin.version", Type.STRING, None, "Version of the connector class.",
            None, Importance.MEDIUM, _COMMON, ignored=_NO_VERSIONS, order=3, display_name="Connector version",
        ),
        ConfigKey(
            TASKS_MAX, Type.INT, 1,
            "Maximum number of tasks that share the work of a run. Fewer are used if there is less to do.",
            Range(1), high, _COMMON, order=4, width=Width.SHORT, display_name="Tasks max",
        ),
        ConfigKey(
            TASKS_MAX_ENFORCE, Type.BOOLEAN, True, "Whether tasks.max is binding.",
            None, low, _COMMON, ignored="tasks.max is always enforced: a run never creates more tasks.",
            order=5, width=Width.SHORT, display_name="Enforce tasks max",
        ),
        ConfigKey(
            "confluent.license", Type.PASSWORD, None, "Licence key of Confluent's connectors.",
            None, low, _COMMON, ignored=_LICENCE, display_name="Licence",
        ),
    ]  # fmt: skip


def _converter_keys() -> list[ConfigKey]:
    keys = []
    kinds = (
        (KEY_CONVERTER, PluginKind.CONVERTER, "keys"),
        (VALUE_CONVERTER, PluginKind.CONVERTER, "values"),
        (HEADER_CONVERTER, PluginKind.HEADER_CONVERTER, "header values"),
    )
    for name, kind, what in kinds:
        display = name.replace(".", " ").capitalize()
        keys += [
            ConfigKey(
                name, Type.CLASS, None,
                f"Class that turns the bytes of record {what} into typed values. If it is not set, the"
                f" worker's converter is used. Its settings are the keys that start with `{name}.`; the worker's"
                " settings do not apply to it.",
                None, Importance.LOW, _COMMON, kind, width=Width.SHORT, display_name=f"{display} class",
            ),
            ConfigKey(
                f"{name}.plugin.version", Type.STRING, None, f"Version of the class in {name}.",
                None, Importance.LOW, _COMMON, ignored=_NO_VERSIONS, width=Width.SHORT,
                display_name=f"{display} version",
            ),
        ]  # fmt: skip
    return keys


def _chain_keys() -> list[ConfigKey]:
    low = Importance.LOW
    return [
        *transform_keys.list_keys(),
        ConfigKey(
            CONFIG_ACTION_RELOAD, Type.STRING, "restart",
            "What Kafka Connect does with a running connector when a config provider's value changes.",
            ValidString("none", "restart"), low, _COMMON, ignored=_ONE_RUN, display_name="Reload Action",
        ),
    ]  # fmt: skip


def _error_keys() -> list[ConfigKey]:
    medium = Importance.MEDIUM
    return [
        ConfigKey(
            ERRORS_RETRY_TIMEOUT, Type.LONG, 0,
            "How long the conversion of a record is retried after a temporary failure, such as an unavailable schema"
            " registry, in milliseconds. 0: no retries, -1: forever. Kafka and the store have their own retries.",
            None, medium, _ERRORS, display_name="Retry Timeout for Errors",
        ),
        ConfigKey(
            ERRORS_RETRY_DELAY_MAX_MS, Type.LONG, 60000,
            "Longest pause between two of these retries, in milliseconds. Pauses start at 300 ms, double each time,"
            " and are randomised once they reach this limit.",
            None, medium, _ERRORS, display_name="Maximum Delay Between Retries for Errors",
        ),
        ConfigKey(
            ERRORS_TOLERANCE, Type.STRING, "none",
            "What happens to a record that cannot be converted or written: `none` fails the run before"
            " anything becomes visible, `all` skips the record, counts it and sends it to the dead letter queue if"
            " there is one.",
            ValidString("none", "all"), medium, _ERRORS, width=Width.SHORT, display_name="Error Tolerance",
        ),
        ConfigKey(
            ERRORS_LOG_ENABLE, Type.BOOLEAN, False,
            "Whether every tolerated error is written to the log. Errors that fail the run always are.",
            None, medium, _ERRORS, width=Width.SHORT, display_name="Log Errors",
        ),
        ConfigKey(
            ERRORS_LOG_INCLUDE_MESSAGES, Type.BOOLEAN, False,
            "Whether that log line includes the record's topic, partition, offset and timestamp.",
            None, medium, _ERRORS, width=Width.SHORT, display_name="Log Error Details",
        ),
    ]  # fmt: skip


def _topic_keys() -> list[ConfigKey]:
    high = Importance.HIGH
    return [
        ConfigKey(
            TOPICS, Type.LIST, "",
            "Topics to copy, comma separated. Exactly one of topics and topics.regex must be set.",
            ValidList(), high, _COMMON, order=4, width=Width.LONG, display_name="Topics",
        ),
        ConfigKey(
            TOPICS_REGEX, Type.STRING, "",
            "Regular expression that must match the whole name of a topic. All matching topics are copied; they are"
            " looked up at the start of every run.",
            Lambda(check_java_pattern, "valid regex"), high, _COMMON, order=4, width=Width.LONG,
            display_name="Topics regex",
        ),
    ]  # fmt: skip


def _dead_letter_keys() -> list[ConfigKey]:
    medium = Importance.MEDIUM
    return [
        ConfigKey(
            DLQ_TOPIC, Type.STRING, "",
            "Topic of the dead letter queue. It receives the unchanged bytes of every record that errors.tolerance=all"
            " skips, in the same Kafka transaction as the offsets. Blank: such records are only counted.",
            None, medium, _ERRORS, order=6, display_name="Dead Letter Queue Topic Name",
        ),
        ConfigKey(
            DLQ_REPLICATION_FACTOR, Type.SHORT, 3,
            "Replication factor for creating the dead letter queue's topic (1 partition) when it does not"
            " exist.",
            None, medium, _ERRORS, order=7, display_name="Dead Letter Queue Topic Replication Factor",
        ),
        ConfigKey(
            DLQ_CONTEXT_HEADERS, Type.BOOLEAN, False,
            "Whether headers `__connect.errors.*` of a dead letter say where it came from and what went"
            " wrong.",
            None, medium, _ERRORS, order=8, display_name="Enable Error Context Headers",
        ),
    ]  # fmt: skip


def _run_keys() -> list[ConfigKey]:
    medium, low = Importance.MEDIUM, Importance.LOW
    positive = Lambda(_check_positive_or_none, "[1,...] or not set")
    return [
        ConfigKey(
            FLUSH_ON_END, Type.BOOLEAN, True,
            "Whether files that are not full at the end of a run are published. false: their records are left for"
            " the next run, which produces the same objects as a connector that runs"
            " ever.",
            None, medium, _RUN, display_name="Flush on end",
        ),
        ConfigKey(
            DELIVERY_GUARANTEE, Type.STRING, EXACTLY_ONCE,
            "`exactly_once`: output and offsets become final together. `at_least_once`: output first, then"
            " offsets; after a crash between them, records are copied again. `at_most_once`: offsets first, then"
            " output; a crash between them loses records.",
            ValidString(EXACTLY_ONCE, AT_LEAST_ONCE, AT_MOST_ONCE), medium, _RUN,
            display_name="Delivery guarantee",
        ),
        ConfigKey(
            RUN_MAX_RECORDS, Type.LONG, None,
            "Maximum number of offsets that one run copies, shared fairly among all partitions; the rest is left for"
            " the next run. Gaps between offsets count, so the number of records may be lower.",
            positive, medium, _RUN, display_name="Records per run",
        ),
        ConfigKey(
            RUN_MAX_BYTES, Type.LONG, None,
            "Maximum number of bytes of keys and values that one run copies, shared among its tasks: a task stops"
            " after the batch that exceeds its share.",
            positive, low, _RUN, display_name="Bytes per run",
        ),
        ConfigKey(
            RUN_MAX_SECONDS, Type.LONG, None,
            "Maximum time that one run spends copying, in seconds. Tasks then stop at a record boundary, and"
            " everything copied so far is published and committed.",
            positive, low, _RUN, display_name="Seconds per run",
        ),
        ConfigKey(
            SPLIT_PARTITIONS, Type.BOOLEAN, True,
            "Whether a partition may be divided among several tasks, if that makes a run shorter: each task copies a"
            " range of its offsets. For sinks that write files, with flush.on.end=true. A range begins a new file.",
            None, low, _RUN, width=Width.SHORT, display_name="Split partitions",
        ),
        ConfigKey(
            SPLIT_MIN_RECORDS, Type.LONG, 1_000_000,
            "Smallest number of offsets in a range of a divided partition. It has fewer if records are so large that"
            " the last run wrote 256 MiB for fewer. Cuts are at multiples of flush.size from the first offset.",
            Range(1), low, _RUN, display_name="Records per range",
        ),
        *worker_run_keys(),
        ConfigKey(
            RUN_LAG_RECORDS, Type.LONG, None,
            "`airflow-connect worker` begins a run only if at least so many offsets are not copied, over all"
            " partitions, or if run.lag.seconds is reached. Gaps between offsets count.",
            positive, low, _RUN, display_name="Run when so many records wait",
        ),
        ConfigKey(
            RUN_LAG_SECONDS, Type.LONG, None,
            "`airflow-connect worker` begins a run only if the oldest record that is not copied is so many seconds old,"
            " by its timestamp, or if run.lag.records is reached.",
            positive, low, _RUN, display_name="Run when a record waits so long",
        ),
        ConfigKey(
            RUN_UNTIL_TIMESTAMP, Type.STRING, "",
            "Copy only records before the first one with this timestamp or a later one, per partition:"
            " milliseconds since the epoch, or ISO 8601 (without a zone: UTC). Blank: up to the end of the"
            " log at planning.",
            Lambda(_check_timestamp, "epoch milliseconds or ISO 8601"), low, _RUN, display_name="Run until",
        ),
        ConfigKey(
            ERRORS_MAX_RECORDS, Type.LONG, None,
            "Maximum number of records in one run that errors.tolerance=all may skip. If one more fails, the run"
            " fails, and nothing becomes visible. Not set: no limit.",
            positive, medium, _ERRORS, display_name="Failed records per run",
        ),
        ConfigKey(
            OFFSETS_OUT_OF_RANGE, Type.STRING, "",
            "Where to resume if the committed offset is no longer in the log, or the topic was recreated: `earliest`,"
            " `latest` or `nearest` (the closest end of the log). If staged files of an open manifest are lost and"
            " Kafka no longer holds all of their records, each of them finishes the manifest with what is left. Blank:"
            " the run fails and shows what is missing.",
            ValidString("", "earliest", "latest", "nearest"), medium, _RUN,
            display_name="Offsets out of range",
        ),
    ]  # fmt: skip


def worker_run_keys() -> list[ConfigKey]:
    """How often, and how long, a worker runs a connector; the same for sinks and sources."""
    positive, low = Lambda(_check_positive_or_none, "[1,...] or not set"), Importance.LOW
    return [
        ConfigKey(
            RUN_INTERVAL_SECONDS, Type.LONG, None,
            "Pause between two runs by `airflow-connect worker`, in seconds. Not set: that of the worker. Other ways to"
            " run a connector do not use it.",
            positive, low, _RUN, display_name="Seconds between runs",
        ),
        ConfigKey(
            RUN_TIMEOUT_SECONDS, Type.LONG, None,
            "`airflow-connect worker` ends a run that takes longer than this, in seconds; what it has not committed is"
            " left to the next run. Not set: that of the worker. Other ways to run a connector do not use it: a task of"
            " Airflow has its execution_timeout.",
            positive, low, _RUN, display_name="Longest run, in seconds",
        ),
    ]  # fmt: skip


def _families() -> list[KeyFamily]:
    overrides = "Settings of the {} that this connector uses, subject to connector.client.config.override.policy."
    return [
        KeyFamily(f"{KEY_CONVERTER}.", "Settings of the key converter."),
        KeyFamily(f"{VALUE_CONVERTER}.", "Settings of the value converter."),
        KeyFamily(f"{HEADER_CONVERTER}.", "Settings of the header converter."),
        KeyFamily(CONSUMER_OVERRIDE, overrides.format("Kafka consumer")),
        KeyFamily(PRODUCER_OVERRIDE, overrides.format("Kafka producer")),
        KeyFamily(ADMIN_OVERRIDE, overrides.format("Kafka admin client")),
        *transform_keys.alias_families(),
        KeyFamily("confluent.topic.", "Licence topic of Confluent's connectors.", _LICENCE),
    ]


def _check_connector(name: str, value: Any) -> None:
    """Source: the text of Kafka Connect's Plugins.newConnector."""
    try:
        resolve(PluginKind.CONNECTOR, value or "")
    except ConfigError:
        text = f"Failed to find any class that implements Connector and which name matches {value}"
        raise InvalidValueError(text) from None


def _check_positive_or_none(name: str, value: Any) -> None:
    if value is not None:
        Range(1).check(name, value)


def _check_timestamp(name: str, value: Any) -> None:
    if value:
        try:
            parse_timestamp_ms(value)
        except ValueError as error:
            raise invalid(name, value, str(error)) from None


def _exactly_one_topic_key(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    """Source: SinkConnectorConfig.validate, which puts the text on both keys."""
    topics, regex = parsed[TOPICS], parsed[TOPICS_REGEX]
    suggestion = "Set topics to a comma separated list, or topics.regex to a regular expression, and not both."
    if topics and regex:
        text = "topics and topics.regex are mutually exclusive options, but both are set."
    elif not topics and not regex:
        text = "Must configure one of topics or topics.regex"
    else:
        return []
    return [Problem(key, text, suggestion) for key in (TOPICS, TOPICS_REGEX)]


def _dead_letters_are_not_consumed(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    """Source: SinkConnectorConfig.validate; a queue that feeds itself never ends."""
    queue, topics, regex = parsed[DLQ_TOPIC], parsed[TOPICS], parsed[TOPICS_REGEX]
    if not queue:
        return
    suggestion = f"Name another topic in {DLQ_TOPIC}."
    listed = ", ".join(topics)
    if queue in topics:
        yield Problem(
            TOPICS,
            f"The DLQ topic '{queue}' may not be included in the list of topics ('topics=[{listed}]')"
            " consumed by the connector",
            suggestion,
        )
    if regex and compile_java_pattern(regex).fullmatch(queue):
        yield Problem(
            TOPICS_REGEX,
            f"The DLQ topic '{queue}' may not be matched by the regex for the topics"
            f" ('topics.regex={regex}') consumed by the connector",
            suggestion,
        )


__all__ = ["common_keys", "sink_keys"]

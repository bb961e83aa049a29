"""Definitions of the keys that every sink connector has: Kafka Connect's own and ours.

Names, types, defaults, validators, importance, groups and messages of Connect's keys: Kafka 4.3
(ConnectorConfig, SinkConnectorConfig), as recorded in answers of its REST API. Documentation texts are ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from airflow_connect.api.config.config_def import REQUIRED, ConfigDef, KeyFamily, Problem, Width
from airflow_connect.api.config.patterns import check_java_pattern
from airflow_connect.api.config.plugins import PREFERS_JAVA, PluginKind, resolve, resolve_connector
from airflow_connect.api.config.typed import Checks, KeyGroup, TypedConfig, TypedKey
from airflow_connect.api.config.validators import (
    Lambda,
    NonEmptyStringWithoutControlChars,
    Range,
    ValidList,
    ValidString,
)
from airflow_connect.api.config.values import InvalidValueError, invalid
from airflow_connect.config.keys.points_in_time import parse_timestamp_ms
from airflow_connect.config.keys.transform_classes import PREDICATE_KIND, TRANSFORMATION_KIND
from airflow_connect.config.keys.transforms import alias_families, check_unique
from airflow_connect.errors import ConfigError
from airflow_connect.java.patterns.compiled import compile_java_pattern

NAME, CONNECTOR_CLASS, TOPICS, TOPICS_REGEX = "name", "connector.class", "topics", "topics.regex"
OFFSETS_OUT_OF_RANGE = "offsets.out.of.range"
KEY_CONVERTER, VALUE_CONVERTER, HEADER_CONVERTER = "key.converter", "value.converter", "header.converter"
CONSUMER_OVERRIDE, PRODUCER_OVERRIDE, ADMIN_OVERRIDE = "consumer.override.", "producer.override.", "admin.override."
EXACTLY_ONCE, AT_LEAST_ONCE, AT_MOST_ONCE = "exactly_once", "at_least_once", "at_most_once"

_COMMON, _ERRORS, _RUN = KeyGroup("Common"), KeyGroup("Error Handling"), KeyGroup("Run")
_TRANSFORMS, _PREDICATES, _JAVA = KeyGroup("Transforms"), KeyGroup("Predicates"), KeyGroup("Java")
_ONE_RUN = "A run reads the configuration once, when it starts, so there is nothing to reload."
_NO_VERSIONS = "Only one version of each plugin is installed, so there is nothing to choose."
_LICENCE = "This software needs no licence key."


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


POSITIVE_OR_NONE = Lambda(_check_positive_or_none, "[1,...] or not set")


def _check_timestamp(name: str, value: Any) -> None:
    if value:
        try:
            parse_timestamp_ms(value)
        except ValueError as error:
            raise invalid(name, value, str(error)) from None


def _until(text: str) -> int | None:
    return parse_timestamp_ms(text) if text else None


def _converter(name: str, kind: PluginKind, what: str) -> TypedKey[Any]:
    return _COMMON.low.optional_plugin(
        name,
        f"Class that turns the bytes of record {what} into typed values. If it is not set, the"
        f" worker's converter is used. Its settings are the keys that start with `{name}.`; the worker's"
        " settings do not apply to it.",
        kind,
        width=Width.SHORT,
        display_name=f"{_title(name)} class",
    )


def _converter_version(name: str) -> TypedKey[Any]:
    return _COMMON.low.optional_text(
        f"{name}.plugin.version",
        f"Version of the class in {name}.",
        ignored=_NO_VERSIONS,
        width=Width.SHORT,
        display_name=f"{_title(name)} version",
    )


def _title(name: str) -> str:
    return name.replace(".", " ").capitalize()


class CommonKeys(TypedConfig):
    """Keys of every connector."""

    # fmt: off
    name = _COMMON.high.text(
        NAME, REQUIRED,
        "Name of the connector, unique in the Kafka cluster: it is part of the name of the consumer group that"
        " holds the offsets, `connect-<name>`.",
        NonEmptyStringWithoutControlChars(), order=1, display_name="Connector name",
    )
    connector = _COMMON.high.text(
        CONNECTOR_CLASS, REQUIRED,
        "Class of the connector: the Java name that Kafka Connect uses, its alias, an entry point, or a"
        " dotted Python path (package.module:Class).",
        Lambda(_check_connector, "connector class"), plugin=PluginKind.CONNECTOR, order=2,
        width=Width.LONG, display_name="Connector class",
    ).to(partial(resolve, PluginKind.CONNECTOR))
    _plugin_version = _COMMON.medium.text(
        "connector.plugin.version", None, "Version of the connector class.",
        ignored=_NO_VERSIONS, order=3, display_name="Connector version",
    )
    tasks_max = _COMMON.high.integer(
        "tasks.max", 1, "Maximum number of tasks that share the work of a run. Fewer are used if there is less to do.",
        Range(1), order=4, width=Width.SHORT, display_name="Tasks max",
    )
    _tasks_max_enforce = _COMMON.low.boolean(
        "tasks.max.enforce", True, "Whether tasks.max is binding.",
        ignored="tasks.max is always enforced: a run never creates more tasks.", order=5, width=Width.SHORT,
        display_name="Enforce tasks max",
    )
    _license = _COMMON.low.password(
        "confluent.license", None, "Licence key of Confluent's connectors.",
        ignored=_LICENCE, display_name="Licence",
    )
    _key_converter = _converter(KEY_CONVERTER, PluginKind.CONVERTER, "keys")
    _key_converter_version = _converter_version(KEY_CONVERTER)
    _value_converter = _converter(VALUE_CONVERTER, PluginKind.CONVERTER, "values")
    _value_converter_version = _converter_version(VALUE_CONVERTER)
    _header_converter = _converter(HEADER_CONVERTER, PluginKind.HEADER_CONVERTER, "header values")
    _header_converter_version = _converter_version(HEADER_CONVERTER)
    _transforms = _TRANSFORMS.low.words(
        TRANSFORMATION_KIND.list_key, "",
        "Aliases of the transformations to apply to every record, in this order. Each one is described by keys"
        " that begin with `transforms.<alias>.`.",
        Lambda(check_unique, "unique transformation aliases"), width=Width.LONG, display_name="Transforms",
    )
    _predicates = _PREDICATES.low.words(
        PREDICATE_KIND.list_key, "",
        "Aliases of the predicates that transformations name. Each one is described by keys that begin with"
        " `predicates.<alias>.`.",
        Lambda(check_unique, "unique predicate aliases"), width=Width.LONG, display_name="Predicates",
    )
    _config_action_reload = _COMMON.low.text(
        "config.action.reload", "restart",
        "What Kafka Connect does with a running connector when a config provider's value changes.",
        ValidString("none", "restart"), ignored=_ONE_RUN, display_name="Reload Action",
    )
    errors_retry_timeout_ms = _ERRORS.medium.long(
        "errors.retry.timeout", 0,
        "How long the conversion of a record is retried after a temporary failure, such as an unavailable schema"
        " registry, in milliseconds. 0: no retries, -1: forever. Kafka and the store have their own retries.",
        display_name="Retry Timeout for Errors",
    )
    errors_retry_delay_max_ms = _ERRORS.medium.long(
        "errors.retry.delay.max.ms", 60000,
        "Longest pause between two of these retries, in milliseconds. Pauses start at 300 ms, double each time,"
        " and are randomised once they reach this limit.",
        display_name="Maximum Delay Between Retries for Errors",
    )
    tolerates_errors = _ERRORS.medium.text(
        "errors.tolerance", "none",
        "What happens to a record that cannot be converted or written: `none` fails the run before"
        " anything becomes visible, `all` skips the record, counts it and sends it to the dead letter queue if"
        " there is one.",
        ValidString("none", "all"), width=Width.SHORT, display_name="Error Tolerance",
    ).equals("all")
    logs_errors = _ERRORS.medium.boolean(
        "errors.log.enable", False,
        "Whether every tolerated error is written to the log. Errors that fail the run always are.",
        width=Width.SHORT, display_name="Log Errors",
    )
    logs_records = _ERRORS.medium.boolean(
        "errors.log.include.messages", False,
        "Whether that log line includes the record's topic, partition, offset and timestamp.",
        width=Width.SHORT, display_name="Log Error Details",
    )
    prefers_java = _JAVA.low.boolean(
        PREFERS_JAVA, False,
        "Whether connector.class names a Java class of the worker's plugin.path if this package has a connector of the"
        " same name, too.",
    )
    # fmt: on

    def __init__(self, raw: Mapping[str, Any], parsed: Mapping[str, Any]) -> None:
        """Read each key's value; which class `connector.class` names depends on two keys."""
        super().__init__(raw, parsed)
        if self.prefers_java:
            self._values[CONNECTOR_CLASS] = resolve_connector(parsed)


class SinkKeys(CommonKeys):
    """Keys of every sink connector: common ones, topics, dead letter queue and the limits of a run."""

    # fmt: off
    topics = _COMMON.high.words(
        TOPICS, "", "Topics to copy, comma separated. Exactly one of topics and topics.regex must be set.",
        ValidList(), order=4, width=Width.LONG, display_name="Topics",
    )
    topics_regex = _COMMON.high.text(
        TOPICS_REGEX, "",
        "Regular expression that must match the whole name of a topic. All matching topics are copied; they are"
        " looked up at the start of every run.",
        Lambda(check_java_pattern, "valid regex"), order=4, width=Width.LONG, display_name="Topics regex",
    )
    dead_letter_topic = _ERRORS.medium.text(
        "errors.deadletterqueue.topic.name", "",
        "Topic of the dead letter queue. It receives the unchanged bytes of every record that errors.tolerance=all"
        " skips, in the same Kafka transaction as the offsets. Blank: such records are only counted.",
        order=6, display_name="Dead Letter Queue Topic Name",
    )
    dead_letter_replication_factor = _ERRORS.medium.short(
        "errors.deadletterqueue.topic.replication.factor", 3,
        "Replication factor for creating the dead letter queue's topic (1 partition) when it does not"
        " exist.",
        order=7, display_name="Dead Letter Queue Topic Replication Factor",
    )
    dead_letter_headers = _ERRORS.medium.boolean(
        "errors.deadletterqueue.context.headers.enable", False,
        "Whether headers `__connect.errors.*` of a dead letter say where it came from and what went"
        " wrong.",
        order=8, display_name="Enable Error Context Headers",
    )
    flush_on_end = _RUN.medium.boolean(
        "flush.on.end", True,
        "Whether files that are not full at the end of a run are published. false: their records are left for"
        " the next run, which produces the same objects as a connector that is never stopped.",
        display_name="Flush on end",
    )
    delivery_guarantee = _RUN.medium.text(
        "delivery.guarantee", EXACTLY_ONCE,
        "`exactly_once`: output and offsets become final together. `at_least_once`: output first, then"
        " offsets; after a crash between them, records are copied again. `at_most_once`: offsets first, then"
        " output; a crash between them loses records.",
        ValidString(EXACTLY_ONCE, AT_LEAST_ONCE, AT_MOST_ONCE), display_name="Delivery guarantee",
    )
    run_max_records = _RUN.medium.optional_long(
        "run.max.records",
        "Maximum number of offsets that one run copies, shared fairly among all partitions; the rest is left for"
        " the next run. Gaps between offsets count, so the number of records may be lower.",
        POSITIVE_OR_NONE, display_name="Records per run",
    ).or_zero()
    run_max_bytes = _RUN.low.optional_long(
        "run.max.bytes",
        "Maximum number of bytes of keys and values that one run copies, shared among its tasks: a task stops"
        " after the batch that exceeds its share.",
        POSITIVE_OR_NONE, display_name="Bytes per run",
    ).or_zero()
    run_max_seconds = _RUN.low.optional_long(
        "run.max.seconds",
        "Maximum time that one run spends copying, in seconds. Tasks then stop at a record boundary, and"
        " everything copied so far is published and committed.",
        POSITIVE_OR_NONE, display_name="Seconds per run",
    ).or_zero()
    split_partitions = _RUN.low.boolean(
        "split.partitions", True,
        "Whether a partition may be divided among several tasks, if that makes a run shorter: each task copies a"
        " range of its offsets. For sinks that write files, with flush.on.end=true. A range begins a new file.",
        width=Width.SHORT, display_name="Split partitions",
    )
    split_min_records = _RUN.low.long(
        "split.min.records", 1_000_000,
        "Smallest number of offsets in a range of a divided partition. It has fewer if records are so large that"
        " the last run wrote 256 MiB for fewer. Cuts are at multiples of flush.size from the first offset.",
        Range(1), display_name="Records per range",
    )
    run_interval_seconds = _RUN.low.optional_long(
        "run.interval.seconds",
        "Pause between two runs by `airflow-connect worker`, in seconds. Not set: that of the worker. Other ways to"
        " run a connector do not use it.",
        POSITIVE_OR_NONE, display_name="Seconds between runs",
    )
    run_timeout_seconds = _RUN.low.optional_long(
        "run.timeout.seconds",
        "`airflow-connect worker` ends a run that takes longer than this, in seconds; what it has not committed is"
        " left to the next run. Not set: that of the worker. Other ways to run a connector do not use it: a task of"
        " Airflow has its execution_timeout.",
        POSITIVE_OR_NONE, display_name="Longest run, in seconds",
    )
    run_lag_records = _RUN.low.optional_long(
        "run.lag.records",
        "`airflow-connect worker` begins a run only if at least so many offsets are not copied, over all"
        " partitions, or if run.lag.seconds is reached. Gaps between offsets count.",
        POSITIVE_OR_NONE, display_name="Run when so many records wait",
    )
    run_lag_seconds = _RUN.low.optional_long(
        "run.lag.seconds",
        "`airflow-connect worker` begins a run only if the oldest record that is not copied is so many seconds old,"
        " by its timestamp, or if run.lag.records is reached.",
        POSITIVE_OR_NONE, display_name="Run when a record waits so long",
    )
    run_until_timestamp_ms = _RUN.low.text(
        "run.until.timestamp", "",
        "Copy only records before the first one with this timestamp or a later one, per partition:"
        " milliseconds since the epoch, or ISO 8601 (without a zone: UTC). Blank: up to the end of the"
        " log at planning.",
        Lambda(_check_timestamp, "epoch milliseconds or ISO 8601"), display_name="Run until",
    ).to(_until)
    errors_max_records = _ERRORS.medium.optional_long(
        "errors.max.records",
        "Maximum number of records in one run that errors.tolerance=all may skip. If one more fails, the run"
        " fails, and nothing becomes visible. Not set: no limit.",
        POSITIVE_OR_NONE, display_name="Failed records per run",
    )
    offsets_out_of_range = _RUN.medium.text(
        OFFSETS_OUT_OF_RANGE, "",
        "Where to resume if the committed offset is no longer in the log, or the topic was recreated: `earliest`,"
        " `latest` or `nearest` (the closest end of the log). If staged files of an open manifest are lost and"
        " Kafka no longer holds all of their records, each of them finishes the manifest with what is left. Blank:"
        " the run fails and shows what is missing.",
        ValidString("", "earliest", "latest", "nearest"), display_name="Offsets out of range",
    )
    # fmt: on

    @classmethod
    def define(cls, definition: ConfigDef) -> None:
        """The keys and families."""
        super().define(definition)
        definition.define_family(*families())

    @classmethod
    def checks(cls) -> Checks:
        """What several keys must have together."""
        yield (cls.topics, cls.topics_regex), _exactly_one_topic_key
        yield (cls.topics, cls.topics_regex, cls.dead_letter_topic), _dead_letters_are_not_consumed


def sink_keys() -> ConfigDef:
    """A new definition with the keys of every sink connector."""
    return ConfigDef().include(SinkKeys.config_def())


def families() -> list[KeyFamily]:
    """The families of keys of every connector."""
    overrides = "Settings of the {} that this connector uses, subject to connector.client.config.override.policy."
    return [
        KeyFamily(f"{KEY_CONVERTER}.", "Settings of the key converter."),
        KeyFamily(f"{VALUE_CONVERTER}.", "Settings of the value converter."),
        KeyFamily(f"{HEADER_CONVERTER}.", "Settings of the header converter."),
        KeyFamily(CONSUMER_OVERRIDE, overrides.format("Kafka consumer")),
        KeyFamily(PRODUCER_OVERRIDE, overrides.format("Kafka producer")),
        KeyFamily(ADMIN_OVERRIDE, overrides.format("Kafka admin client")),
        *alias_families(),
        KeyFamily("confluent.topic.", "Licence topic of Confluent's connectors.", _LICENCE),
    ]


def _exactly_one_topic_key(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    """Source: SinkConnectorConfig.validate, which puts the text on both keys."""
    topics, regex = SinkKeys.topics.of(parsed), SinkKeys.topics_regex.of(parsed)
    suggestion = "Set topics to a comma separated list, or topics.regex to a regular expression, and not both."
    if topics and regex:
        text = "topics and topics.regex are mutually exclusive options, but both are set."
    elif not topics and not regex:
        text = "Must configure one of topics or topics.regex"
    else:
        return []
    return [Problem(key.name, text, suggestion) for key in (SinkKeys.topics, SinkKeys.topics_regex)]


def _dead_letters_are_not_consumed(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    """Source: SinkConnectorConfig.validate; a queue that feeds itself never ends."""
    keys = SinkKeys
    queue, topics, regex = keys.dead_letter_topic.of(parsed), keys.topics.of(parsed), keys.topics_regex.of(parsed)
    if not queue:
        return
    suggestion = f"Name another topic in {SinkKeys.dead_letter_topic}."
    listed = ", ".join(topics)
    if queue in topics:
        yield Problem(
            SinkKeys.topics.name,
            f"The DLQ topic '{queue}' may not be included in the list of topics ('topics=[{listed}]')"
            " consumed by the connector",
            suggestion,
        )
    if regex and compile_java_pattern(regex).fullmatch(queue):
        yield Problem(
            SinkKeys.topics_regex.name,
            f"The DLQ topic '{queue}' may not be matched by the regex for the topics"
            f" ('topics.regex={regex}') consumed by the connector",
            suggestion,
        )

"""The typed configuration that every sink connector has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_connect.api.config import plugins
from airflow_connect.api.config.config_def import ConfigDef, IgnoredKey, UnknownKey
from airflow_connect.api.config.values import coerce_config
from airflow_connect.config.keys import sink as keys
from airflow_connect.config.keys.points_in_time import parse_timestamp_ms
from airflow_connect.config.keys.transforms import with_chain
from airflow_connect.config.resolved.transforms import TransformConfig, transforms_of
from airflow_connect.errors import ConfigError

CONVERTER_TYPE = "converter.type"


@dataclass(frozen=True, slots=True)
class ConverterConfig:
    """A converter and its settings.

    Attributes:
        plugin: which class; `plugins.load(plugin)` imports it.
        settings: the nested keys without their prefix, and `converter.type` = `key`, `value` or `header`.
    """

    plugin: plugins.PluginRef
    settings: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class ErrorConfig:
    """What happens to records that cannot be converted or written (`errors.*`).

    Attributes:
        tolerate: `errors.tolerance=all`.
        retry_timeout_ms: 0: no retries; -1: forever.
        retry_delay_max_ms: longest pause between retries.
        max_records: the run fails when more records than this fail; None: no limit.
        log: write tolerated errors to the log; `log_records` adds the record's coordinates.
        dead_letter_topic: "" if there is no dead letter queue.
        dead_letter_replication_factor: for creating that topic.
        dead_letter_headers: add `__connect.errors.*` headers.
    """

    tolerate: bool
    retry_timeout_ms: int
    retry_delay_max_ms: int
    log: bool
    log_records: bool
    dead_letter_topic: str
    dead_letter_replication_factor: int
    dead_letter_headers: bool
    max_records: int | None = None


@dataclass(frozen=True, slots=True)
class SinkConnectorConfig:
    """Connect's own keys of a sink connector, and ours; the connector's keys are its own config class's.

    Attributes:
        name: connector name.
        connector: the connector class.
        tasks_max: at least 1.
        key_converter, value_converter, header_converter: None: the worker's.
        transforms: the chain of transformations, in order.
        topics: topic names, or () when `topics_regex` is used.
        topics_regex: pattern for the whole topic name, or "".
        errors: error handling and dead letter queue.
        flush_on_end: publish files that are not full at the end of a run.
        delivery_guarantee: `exactly_once`, `at_least_once` or `at_most_once`.
        run_max_records: maximum number of offsets per run; 0: no limit.
        run_max_bytes: maximum number of bytes per run; 0: no limit.
        run_max_seconds: maximum seconds of copying; 0: no limit.
        split_partitions: whether several tasks may copy one partition.
        split_min_records: smallest number of offsets in a range of such a partition.
        run_until_timestamp_ms: records at or after this time stay for a later run; None: no limit.
        offsets_out_of_range: `earliest`, `latest`, `nearest`, or "" to fail.
        consumer_override, producer_override, admin_override: settings of Kafka's Java clients, without
            prefix.
        raw: the whole configuration as text.
        ignored: given keys that have no effect here.
        unknown: given keys that are not defined; () unless the connector's own definition was given.
    """

    name: str
    connector: plugins.PluginRef
    tasks_max: int
    key_converter: ConverterConfig | None
    value_converter: ConverterConfig | None
    header_converter: ConverterConfig | None
    topics: tuple[str, ...]
    topics_regex: str
    errors: ErrorConfig
    flush_on_end: bool
    delivery_guarantee: str
    run_max_records: int
    run_max_bytes: int
    run_max_seconds: int
    split_partitions: bool
    split_min_records: int
    run_until_timestamp_ms: int | None
    offsets_out_of_range: str
    consumer_override: Mapping[str, str] = field(default_factory=dict, repr=False)
    producer_override: Mapping[str, str] = field(default_factory=dict, repr=False)
    admin_override: Mapping[str, str] = field(default_factory=dict, repr=False)
    raw: Mapping[str, str] = field(default_factory=dict, repr=False)
    transforms: tuple[TransformConfig, ...] = ()
    ignored: tuple[IgnoredKey, ...] = ()
    unknown: tuple[UnknownKey, ...] = ()

    @classmethod
    def from_config(cls, raw: Mapping[str, Any], definition: ConfigDef | None = None) -> SinkConnectorConfig:
        """Check and type a connector's configuration.

        Args:
            raw: the whole configuration, secrets resolved; JSON numbers and booleans are taken as their text.
            definition: every key of this kind of connector (`sink_keys()` included), so that its keys are checked too
                and unknown ones are found; without it only the keys that all sinks share are checked.

        Raises:
            ConfigError: names every wrong key.
        """
        known = with_chain(definition or keys.sink_keys(), raw)
        parsed = known.parse(raw)
        text = {name: value for name, value in coerce_config(raw).items() if value is not None}
        return cls(
            name=parsed[keys.NAME],
            connector=plugins.resolve(plugins.PluginKind.CONNECTOR, parsed[keys.CONNECTOR_CLASS]),
            tasks_max=parsed[keys.TASKS_MAX],
            key_converter=converter_of(text, parsed, keys.KEY_CONVERTER),
            value_converter=converter_of(text, parsed, keys.VALUE_CONVERTER),
            header_converter=converter_of(text, parsed, keys.HEADER_CONVERTER),
            topics=tuple(parsed[keys.TOPICS]),
            topics_regex=parsed[keys.TOPICS_REGEX],
            errors=_errors_of(parsed),
            flush_on_end=parsed[keys.FLUSH_ON_END],
            delivery_guarantee=parsed[keys.DELIVERY_GUARANTEE],
            run_max_records=parsed[keys.RUN_MAX_RECORDS] or 0,
            run_max_bytes=parsed[keys.RUN_MAX_BYTES] or 0,
            run_max_seconds=parsed[keys.RUN_MAX_SECONDS] or 0,
            split_partitions=parsed[keys.SPLIT_PARTITIONS],
            split_min_records=parsed[keys.SPLIT_MIN_RECORDS],
            run_until_timestamp_ms=_until(parsed[keys.RUN_UNTIL_TIMESTAMP]),
            offsets_out_of_range=parsed[keys.OFFSETS_OUT_OF_RANGE],
            consumer_override=with_prefix(text, keys.CONSUMER_OVERRIDE),
            producer_override=with_prefix(text, keys.PRODUCER_OVERRIDE),
            admin_override=with_prefix(text, keys.ADMIN_OVERRIDE),
            raw=text,
            transforms=transforms_of(text),
            ignored=(*known.ignored_keys(text), *_unused_converter_keys(text)),
            unknown=tuple(known.unknown_keys(text)) if definition else (),
        )


def converter_of(raw: Mapping[str, str], parsed: Mapping[str, Any], key: str) -> ConverterConfig | None:
    """The converter that `key` (`key.converter`, ...) names, with its nested keys; None when it is not set."""
    name = parsed[key]
    if name is None:
        return None
    header = key == keys.HEADER_CONVERTER
    kind = plugins.PluginKind.HEADER_CONVERTER if header else plugins.PluginKind.CONVERTER
    settings = {**with_prefix(raw, f"{key}."), CONVERTER_TYPE: key.partition(".")[0]}
    settings.pop("plugin.version", None)
    return ConverterConfig(plugins.resolve(kind, name), settings)


def effective_converter(
    key: str, own: ConverterConfig | None, worker: ConverterConfig | None, hint: str
) -> ConverterConfig:
    """The connector's converter, or else the worker's.

    Args:
        key: `key.converter` or `value.converter`.
        own: the connector's.
        worker: the worker's.
        hint: which one to take for what; ends the suggestion.

    Raises:
        ConfigError: neither sets it.
    """
    found = own or worker
    if found is None:
        known = ", ".join(plugins.aliases(plugins.PluginKind.CONVERTER))
        raise ConfigError(
            f'Missing required configuration "{key}" which has no default value: neither the connector nor the'
            " worker sets it.",
            suggestion=f"Set {key} to one of {known}; {hint}.",
            config_path=key,
        )
    return found


def with_prefix(raw: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Entries whose key starts with `prefix`, without it."""
    return {name[len(prefix) :]: value for name, value in raw.items() if name.startswith(prefix) and name != prefix}


def _unused_converter_keys(raw: Mapping[str, str]) -> list[IgnoredKey]:
    """Nested converter keys without the converter: Connect silently ignores them, which is hard to debug."""
    reason = "It belongs to {0}, which this connector does not set; the worker's {0} has the worker's settings."
    return [
        IgnoredKey(name, reason.format(key))
        for key in (keys.KEY_CONVERTER, keys.VALUE_CONVERTER, keys.HEADER_CONVERTER)
        if key not in raw
        for name in raw
        if name.startswith(f"{key}.") and name != f"{key}.plugin.version"
    ]


def _errors_of(parsed: Mapping[str, Any]) -> ErrorConfig:
    return ErrorConfig(
        tolerate=parsed[keys.ERRORS_TOLERANCE] == "all",
        retry_timeout_ms=parsed[keys.ERRORS_RETRY_TIMEOUT],
        retry_delay_max_ms=parsed[keys.ERRORS_RETRY_DELAY_MAX_MS],
        log=parsed[keys.ERRORS_LOG_ENABLE],
        log_records=parsed[keys.ERRORS_LOG_INCLUDE_MESSAGES],
        dead_letter_topic=parsed[keys.DLQ_TOPIC],
        dead_letter_replication_factor=parsed[keys.DLQ_REPLICATION_FACTOR],
        dead_letter_headers=parsed[keys.DLQ_CONTEXT_HEADERS],
        max_records=parsed[keys.ERRORS_MAX_RECORDS],
    )


def _until(text: str) -> int | None:
    return parse_timestamp_ms(text) if text else None

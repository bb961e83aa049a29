"""The typed configuration that every sink connector has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from airflow_connect.api.config import plugins
from airflow_connect.api.config.config_def import ConfigDef, IgnoredKey, UnknownKey
from airflow_connect.api.config.values import coerce_config
from airflow_connect.config.keys import sink as keys
from airflow_connect.config.keys.sink import SinkKeys
from airflow_connect.config.keys.transforms import with_chain
from airflow_connect.config.resolved import own_chain
from airflow_connect.config.resolved.transforms import transforms_of
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
    dead_letter_topic: str = ""
    dead_letter_replication_factor: int = 1
    dead_letter_headers: bool = False
    max_records: int | None = None


class SinkConnectorConfig(SinkKeys):
    """Connect's own keys of a sink connector, and ours; the connector's keys are its own config class's.

    Attributes:
        key_converter, value_converter, header_converter: None: the worker's.
        transforms: the chain of transformations, in order.
        errors: error handling and dead letter queue.
        consumer_override, producer_override, admin_override: settings of Kafka's Java clients, without
            prefix.
        raw: the whole configuration as text.
        ignored: given keys that have no effect here.
        unknown: given keys that are not defined; () unless the connector's own definition was given.
    """

    ignored: tuple[IgnoredKey, ...] = ()
    unknown: tuple[UnknownKey, ...] = ()

    def __init__(self, raw: Mapping[str, str], parsed: Mapping[str, Any]) -> None:
        """Read each key's value, and what follows from the nested keys."""
        super().__init__(raw, parsed)
        runs_chain = own_chain.runs_chain(self.connector, raw)
        set_here = dict.fromkeys(own_chain.CONVERTERS, own_chain.KEEPS_BYTES) if runs_chain else parsed
        nested: Mapping[str, str] = {} if runs_chain else raw
        self.key_converter = converter_of(nested, set_here, keys.KEY_CONVERTER)
        self.value_converter = converter_of(nested, set_here, keys.VALUE_CONVERTER)
        self.header_converter = converter_of(nested, set_here, keys.HEADER_CONVERTER)
        self.transforms = () if runs_chain else transforms_of(raw)
        self.errors = replace(
            errors_of(self, self.errors_max_records),
            dead_letter_topic=self.dead_letter_topic,
            dead_letter_replication_factor=self.dead_letter_replication_factor,
            dead_letter_headers=self.dead_letter_headers,
        )
        self.consumer_override = with_prefix(raw, keys.CONSUMER_OVERRIDE)
        self.producer_override = with_prefix(raw, keys.PRODUCER_OVERRIDE)
        self.admin_override = with_prefix(raw, keys.ADMIN_OVERRIDE)

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
        known = with_chain(definition or cls.config_def(), raw)
        text = {name: value for name, value in coerce_config(raw).items() if value is not None}
        config = cls(text, known.parse(raw))
        config.ignored = (*known.ignored_keys(text), *_unused_converter_keys(text))
        config.unknown = tuple(known.unknown_keys(text)) if definition else ()
        return config


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


def errors_of(config: keys.CommonKeys, max_records: int | None) -> ErrorConfig:
    """How a connector without a dead letter queue treats errors."""
    return ErrorConfig(
        tolerate=config.tolerates_errors,
        retry_timeout_ms=config.errors_retry_timeout_ms,
        retry_delay_max_ms=config.errors_retry_delay_max_ms,
        log=config.logs_errors,
        log_records=config.logs_records,
        max_records=max_records,
    )

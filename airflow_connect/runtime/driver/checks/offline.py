"""Checks of a configuration that go beyond its own keys and need no server: converters, Kafka clients.

A run finds the same mistakes when it opens them. `validate` needs these checks because it opens nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from airflow_connect.api.config import plugins
from airflow_connect.api.config.config_def import ConfigDef, UnknownKey
from airflow_connect.config.keys import sink as sink_keys
from airflow_connect.config.resolved.loading import ResolvedConfig
from airflow_connect.config.resolved.sink import CONVERTER_TYPE
from airflow_connect.config.resolved.source import ResolvedSourceConfig
from airflow_connect.errors import ConfigError
from airflow_connect.kafka.clients import settings as client_config
from airflow_connect.runtime.plugin_objects import open_converter, open_header_converter


def offline_problems(
    resolved: ResolvedConfig | ResolvedSourceConfig, worker: Mapping[str, Any]
) -> Iterator[ConfigError]:
    """Every mistake; its `config_path` is a key of the connector or of the worker.

    Args:
        resolved: both configurations.
        worker: the worker's whole configuration.
    """
    converters: tuple[tuple[str, Callable[[], object]], ...] = (
        (sink_keys.KEY_CONVERTER, partial(open_converter, resolved.key_converter, is_key=True)),
        (sink_keys.VALUE_CONVERTER, partial(open_converter, resolved.value_converter, is_key=False)),
        (sink_keys.HEADER_CONVERTER, partial(open_header_converter, resolved.header_converter)),
    )
    for key, opened in converters:
        try:
            opened()
        except ConfigError as error:
            yield _of_converter(key, error)
    told = set()
    for settings in (client_config.consumer_config, client_config.producer_config, client_config.admin_config):
        try:
            settings(worker, resolved.connector.raw)
        except ConfigError as error:
            # A mistake in a setting that all clients share occurs once for each of them.
            if error.config_path not in told:
                told.add(error.config_path)
                yield error


def unknown_converter_keys(resolved: ResolvedConfig | ResolvedSourceConfig) -> Iterator[UnknownKey]:
    """Keys below `key.converter.` and `value.converter.` that their converter does not know, and the nearest known key.

    Converters that do not declare their keys accept anything.
    """
    converters = (
        (sink_keys.KEY_CONVERTER, resolved.key_converter),
        (sink_keys.VALUE_CONVERTER, resolved.value_converter),
        (sink_keys.HEADER_CONVERTER, resolved.header_converter),
    )
    for key, converter in converters:
        definition = getattr(plugins.load(converter.plugin), "config_def", None)
        given = [name for name in converter.settings if name != CONVERTER_TYPE]
        if not isinstance(definition, ConfigDef):
            continue
        for unknown in definition.unknown_keys(given):
            nearest = unknown.nearest
            # `key.subject.name.strategy` is as near as `value.subject.name.strategy`, and has no effect for values.
            if key == sink_keys.VALUE_CONVERTER and f"value.{unknown.name}" in definition.keys:
                nearest = f"value.{unknown.name}"
            yield UnknownKey(f"{key}.{unknown.name}", f"{key}.{nearest}" if nearest else "")


def unknown_key_notes(resolved: ResolvedConfig | ResolvedSourceConfig) -> tuple[str, ...]:
    """A sentence about the keys of a run that nothing reads, without their values; () if there are none.

    A connector of others may read keys that it does not declare: of those only the ones that look misspelt are named.
    """
    is_built_in = plugins.load(resolved.connector.connector).__module__.startswith("airflow_connect.")
    of_connector = [key for key in resolved.connector.unknown if is_built_in or key.nearest]
    unknown = (*of_connector, *unknown_converter_keys(resolved), *resolved.worker.unknown)
    listed = [
        f"{key.name} (did you mean {key.nearest}?)" if key.nearest else key.name
        for key in sorted(unknown, key=lambda key: (not key.nearest, key.name))
    ]
    if not listed:
        return ()
    start = "An unknown key has no effect" if len(listed) == 1 else f"{len(listed)} unknown keys have no effect"
    return (f"{start}: {', '.join(listed)}.",)


def _of_converter(key: str, error: ConfigError) -> ConfigError:
    """The error of a converter, with the prefix of its settings: the converter does not know it."""
    inner = error.config_path
    path = inner if not inner or inner.startswith(key) else f"{key}.{inner}"
    return ConfigError(
        f"{path or key}: {error.message}", code=error.code, suggestion=error.suggestion, config_path=path or key
    )

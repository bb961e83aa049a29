"""What can be said about a configuration beyond its own keys without any server: converters, Kafka clients.

A run finds the same mistakes when it opens them. `validate` looks at them here, because it opens nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from airflow_connect.api import connector_keys, plugins
from airflow_connect.api.config import ConfigDef, UnknownKey
from airflow_connect.api.connector_config import CONVERTER_TYPE
from airflow_connect.api.errors import ConfigError
from airflow_connect.api.resolved_config import ResolvedConfig
from airflow_connect.api.source_config import ResolvedSourceConfig
from airflow_connect.kafka import client_config
from airflow_connect.runtime.roles import open_converter, open_header_converter


def offline_problems(
    resolved: ResolvedConfig | ResolvedSourceConfig, worker: Mapping[str, Any]
) -> Iterator[ConfigError]:
    """Every mistake, `config_path` being a key of the connector or of the worker.

    Args:
        resolved: both configurations.
        worker: the worker's whole configuration.
    """
    converters: tuple[tuple[str, Callable[[], object]], ...] = (
        (connector_keys.KEY_CONVERTER, partial(open_converter, resolved.key_converter, is_key=True)),
        (connector_keys.VALUE_CONVERTER, partial(open_converter, resolved.value_converter, is_key=False)),
        (connector_keys.HEADER_CONVERTER, partial(open_header_converter, resolved.header_converter)),
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
            # What all clients share is wrong in all of them.
            if error.config_path not in told:
                told.add(error.config_path)
                yield error


def unknown_converter_keys(resolved: ResolvedConfig | ResolvedSourceConfig) -> Iterator[UnknownKey]:
    """Keys behind `key.converter.` and `value.converter.` that their converter does not know, with the nearest it does.

    Converters that do not say what they know take anything.
    """
    converters = (
        (connector_keys.KEY_CONVERTER, resolved.key_converter),
        (connector_keys.VALUE_CONVERTER, resolved.value_converter),
        (connector_keys.HEADER_CONVERTER, resolved.header_converter),
    )
    for key, converter in converters:
        definition = getattr(plugins.load(converter.plugin), "config_def", None)
        given = [name for name in converter.settings if name != CONVERTER_TYPE]
        for unknown in definition.unknown_keys(given) if isinstance(definition, ConfigDef) else ():
            yield UnknownKey(f"{key}.{unknown.name}", f"{key}.{unknown.nearest}" if unknown.nearest else "")


def _of_converter(key: str, error: ConfigError) -> ConfigError:
    """The error of a converter, which knows its settings without prefix."""
    inner = error.config_path
    path = inner if not inner or inner.startswith(key) else f"{key}.{inner}"
    return ConfigError(
        f"{path or key}: {error.message}", code=error.code, suggestion=error.suggestion, config_path=path or key
    )

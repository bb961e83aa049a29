"""Creates the objects that a configuration names: converters, transformations, predicates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_connect.api.config import plugins
from airflow_connect.errors import ConfigError

if TYPE_CHECKING:
    from airflow_connect.api.converter import Converter, HeaderConverter
    from airflow_connect.api.transform import Predicate, Transformation
    from airflow_connect.config.resolved.sink import ConverterConfig
    from airflow_connect.config.resolved.transforms import PredicateConfig, TransformConfig


def open_converter(config: ConverterConfig, *, is_key: bool) -> Converter:
    """A configured key or value converter."""
    converter: Converter = plugins.load(config.plugin)()
    converter.configure(config.settings, is_key)
    return converter


def open_header_converter(config: ConverterConfig) -> HeaderConverter:
    """A configured header converter."""
    converter: HeaderConverter = plugins.load(config.plugin)()
    converter.configure(config.settings)
    return converter


def open_transformation(config: TransformConfig) -> Transformation:
    """A configured transformation.

    Raises:
        ConfigError: it refuses its settings; `config_path` is the whole key.
    """
    transformation: Transformation = _configured(config, f"transforms.{config.alias}.")
    return transformation


def open_predicate(config: PredicateConfig) -> Predicate:
    """A configured predicate.

    Raises:
        ConfigError: it refuses its settings; `config_path` is the whole key.
    """
    predicate: Predicate = _configured(config, f"predicates.{config.alias}.")
    return predicate


def _configured(config: TransformConfig | PredicateConfig, prefix: str) -> Any:
    """An instance of the class; its errors name keys without the prefix that they have in the configuration."""
    label, name = config.plugin.kind.label, config.plugin.name
    try:
        plugin = plugins.load(config.plugin)()
        plugin.configure(config.settings)
    except ConfigError as error:
        raise ConfigError(
            f"The {label} {config.alias} ({name}) refuses its configuration: {error.message}",
            code=error.code,
            suggestion=error.suggestion or f"Correct the keys that begin with {prefix}.",
            config_path=prefix + (error.config_path or "type"),
        ) from error
    except Exception as error:  # Third-party code; the message is for the author of the configuration.
        raise ConfigError(
            f"The {label} {config.alias} ({name}) cannot be configured: {type(error).__name__}: {error}.",
            code="plugin.not_configured",
            suggestion=f"Set the keys that the class requires, {prefix}<key>.",
            config_path=f"{prefix}type",
        ) from error
    return plugin

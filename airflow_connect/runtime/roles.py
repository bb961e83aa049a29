"""From names in a configuration to objects: the two roles of a sink connector, converters, transformations."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from airflow_connect.api import plugins
from airflow_connect.api.errors import ConfigError

if TYPE_CHECKING:
    from airflow_connect.api.connector_config import ConverterConfig
    from airflow_connect.api.converter import Converter, HeaderConverter
    from airflow_connect.api.transform import Predicate, Transformation
    from airflow_connect.api.transform_config import PredicateConfig, TransformConfig


def load_role(connector: plugins.PluginRef, role: str) -> Callable[..., Any]:
    """The function that opens a role of a sink connector.

    Args:
        connector: the connector class.
        role: `task_role` (executors) or `driver_role` (driver); see api/connector.py.

    Raises:
        ConfigError: the class is not a sink connector, or names a role that cannot be imported.
    """
    path = getattr(plugins.load(connector), role, None)
    if not isinstance(path, str) or ":" not in path:
        raise ConfigError(
            f"The connector class {connector.name} has no {role}.",
            suggestion="A sink connector names both of its roles as `module:function`.",
            config_path="connector.class",
        )
    module, _, name = path.partition(":")
    try:
        opened: Callable[..., Any] = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"The {role} of {connector.name} cannot be loaded from {path}: {error}.", config_path="connector.class"
        ) from error
    return opened


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
    """An instance of the class; its errors speak of keys without prefix, the configuration has them with it."""
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
    except Exception as error:  # Of code that is not ours, and read by whoever wrote the configuration.
        raise ConfigError(
            f"The {label} {config.alias} ({name}) cannot be configured: {type(error).__name__}: {error}.",
            code="plugin.not_configured",
            suggestion=f"Give the class the keys that it reads, {prefix}<key>.",
            config_path=f"{prefix}type",
        ) from error
    return plugin

"""From names in a configuration to objects: the two roles of a sink connector, and converters."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from airflow_connect.api import plugins
from airflow_connect.api.errors import ConfigError

if TYPE_CHECKING:
    from airflow_connect.api.connector_config import ConverterConfig
    from airflow_connect.api.converter import Converter, HeaderConverter


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

"""Creates the objects that a configuration names: converters, transformations, predicates.

Java classes need the `JavaChain` of a task to run in. Without one, only their configuration is checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_connect.api.config import plugins
from airflow_connect.errors import ConfigError, TaskFailedError

if TYPE_CHECKING:
    from airflow_connect.api.converter import Converter, HeaderConverter
    from airflow_connect.api.transform import Predicate, Transformation
    from airflow_connect.config.resolved.sink import ConverterConfig
    from airflow_connect.config.resolved.transforms import PredicateConfig, TransformConfig
    from airflow_connect.connectors.java.chain import JavaChain


def open_converter(config: ConverterConfig, *, is_key: bool, java: JavaChain | None = None) -> Converter:
    """A configured key or value converter."""
    converter: Converter = _new(config.plugin, "key_converter" if is_key else "value_converter", java)
    converter.configure(config.settings, is_key)
    return converter


def open_header_converter(config: ConverterConfig, java: JavaChain | None = None) -> HeaderConverter:
    """A configured header converter."""
    converter: HeaderConverter = _new(config.plugin, "header_converter", java)
    converter.configure(config.settings)
    return converter


def open_transformation(config: TransformConfig, java: JavaChain | None = None) -> Transformation:
    """A configured transformation.

    Raises:
        ConfigError: it refuses its settings; `config_path` is the whole key.
        TaskFailedError: the JVM of a Java class failed.
    """
    transformation: Transformation = _configured(config, f"transforms.{config.alias}.", "transformation", java)
    return transformation


def open_predicate(config: PredicateConfig, java: JavaChain | None = None) -> Predicate:
    """A configured predicate.

    Raises:
        ConfigError: it refuses its settings; `config_path` is the whole key.
        TaskFailedError: the JVM of a Java class failed.
    """
    predicate: Predicate = _configured(config, f"predicates.{config.alias}.", "predicate", java)
    return predicate


def _new(plugin: plugins.PluginRef, kind: str, java: JavaChain | None) -> Any:
    """An object of the class; `kind` as Java calls it."""
    made = plugins.load(plugin)
    return made(kind, java) if plugin.is_java else made()


def _configured(config: TransformConfig | PredicateConfig, prefix: str, kind: str, java: JavaChain | None) -> Any:
    """An instance of the class; its errors name keys without the prefix that they have in the configuration."""
    label, name = config.plugin.kind.label, config.plugin.name
    try:
        plugin = _new(config.plugin, kind, java)
        plugin.configure(config.settings)
    except ConfigError as error:
        raise ConfigError(
            f"The {label} {config.alias} ({name}) refuses its configuration: {error.message}",
            code=error.code,
            suggestion=error.suggestion or f"Correct the keys that begin with {prefix}.",
            config_path=prefix + (error.config_path or "type"),
        ) from error
    except TaskFailedError:
        raise
    except Exception as error:  # Third-party code; the message is for the author of the configuration.
        raise ConfigError(
            f"The {label} {config.alias} ({name}) cannot be configured: {type(error).__name__}: {error}.",
            code="plugin.not_configured",
            suggestion=f"Set the keys that the class requires, {prefix}<key>.",
            config_path=f"{prefix}type",
        ) from error
    return plugin

"""Checks configurations before they are registered, and describes them, with Kafka Connect's texts.

Values of references never appear in an answer: the recorded Kafka Connect echoes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_connect.api.config import plugins
from airflow_connect.api.config.config_def import ConfigDef
from airflow_connect.api.config.infos import config_infos
from airflow_connect.api.config.references import ResolvedReferences, ResolvedText
from airflow_connect.api.config.values import masked
from airflow_connect.config.resolved.loading import connector_definition
from airflow_connect.config_providers.resolving import resolve_references
from airflow_connect.control.herder.refusals import RefusedError
from airflow_connect.control.state.java_map_order import in_java_order
from airflow_connect.errors import ConfigError, ConnectError
from airflow_connect.runtime.driver.checks.java import java_connector, java_infos, with_java
from airflow_connect.runtime.driver.entry import validate_connector
from airflow_connect.runtime.spec import RunSpec

CLASS = "connector.class"
_MOST_TASKS = 10_000
"""Of a sink: each task is a record in two topics."""
_MOST_TASK_CHARACTERS = 32 << 20
"""Of all tasks of a connector together: they are written in one transaction, and every worker keeps them in memory."""
_INVALID = (
    "Connector configuration is invalid and contains the following {count} error(s):\n{errors}\nYou can also find the"
    " above list of errors at the endpoint `/connector-plugins/{{connectorType}}/config/validate`"
)


def refuse_invalid(
    config: Mapping[str, str | None],
    worker: Mapping[str, Any],
    known: Mapping[str, str] | None = None,
    *,
    asks_java: bool = False,
) -> None:
    """Refuse a configuration that a run would refuse.

    Args:
        config: as written, `name` included.
        worker: the worker configuration, as written.
        known: values of references that are already resolved.
        asks_java: a Java connector validates it, too, which starts a JVM and may open connections.

    Raises:
        RefusedError: with the texts of all errors.
    """
    definition, resolved = _defined(config, worker, known)
    errors = [error for value in definition.validate(resolved) for error in value.errors]
    if not errors:
        found = validate_connector(RunSpec(dict(config), worker, references=known or {}))
        errors = [
            f"{finding['message']} {finding['suggestion']}".strip() for finding in found if finding["level"] == "error"
        ]
    if not errors:
        errors = _too_large(config, int(str(resolved.get("tasks.max") or 1)))
    if not errors and asks_java:
        infos = _asking_java(config_infos(str(config.get(CLASS)), definition, resolved), resolved)
        errors = [error for value in infos["configs"] for error in value["value"]["errors"]]
    if errors:
        raise RefusedError(_INVALID.format(count=len(errors), errors="\n".join(errors)))


def _too_large(config: Mapping[str, str | None], tasks: int) -> list[str]:
    """Why the tasks of a configuration cannot be stored: each has a copy of it."""
    if tasks > _MOST_TASKS:
        return [f"Invalid value {tasks} for configuration tasks.max: at most {_MOST_TASKS} tasks"]
    size = sum(len(key) + len(value or "") for key, value in config.items())
    if size * tasks <= _MOST_TASK_CHARACTERS:
        return []
    why = (
        f"Invalid value {tasks} for configuration tasks.max: each task has a copy of the configuration, which has"
        f" {size} characters; at most {_MOST_TASK_CHARACTERS // size} tasks of this size are stored"
    )
    return [why]


def validated(
    plugin: str,
    config: Mapping[str, str | None],
    worker: Mapping[str, Any],
    known: Mapping[str, str] | None = None,
    *,
    asks_java: bool = False,
) -> dict[str, Any]:
    """ConfigInfos of a configuration, valid or not.

    Args:
        plugin: connector class of the request's path.
        config, worker: as written.
        known: values of references that are already resolved.
        asks_java: as `refuse_invalid`.

    Raises:
        RefusedError: the class is missing, unknown, or another than `plugin`.
    """
    included = config.get(CLASS)
    if included is not None and not _simple(included).endswith(_simple(plugin)):
        raise RefusedError(f"Included connector type {included} does not match request type {plugin}")
    definition, resolved = _defined(config, worker, known)
    infos = config_infos(str(included), definition, resolved)
    return _asking_java(infos, resolved) if asks_java else infos


def _asking_java(infos: dict[str, Any], resolved: Mapping[str, Any]) -> dict[str, Any]:
    """The same with what a Java connector says about its keys."""
    plugin = java_connector(resolved)
    if plugin is None:
        return infos
    try:
        return with_java(infos, java_infos(plugin, resolved), resolved, is_sink=plugin.is_sink)
    except ConnectError as error:
        hide = ResolvedReferences(
            {value.reference: str(value) for value in resolved.values() if isinstance(value, ResolvedText)}
        ).hide
        raise RefusedError(hide(str(error)), 503 if error.retriable else 400) from error


def _simple(name: str) -> str:
    """Source: ConnectorPluginsResource.normalizedPluginName."""
    return name.removesuffix("Connector") or name


def _defined(
    config: Mapping[str, str | None], worker: Mapping[str, Any], known: Mapping[str, str] | None
) -> tuple[ConfigDef, dict[str, Any]]:
    """Every key of the connector's class, and the configuration with its references resolved."""
    name = config.get(CLASS)
    if name is None:
        shown = ", ".join(f"{key}={_java(value)}" for key, value in in_java_order(masked(config)).items())
        raise RefusedError(f"Connector config {{{shown}}} contains no connector type")
    try:
        references = resolve_references(config, worker, known)
        with references.hiding_errors():
            resolved = references.resolve(config)
            if _is_unknown(str(resolved[CLASS])):
                installed = ", ".join(plugins.java_names(plugins.PluginKind.CONNECTOR))
                raise RefusedError(
                    f"Failed to find any class that implements Connector and which name matches {name}, available"
                    f" connectors are: {installed}"
                )
            return connector_definition(resolved), resolved
    except RefusedError:
        raise
    except ConnectError as error:
        raise RefusedError(str(error), 503 if error.retriable else 400) from error


def _is_unknown(name: str) -> bool:
    try:
        plugins.resolve(plugins.PluginKind.CONNECTOR, name)
    except ConfigError:
        return True
    return False


def _java(value: Any) -> str:
    return "null" if value is None else str(value)

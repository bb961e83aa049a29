"""Configurations as pages show them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from airflow_connect.api.config.plugins import PluginKind, additions, find_added, installed
from airflow_connect.api.config.values import HIDDEN, masked
from airflow_connect.config.keys.sink import CONNECTOR_CLASS, sink_keys
from airflow_connect.config.keys.source import source_keys
from airflow_connect.errors import ConnectError
from airflow_connect.runtime.reporting.redaction import Redactor, secret_values


def shown_config(config: Mapping[str, str | None], *, of_dag: bool = False) -> dict[str, str]:
    """The configuration: references as written, secrets hidden, also where one is part of another value.

    `of_dag`: a DAG has it. Its class is imported only if it is one of this package or an entry point. Which keys of
    another class are secrets is not known here, so only the values of keys that every connector has are shown. The same
    holds for a Java class whose keys are not known, because no Java is installed here.
    """
    plugin = config.get(CONNECTOR_CLASS) or ""
    if of_dag and config and not knows_class(config):
        return _shared_keys_only(config)
    names = _secret_names(plugin, additions())
    if names is None:
        return _shared_keys_only(config)
    redact = Redactor(secret_values(config, secret_names=names))
    return {key: "" if value is None else redact(str(value)) for key, value in masked(config, names).items()}


def _shared_keys_only(config: Mapping[str, str | None]) -> dict[str, str]:
    known = {*sink_keys().keys, *source_keys().keys}
    shown = shown_config({key: value for key, value in config.items() if key in known and key != CONNECTOR_CLASS})
    hidden = {key: HIDDEN for key in config if key not in shown}
    return {**hidden, **shown, CONNECTOR_CLASS: config.get(CONNECTOR_CLASS) or ""}


def knows_class(config: Mapping[str, str | None]) -> bool:
    """Whether the class of a connector is one of this package, of `plugin.path`, or an entry point."""
    return installed(PluginKind.CONNECTOR, config.get(CONNECTOR_CLASS) or "") is not None


@cache
def _secret_names(connector_class: str, _additions: int) -> frozenset[str] | None:
    """Keys of type PASSWORD of a class; none if it is not installed here; None if Java cannot be asked about its keys.

    `_additions`: a class that was not known may have been found since.
    """
    from airflow_connect.config.resolved.loading import connector_definition

    try:
        return frozenset(connector_definition({"connector.class": connector_class}).secret_names)
    except ConnectError:
        return None if find_added(PluginKind.CONNECTOR, connector_class) else frozenset()

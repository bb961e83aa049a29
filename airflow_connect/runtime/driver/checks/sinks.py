"""What the class of a sink must fulfil before a run starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_connect.api.sink import Delivery, SinkConnector, StagingSinkConnector
from airflow_connect.config.keys import sink as keys
from airflow_connect.config.keys.sink import SinkKeys
from airflow_connect.errors import ConfigError
from airflow_connect.runtime.driver.checks.plugins import refuse_incomplete, refuse_wrong_values

_PUBLISHING = ("abort", "list_staged", "publish")


def refuse_unusable_sink(name: str, connector: Any, config: Mapping[str, str]) -> None:
    """The class must be a complete sink, accept its keys, and support the requested `delivery.guarantee`.

    Args:
        name: the class as the configuration names it.
        connector: the class.
        config: the connector's configuration.

    Raises:
        ConfigError: what is wrong.
    """
    if not (isinstance(connector, type) and issubclass(connector, SinkConnector)):
        raise ConfigError(
            f"The connector class {name} is not a sink connector.",
            suggestion="A sink extends SinkConnector or StagingSinkConnector of airflow_connect.api.",
            config_path=keys.CONNECTOR_CLASS,
        )
    refuse_incomplete(name, connector, _missing(connector))
    if (connector.delivery is Delivery.STAGED) != issubclass(connector, StagingSinkConnector):
        raise ConfigError(
            f"The connector class {name} declares delivery {connector.delivery.value}, which does not fit its class.",
            suggestion="A sink that stages extends StagingSinkConnector; others declare idempotent or at_least_once.",
            config_path=keys.CONNECTOR_CLASS,
        )
    refuse_wrong_values(name, connector, config)
    _refuse_guarantee(name, connector, config)


def overrides(connector: type[SinkConnector], base: type[SinkConnector], method: str) -> bool:
    """Whether a class overrides the default method of `base`."""
    return getattr(connector, method) is not getattr(base, method)


def _missing(connector: type[SinkConnector]) -> list[str]:
    """A sink that stages has a publisher, or the methods that the default publisher calls."""
    base = StagingSinkConnector
    if not issubclass(connector, base) or overrides(connector, base, "publisher"):
        return []
    return [method for method in _PUBLISHING if not overrides(connector, base, method)]


def _refuse_guarantee(name: str, connector: type[SinkConnector], config: Mapping[str, str]) -> None:
    """Sinks that write while they copy cannot promise everything."""
    asked = config.get(SinkKeys.delivery_guarantee.name, "")
    if connector.delivery is Delivery.STAGED or not asked:
        return
    refused = {keys.AT_MOST_ONCE: "writes before offsets are committed, so it cannot deliver at most once"}
    if connector.delivery is Delivery.AT_LEAST_ONCE:
        refused[keys.EXACTLY_ONCE] = "does not recognise records that it already has, so it cannot deliver exactly once"
    if asked in refused:
        can = keys.AT_LEAST_ONCE if connector.delivery is Delivery.AT_LEAST_ONCE else keys.EXACTLY_ONCE
        raise ConfigError(
            f"{SinkKeys.delivery_guarantee} is {asked}, but {name} {refused[asked]}.",
            suggestion=f"Set {SinkKeys.delivery_guarantee}={can}, or remove it.",
            config_path=SinkKeys.delivery_guarantee.name,
        )

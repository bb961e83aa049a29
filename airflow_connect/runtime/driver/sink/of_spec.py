"""The configuration of a sink, for what can be done with sinks only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_connect.config.keys.sink import CONNECTOR_CLASS
from airflow_connect.errors import ConfigError
from airflow_connect.runtime.driver.class_of_connector import names_source
from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration

if TYPE_CHECKING:
    from airflow_connect.runtime.spec import RunSpec


def sink_of(spec: RunSpec) -> SinkConfiguration | None:
    """The configuration of a sink, checked; None for a source.

    Raises:
        ConfigError: names every wrong key.
        UnavailableError: a config provider's server did not answer.
    """
    return None if names_source(spec) else SinkConfiguration.from_spec(spec)


def only_sink(spec: RunSpec, why: str, suggestion: str) -> SinkConfiguration:
    """The configuration of a sink, checked.

    Args:
        spec: the connector and its worker.
        why: what a source cannot do, a sentence.
        suggestion: what to do with a source instead.

    Raises:
        ConfigError: the connector is a source, or its configuration is wrong.
        UnavailableError: a config provider's server did not answer.
    """
    configuration = sink_of(spec)
    if configuration is None:
        raise ConfigError(why, suggestion=suggestion, config_path=CONNECTOR_CLASS)
    return configuration

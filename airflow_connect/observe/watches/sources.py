"""Whether a source connector has something new: its own listing, compared with its committed offsets."""

from __future__ import annotations

from airflow_connect.api.connector import Connector
from airflow_connect.api.source import SourceConnector
from airflow_connect.errors import ConfigError
from airflow_connect.observe.watches.observation import Observation
from airflow_connect.runtime.driver.entry import plan_connector
from airflow_connect.runtime.driver.kinds import kind_of
from airflow_connect.runtime.driver.source.configuration import SourceConfiguration
from airflow_connect.runtime.spec import RunSpec


def observe_source(spec: RunSpec) -> Observation:
    """Plan a run without doing it: there is something new if the connector has work for a task.

    Blocks while the connector lists its files. Starts no JVM, writes nothing.

    Raises:
        ConnectError: the connector is not a source or cannot tell, or its plan fails.
    """
    configuration = kind_of(spec).configuration()
    if not isinstance(configuration, SourceConfiguration):
        raise ConfigError(
            f"Connector {spec.connector.get('name')} is not a source.",
            config_path="connector.class",
            suggestion="Use ConnectorLagSensor for a sink.",
        )
    _ensure_it_can_tell(configuration.connector_class)
    plan = plan_connector(spec)
    known = plan.source.partitions if plan.source else 0
    facts = {"connector": plan.connector, "tasks": len(plan.tasks), "source_partitions": known}
    return Observation(len(plan.tasks) > 0, facts)


def _ensure_it_can_tell(connector: type[SourceConnector]) -> None:
    if connector.task_configs in (SourceConnector.task_configs, Connector.task_configs):
        raise ConfigError(
            f"{connector.__name__} cannot tell whether there is something to read: its task_configs is Connect's"
            " default, which always returns a task.",
            config_path="connector.class",
            suggestion="Run it on a schedule, or let its task_configs return [] if there is nothing to read.",
        )

"""The connector object of a sink as a run has it, without a run."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_connect.api.sink import SinkConnector
from airflow_connect.runtime.driver.sink.started_sink import StartedSink
from airflow_connect.runtime.driver.started import ConnectorRun


def sink_of(connector: type[SinkConnector], config: Mapping[str, object]) -> StartedSink:
    """Checked, and started on first use.

    Raises:
        ConnectError: the connector refuses the configuration.
    """
    texts = {key: str(value) for key, value in config.items()}
    sink = StartedSink(connector, ConnectorRun(texts, "run-1"))
    sink.check()
    return sink

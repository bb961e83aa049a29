"""FileStreamSink as a connector class: its key and its two roles, named but not imported."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_connect.api.sink import Delivery, SinkConnector
from airflow_connect.connectors.file.config import config_def, writes_to_stdout


class FileStreamSinkConnector(SinkConnector):
    """`org.apache.kafka.connect.file.FileStreamSinkConnector`: one line per record, in a file or on standard output."""

    config_def = config_def()
    delivery = Delivery.STAGED
    task_role = "airflow_connect.connectors.file.task:open_task"
    driver_role = "airflow_connect.connectors.file.driver:open_driver"

    @classmethod
    def delivery_for(cls, config: Mapping[str, str]) -> Delivery:
        """What standard output has been given cannot be taken back, and it remembers nothing."""
        return Delivery.AT_LEAST_ONCE if writes_to_stdout(config) else Delivery.STAGED

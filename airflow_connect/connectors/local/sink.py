"""The local sink as a connector class: its keys and its two roles, named but not imported."""

from __future__ import annotations

from airflow_connect.api.sink import Delivery, SinkConnector
from airflow_connect.connectors.local.config import config_def


class LocalSinkConnector(SinkConnector):
    """Kafka topics to files in a directory, published by giving staged files their names."""

    config_def = config_def()
    delivery = Delivery.STAGED
    task_role = "airflow_connect.connectors.local.task:open_task"
    driver_role = "airflow_connect.connectors.local.driver:open_driver"

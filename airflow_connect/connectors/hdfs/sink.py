"""The HDFS sink as a connector class: its keys and its two roles, named but not imported."""

from __future__ import annotations

from airflow_connect.api.sink import Delivery, SinkConnector
from airflow_connect.connectors.hdfs.config import config_def


class HdfsSinkConnector(SinkConnector):
    """`io.confluent.connect.hdfs.HdfsSinkConnector`: Kafka topics to files in HDFS, published by renaming."""

    config_def = config_def()
    delivery = Delivery.STAGED
    takes_over = True
    """Where files of Confluent's connector end wins over the group's offset (runtime/driver/taking_over.py)."""
    task_role = "airflow_connect.connectors.hdfs.task:open_task"
    driver_role = "airflow_connect.connectors.hdfs.driver:open_driver"

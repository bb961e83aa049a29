"""The S3 sink as a connector class: its keys and its two roles, named but not imported."""

from __future__ import annotations

from airflow_connect.api.sink import Delivery, SinkConnector
from airflow_connect.connectors.s3.config import config_def


class S3SinkConnector(SinkConnector):
    """`io.confluent.connect.s3.S3SinkConnector`: Kafka topics to S3 objects, published by multipart completion."""

    config_def = config_def()
    delivery = Delivery.STAGED
    task_role = "airflow_connect.connectors.s3.task:open_task"
    driver_role = "airflow_connect.connectors.s3.driver:open_driver"

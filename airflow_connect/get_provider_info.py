"""Metadata for Airflow's provider manager. Imports nothing, because it is loaded in every Airflow process."""

from __future__ import annotations

from typing import Any

_TEXT, _SECRET = {"type": ["string", "null"]}, {"type": ["string", "null"], "format": "password"}
_REGISTRY = "converter.schema.registry.url"
# Fields of a form are stored in the connection's extra under these names, which are the keys of a worker. Every other
# key of a worker may be written into the extra.
_CONNECT_WORKER = {
    "connection-type": "connect_worker",
    "hook-class-name": "airflow_connect.hooks.connect.ConnectHook",
    "hook-name": "Kafka Connect worker (airflow-connect)",
    "ui-field-behaviour": {
        "hidden-fields": ["port", "schema"],
        "relabeling": {"host": "Bootstrap servers", "login": "SASL user name", "password": "SASL password"},
        "placeholders": {"host": "broker-1:9092,broker-2:9092", "group.id": "airflow-connect"},
    },
    "conn-fields": {
        "group.id": {
            "label": "Group id",
            "description": "Prefix of transactional ids: the same for all workers that run the same connectors.",
            "schema": _TEXT,
        },
        "security.protocol": {
            "label": "Security protocol",
            "schema": {"type": ["string", "null"], "enum": [None, "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]},
        },
        "sasl.mechanism": {"label": "SASL mechanism", "schema": _TEXT},
        "key.converter": {"label": "Key converter", "schema": _TEXT},
        "value.converter": {"label": "Value converter", "schema": _TEXT},
        f"key.{_REGISTRY}": {"label": "Schema Registry of keys", "schema": _TEXT},
        f"value.{_REGISTRY}": {"label": "Schema Registry of values", "schema": _TEXT},
        "key.converter.basic.auth.user.info": {"label": "Registry login of keys (user:password)", "schema": _SECRET},
        "value.converter.basic.auth.user.info": {
            "label": "Registry login of values (user:password)",
            "description": "Needs value.converter.basic.auth.credentials.source=USER_INFO in the extra.",
            "schema": _SECRET,
        },
        "spark.master": {"label": "Spark master", "schema": _TEXT},
    },
}


_KAFKA_CONNECT = {
    "connection-type": "kafka_connect",
    "hook-class-name": "airflow_connect.hooks.kafka_connect.KafkaConnectHook",
    "hook-name": "Kafka Connect cluster",
    "ui-field-behaviour": {
        "hidden-fields": ["schema"],
        "relabeling": {"host": "Workers", "login": "User name", "password": "Password"},
        "placeholders": {"host": "https://connect-1:8083,https://connect-2:8083", "port": "8083"},
    },
    "conn-fields": {
        "verify": {
            "label": "Certificates of authorities",
            "description": "Path of a PEM file where tasks run; false: do not verify the server.",
            "schema": _TEXT,
        },
        "cert": {"label": "Client certificate", "description": "Path of a PEM file where tasks run.", "schema": _TEXT},
        "key": {"label": "Key of the client certificate", "description": "Path of a PEM file.", "schema": _TEXT},
    },
}
_CONNECT_DRIVER = {
    "connection-type": "connect_driver",
    "hook-class-name": "airflow_connect.hooks.connect_driver.ConnectDriverHook",
    "hook-name": "Driver service (airflow-connect)",
    "ui-field-behaviour": {
        "hidden-fields": ["login"],
        "relabeling": {"host": "Host", "schema": "http or https", "password": "Token"},
        "placeholders": {"host": "spark-gateway", "port": "8088", "schema": "https"},
    },
    "conn-fields": {
        "verify": {
            "label": "Certificates of authorities",
            "description": "Path of a PEM file where tasks and triggerers run; false: do not verify the service.",
            "schema": _TEXT,
        },
        "cert": {"label": "Client certificate", "description": "Path of a PEM file, for a proxy.", "schema": _TEXT},
        "key": {"label": "Key of the client certificate", "description": "Path of a PEM file.", "schema": _TEXT},
    },
}
_CONFIG = {
    "airflow_connect": {
        "description": "Kafka Connect in Airflow's API server: `/connect` and its pages.",
        "options": {
            "worker_conn_ids": {
                "description": (
                    "Connections of type `connect_worker`, separated by commas: the installations of Kafka Connect that"
                    " this Airflow shows. `/connect` answers for the first of them. Empty: the pages show the clusters"
                    " that tasks of DAGs name, and `/connect` answers nothing.\n"
                ),
                "version_added": None,
                "type": "string",
                "example": "connect_production, connect_test",
                "default": "",
            },
        },
    },
}


def get_provider_info() -> dict[str, Any]:
    """Provider metadata, valid against `provider_info.schema.json` of Airflow 3.3."""
    return {
        "package-name": "airflow-connect",
        "name": "Kafka Connect",
        "description": "Kafka Connect as DAG runs: bounded, exactly-once copies, executed by Spark.",
        "integrations": [
            {
                "integration-name": "Kafka Connect",
                "external-doc-url": "https://kafka.apache.org/documentation/#connect",
                "how-to-guide": ["/docs/how-to/use-in-your-airflow.md"],
                "tags": ["software"],
            }
        ],
        "operators": [
            {
                "integration-name": "Kafka Connect",
                "python-modules": [
                    "airflow_connect.operators.connector",
                    "airflow_connect.operators.kafka_connect",
                    "airflow_connect.operators.offsets",
                    "airflow_connect.operators.replay",
                    "airflow_connect.operators.restore",
                    "airflow_connect.operators.table_maintenance",
                    "airflow_connect.operators.task_group",
                ],
            },
        ],
        "hooks": [
            {
                "integration-name": "Kafka Connect",
                "python-modules": [
                    "airflow_connect.hooks.connect",
                    "airflow_connect.hooks.connect_driver",
                    "airflow_connect.hooks.kafka_connect",
                ],
            },
        ],
        "sensors": [
            {
                "integration-name": "Kafka Connect",
                "python-modules": ["airflow_connect.sensors.connector", "airflow_connect.sensors.topics"],
            },
        ],
        "triggers": [
            {
                "integration-name": "Kafka Connect",
                "python-modules": [
                    "airflow_connect.triggers.driver_run",
                    "airflow_connect.triggers.kafka_connect",
                    "airflow_connect.triggers.lag_event",
                    "airflow_connect.triggers.peek",
                ],
            },
        ],
        "cli": ["airflow_connect.airflow.command.get_cli_commands"],
        "connection-types": [_CONNECT_WORKER, _CONNECT_DRIVER, _KAFKA_CONNECT],
        "task-decorators": [
            {"name": "connector", "class-name": "airflow_connect.decorators.connector.connector_task"},
        ],
        "notifications": ["airflow_connect.notifications.connector.ConnectorNotifier"],
        "config": _CONFIG,
        "plugins": [{"name": "airflow_connect", "plugin-class": "airflow_connect.plugin.ConnectPlugin"}],
    }

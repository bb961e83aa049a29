"""What Airflow's provider manager wants to know. Imports nothing: it runs in every Airflow process."""

from __future__ import annotations

from typing import Any


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
            {"integration-name": "Kafka Connect", "python-modules": ["airflow_connect.operators.connector"]},
        ],
        "plugins": [{"name": "airflow_connect", "plugin-class": "airflow_connect.plugin.ConnectPlugin"}],
    }

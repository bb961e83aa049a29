"""The Airflow plugin. Loaded by every Airflow process, so it imports nothing but the plugin base class.

Airflow finds it by the entry point `airflow.plugins`; what the provider metadata lists alone is not loaded.
"""

from __future__ import annotations

from typing import Any

from airflow.plugins_manager import AirflowPlugin

from airflow_connect import __version__


def connector_group(name: str) -> str:
    """Consumer group with a sink's offsets: `{{ macros.airflow_connect.connector_group('orders') }}`."""
    return f"connect-{name}"


class ConnectPlugin(AirflowPlugin):
    """Adds the macro `connector_group`."""

    # A name that another plugin has too would drop every later plugin of the batch.
    name = "airflow_connect"
    macros: list[Any] = [connector_group]  # noqa: RUF012 (declared by the base class as it is)
    version = __version__

"""The Airflow plugin. Loaded by every Airflow process, so it imports nothing but the plugin base class.

Airflow finds it by the entry point `airflow.plugins`; what the provider metadata lists alone is not loaded.
"""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any

from airflow.plugins_manager import AirflowPlugin

from airflow_connect import __version__


def connector_group(name: str) -> str:
    """Consumer group with a sink's offsets: `{{ macros.airflow_connect.connector_group('orders') }}`."""
    return f"connect-{name}"


AIRFLOW_APP = "airflow_connect.airflow_app"
"""In the scope of a request: Airflow's own application, whose REST API pages use."""


class LoadedOnRequest:
    """An ASGI application whose module is imported, in a thread, when the first request comes."""

    def __init__(self, module: str, name: str) -> None:
        """`name`: what the module has that makes it: a class or a function, without arguments."""
        self._module, self._name = module, name
        self._app: Any = None
        self._lock = asyncio.Lock()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass the request on."""
        if self._app is None:
            async with self._lock:
                self._app = self._app or await asyncio.to_thread(self._load)
        await self._app({**scope, AIRFLOW_APP: scope.get("app")}, receive, send)

    def _load(self) -> Any:
        return getattr(import_module(self._module), self._name)()


class ConnectPlugin(AirflowPlugin):
    """Adds the macro `connector_group`, Kafka Connect's REST API under `/connect`, and pages about connectors."""

    # A name that another plugin has too would drop every later plugin of the batch.
    name = "airflow_connect"
    macros: list[Any] = [connector_group]  # noqa: RUF012 (declared by the base class as it is)
    fastapi_apps: list[Any] = [  # noqa: RUF012
        {
            "app": LoadedOnRequest("airflow_connect.ui.web.connect_api", "ConnectApi"),
            "url_prefix": "/connect",
            "name": "Kafka Connect's REST API",
        },
        {
            "app": LoadedOnRequest("airflow_connect.ui.pages.app", "create_app"),
            "url_prefix": "/airflow-connect",
            "name": "Pages about connectors",
        },
    ]
    # Addresses are relative to the one that the API server has: Airflow's pages have it as their base.
    external_views: list[Any] = [  # noqa: RUF012
        {
            "name": "Kafka Connect",
            "href": "airflow-connect/",
            "destination": "nav",
            "category": "browse",
            "url_route": "kafka-connect",
        },
        *(
            {
                "name": "Connectors",
                "href": f"airflow-connect/of?{query}",
                "destination": where,
                "url_route": f"connectors-of-{where}",
            }
            for where, query in (
                ("dag", "dag_id={DAG_ID}"),
                ("dag_run", "dag_id={DAG_ID}&run_id={RUN_ID}"),
                ("task_instance", "dag_id={DAG_ID}&run_id={RUN_ID}&task_id={TASK_ID}"),
            )
        ),
    ]
    version = __version__

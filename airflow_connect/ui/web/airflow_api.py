"""Airflow's REST API, asked inside the process of the API server, as the user of a request.

So a run that a page starts is checked, permitted and recorded by Airflow itself, exactly as one of its trigger form.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from airflow_connect.control.herder.refusals import RefusedError
from airflow_connect.ui.web.access import Visitor

_HOST = "http://airflow"


@dataclass(frozen=True, slots=True)
class AirflowApi:
    """The API for one visitor. Its methods wait: call them in a thread of the event loop's pool.

    Attributes:
        app: Airflow's application.
        visitor: who asks.
    """

    app: Any = field(repr=False)
    visitor: Visitor

    def is_paused(self, dag_id: str) -> bool:
        """Whether runs of a DAG wait until it is unpaused.

        Raises:
            RefusedError: with Airflow's status and reason.
        """
        return bool(self._ask("GET", f"/api/v2/dags/{quote(dag_id, safe='')}")["is_paused"])

    def trigger(self, dag_id: str, conf: Mapping[str, Any], note: str) -> str:
        """Start a run of a DAG; returns its id.

        Raises:
            RefusedError: with Airflow's status and reason.
        """
        body = {"logical_date": None, "conf": dict(conf), "note": note}
        return str(self._ask("POST", f"/api/v2/dags/{quote(dag_id, safe='')}/dagRuns", body)["dag_run_id"])

    def state_of(self, dag_id: str, dag_run_id: str) -> str:
        """The state of a DAG run, such as `queued`.

        Raises:
            RefusedError: with Airflow's status and reason.
        """
        where = f"/api/v2/dags/{quote(dag_id, safe='')}/dagRuns/{quote(dag_run_id, safe='')}"
        return str(self._ask("GET", where)["state"])

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        from anyio import from_thread

        if self.app is None:
            raise RefusedError("These pages do not run inside Airflow's API server, so they can start no DAG.", 503)
        status, text = from_thread.run(self._answer, method, path, body)
        try:
            found = json.loads(text)
        except ValueError:
            found = text
        if status >= 400 or not isinstance(found, dict):
            raise RefusedError(f"Airflow has refused this: {_reason(found)}", status if status >= 400 else 502)
        return found

    async def _answer(self, method: str, path: str, body: Mapping[str, Any] | None) -> tuple[int, str]:
        from httpx import ASGITransport, AsyncClient

        transport = ASGITransport(app=self.app, raise_app_exceptions=False)
        async with AsyncClient(transport=transport, base_url=_HOST, headers=dict(self.visitor.login)) as client:
            answer = await client.request(method, path, json=body)
            return answer.status_code, answer.text


def _reason(found: Any) -> str:
    """Airflow's own words; of a body that does not fit, the fields."""
    detail = found.get("detail", found) if isinstance(found, dict) else found
    if isinstance(detail, list):
        return "; ".join(f"{'.'.join(map(str, each.get('loc', ())))}: {each.get('msg', each)}" for each in detail)
    return str(detail)[:500]

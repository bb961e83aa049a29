"""Run now: a run of a registered connector by its worker, or of its DAG through Airflow; and the wait for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from airflow_connect.config.keys.points_in_time import parse_timestamp_ms
from airflow_connect.control.herder.refusals import CONFLICT, RefusedError
from airflow_connect.errors import ConnectError
from airflow_connect.ui.overview.model import Connector, Run
from airflow_connect.ui.pages.calls import Call, connector_of
from airflow_connect.ui.pages.rendering import render
from airflow_connect.ui.pages.views.origins import is_of
from airflow_connect.ui.web.airflow_api import AirflowApi
from airflow_connect.ui.web.audit import record

MAX_RECORDS, UNTIL = "run.max.records", "run.until.timestamp"
_ENDED = ("success", "failed")


def start(call: Call) -> str:
    """Start a run of one connector with the limits of the form, and lead to it."""
    connector = connector_of(call, call.seen(now=True))
    if connector is None:
        raise RefusedError("Kafka has not answered yet, so nothing was started. Try again.", 503)
    limits = limits_of(call)
    if connector.is_registered:
        run_id = start_registered(call, connector.name, limits)
        return call.href("run", name=connector.name, run=run_id, asked="1")
    return call.href("begun", name=connector.name, **start_dag(call, connector, limits))


def limits_of(call: Call) -> dict[str, str]:
    """The limits of the form: keys of a run, without empty ones.

    Raises:
        RefusedError: a value is wrong; nothing was started.
    """
    records, until = call.field_of(MAX_RECORDS), call.field_of(UNTIL)
    if records and not (records.isdecimal() and 0 < int(records) < 1 << 63):
        raise RefusedError(f"{MAX_RECORDS} is {records!r}, and must be a number above 0. Nothing was started.")
    if until:
        try:
            until = in_utc(parse_timestamp_ms(until))
        except ValueError as error:
            raise RefusedError(f"{UNTIL} is {until!r}. {error}. Nothing was started.") from error
    return {key: value for key, value in ((MAX_RECORDS, records), (UNTIL, until)) if value}


def in_utc(ms: int) -> str:
    """`2026-11-20T08:00:00Z`: with a zone, as the trigger form of a DAG checks it, whatever was typed.

    Raises:
        ValueError: after the year 9999.
    """
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
    except OverflowError:
        raise ValueError("Expected a time before the year 10000") from None
    return moment.isoformat().replace("+00:00", "Z")


def start_registered(call: Call, name: str, limits: Mapping[str, str]) -> str:
    """Ask the worker; returns the id of the run."""
    record("run_connector", call.visitor.name, call.conn_id, name, limits, via="page")
    return call.console.installations.get(call.conn_id).herder.run_now(name, limits)


def start_dag(call: Call, connector: Connector, limits: Mapping[str, str]) -> dict[str, str]:
    """Trigger the DAG that has run the connector last; returns the ids of DAG and run."""
    if not connector.dags:
        raise RefusedError(f"{connector.name} is not registered here, and no DAG of its runs is known.", CONFLICT)
    dag_id = connector.dags[0]
    conf = {key: int(value) if key == MAX_RECORDS else value for key, value in limits.items()}
    record("run_connector", call.visitor.name, call.conn_id, connector.name, limits, via="page", dag_id=dag_id)
    api = AirflowApi(call.airflow_app, call.visitor)
    return {"dag_id": dag_id, "dag_run_id": api.trigger(dag_id, conf, f"Run now of connector {connector.name}")}


def start_many(call: Call, names: list[str]) -> str:
    """Start the chosen connectors without limits; returns what to tell."""
    known = call.seen(now=True).value
    done, refused = [], []
    for name in names:
        connector = known.connectors.get(name) if known else None
        try:
            if connector is not None and not connector.is_registered:
                start_dag(call, connector, {})
            else:
                start_registered(call, name, {})
            done.append(name)
        except ConnectError as error:
            refused.append(f"{name}: {error}")
    call.seen(now=True)
    told = f"Runs of {len(done)} of {len(names)} connectors were started."
    return " ".join([*(["!"] if refused else []), told, *first(refused)])


def first(refused: Sequence[str]) -> list[str]:
    """The first three, which an address can hold, and how many there are besides."""
    return [*refused[:3], *([f"And {len(refused) - 3} more."] if len(refused) > 3 else [])]


def begun(call: Call) -> str:
    """The run of a DAG run that was just started; until it is there, what the DAG run does."""
    seen = call.seen()
    connector = connector_of(call, seen)
    dag_id, dag_run_id = call.query.get("dag_id", ""), call.query.get("dag_run_id", "")
    run_id = _run_of(connector, dag_id, dag_run_id) if connector else ""
    if connector and run_id:
        return call.href("run", name=connector.name, run=run_id)
    api = AirflowApi(call.airflow_app, call.visitor)
    state = api.state_of(dag_id, dag_run_id)
    return render(
        "begun.html",
        **call.shell(f"Run of {call.query.get('name', '')}", "connectors", seen),
        name=call.query.get("name", ""),
        dag_id=dag_id,
        dag_run_id=dag_run_id,
        state=state,
        has_ended=state in _ENDED,
        is_paused=state == "queued" and api.is_paused(dag_id),
    )


def _run_of(connector: Connector, dag_id: str, dag_run_id: str) -> str:
    found = next((run.run_id for run in connector.runs if _is_its(run, dag_id, dag_run_id)), "")
    progress = connector.progress
    if not found and progress is not None and is_of(progress.origin, dag_id, dag_run_id, ""):
        return progress.run_id
    return found


def _is_its(run: Run, dag_id: str, dag_run_id: str) -> bool:
    return is_of(run.origin, dag_id, dag_run_id, "")

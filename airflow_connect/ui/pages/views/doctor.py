"""Whether everything that runs need is there: the checks of `airflow-connect doctor --deep`."""

from __future__ import annotations

from airflow_connect.runtime.reporting.texts import plural
from airflow_connect.ui.pages.calls import Call, connector_of
from airflow_connect.ui.pages.rendering import render


def page(call: Call) -> str:
    """The page; with a name, what runs of that registered connector need as well."""
    name = call.query.get("name", "")
    connector = connector_of(call, seen) if name and (seen := call.seen()) else None
    config = connector.config if connector else None
    is_waiting_for_name = bool(name) and connector is None
    checks = None if is_waiting_for_name else call.console.doctor(call.conn_id, name if config else "", config)
    found = checks.value if checks else None
    wrong = [check for check in found or () if not check.is_ok]
    return render(
        "doctor.html",
        **call.shell("Doctor", "cluster"),
        name=name,
        is_of_dag=connector is not None and config is None,
        checks=checks,
        found=[*wrong, *(check for check in found or () if check.is_ok)],
        told=f"{plural(len(found), 'check')}, {len(wrong)} failed" if found is not None else "",
        every=0 if found is not None and checks is not None and not checks.is_waiting else 1,
    )

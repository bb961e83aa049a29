"""What the script of the form asks while somebody types: the same checks, as a piece of the page.

It registers nothing. It is a POST because a configuration may hold secrets, which must not get into an address.
"""

from __future__ import annotations

from typing import Any

from airflow_connect.ui.overview.watching import Seen
from airflow_connect.ui.pages.calls import Call
from airflow_connect.ui.pages.rendering import render
from airflow_connect.ui.pages.views.edit import registered
from airflow_connect.ui.pages.views.form import NAME, Checked, checked_form, form_values
from airflow_connect.ui.pages.views.steps import Steps, steps_of


def look(call: Call) -> str:
    """Errors and fields of what is typed so far; with `do=plan` also the plan of the run, and other steps."""
    stored = registered(call).config if call.query.get("name") else None
    form = checked_form(call, stored, is_live=True)
    if stored is None and not call.field_of("config") and not form.keys:
        form = Checked({}, {})  # Nothing is chosen yet, which is not a mistake.
    plan: Seen[Any] | None = None
    if stored is not None and form.is_ready and call.field_of("do") == "plan":
        plan = call.console.plan(call.conn_id, str(form.config[NAME]), form.config)
    steps = steps_of(call, form, is_live=True) if stored is None else Steps()
    values = form_values(call, form, plan if stored is not None else steps.plan)
    return render("form_live.html", call=call, **values, steps=steps, is_live=True)

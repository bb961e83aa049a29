"""A new connector: a configuration of Kafka Connect, pasted or typed key by key; checked, planned, then registered."""

from __future__ import annotations

from airflow_connect.ui.pages.calls import Call
from airflow_connect.ui.pages.rendering import render
from airflow_connect.ui.pages.views.form import CLASS, NAME, START, Checked, checked_form, form_values


def page(call: Call) -> str:
    """The empty form; the query may name a class."""
    chosen = {**START, CLASS: call.query.get("class", "")}
    return _page(call, Checked(chosen, chosen))


def check(call: Call) -> str | tuple[int, str]:
    """The form with what is wrong, or with the plan of the first run. Nothing is registered."""
    checked = checked_form(call)
    html = _page(call, checked)
    return (400, html) if checked.problem else html


def _page(call: Call, checked: Checked) -> str:
    plan = call.console.plan(call.conn_id, str(checked.config[NAME]), checked.config) if checked.is_ready else None
    return render("create.html", **call.shell("New connector", "create"), **form_values(checked, plan), is_live=False)

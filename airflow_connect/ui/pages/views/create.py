"""A new connector in five steps: choose a class, fill in its keys, test access, look at records, plan.

The state of the form travels in its POST: neither in addresses nor in a session, because it may hold secrets.
"""

from __future__ import annotations

from dataclasses import replace

from airflow_connect.api.config import plugins
from airflow_connect.api.config.plugins import PluginKind
from airflow_connect.ui.pages import gallery
from airflow_connect.ui.pages.calls import Call
from airflow_connect.ui.pages.rendering import render
from airflow_connect.ui.pages.views.form import CLASS, START, Checked, checked, checked_form, form_values
from airflow_connect.ui.pages.views.steps import Steps, steps_of

FROM, TEXT = "from", "text"
"""The query of the form that begins with a text: `?from=text`."""


def page(call: Call) -> str:
    """The gallery; or the form of the class that the query names, or of a text."""
    chosen = call.query.get("class", "")
    if not chosen and call.query.get(FROM) != TEXT:
        words = call.query.get("q", "")
        shell = call.shell("New connector", "create")
        return render("gallery.html", **shell, cards=gallery.found(words), docs=gallery.DOCS, words=words)
    config = {**START, CLASS: chosen}
    # A GET imports nothing but plugins: another class is looked at when its user has sent the form.
    if plugins.installed(PluginKind.CONNECTOR, chosen) is None:
        return _page(call, Checked(config, config), Steps())
    form = checked(call, config)
    # Nothing was typed yet, so nothing is wrong yet.
    keys = tuple(replace(key, errors=()) for key in form.keys)
    return _page(call, replace(form, keys=keys, problem="", notes=()), Steps())


def check(call: Call) -> str | tuple[int, str]:
    """The form with what is wrong, or with the answers to its steps. Nothing is registered."""
    form = checked_form(call)
    html = _page(call, form, steps_of(call, form))
    return (400, html) if form.problem else html


def _page(call: Call, form: Checked, steps: Steps) -> str:
    return render(
        "create.html",
        **call.shell("New connector", "create"),
        **form_values(call, form, steps.plan),
        steps=steps,
        is_text=call.query.get(FROM) == TEXT,
        is_live=False,
    )

"""A registered connector in the form: its references stay, its secrets stay hidden, and what changes is shown first."""

from __future__ import annotations

from dataclasses import replace

from airflow_connect.control.herder.refusals import CONFLICT, RefusedError
from airflow_connect.control.state.config_fold import Registered
from airflow_connect.errors import UnavailableError
from airflow_connect.ui.overview.watching import Seen
from airflow_connect.ui.pages.calls import Call, connector_of
from airflow_connect.ui.pages.rendering import render
from airflow_connect.ui.pages.views.form import NAME, Checked, checked, checked_form, form_values
from airflow_connect.ui.web.audit import record

SEEN = "seen"
"""Form field with the offset of the configuration that the form began with."""
_CHANGED = (
    "Another user has changed this connector since you opened the form; nothing was saved. Below is what your"
    " configuration would change now. Save it again to replace theirs."
)


def page(call: Call) -> str:
    """The form with the registered configuration."""
    found = registered(call, now=True)
    return _page(call, checked(call, found.config, found.config), found.offset)


def save(call: Call) -> str | tuple[int, str]:
    """Show what would change; or, if the user has seen that, register it unless it has changed meanwhile."""
    found = registered(call, now=True)
    form = checked_form(call, found.config)
    seen = _offset_of(call)
    if form.problem:
        return 400, _page(call, form, seen)
    if call.field_of("do") != "save":
        return _page(call, form, seen)
    if seen != found.offset:
        return _conflict(call, form, found)
    name = str(found.config[NAME])
    record("put_config", call.visitor.name, call.conn_id, name, [key for key, _, _ in form.changes()], via="page")
    try:
        call.console.installations.get(call.conn_id).herder.replace_config(name, form.config, seen)
    except RefusedError as refused:
        if refused.status != CONFLICT:
            raise
        latest = registered(call, now=True)
        return _conflict(call, checked_form(call, latest.config), latest)
    call.console.forget_registered(call.conn_id, name)
    call.seen(now=True)
    return call.href("connector", name=name, done=f"{name} was changed. The next run has the new configuration.")


def registered(call: Call, *, now: bool = False) -> Registered:
    """The configuration that the query names.

    Raises:
        RefusedError: there is no such connector, or only DAGs know it.
        UnavailableError: Kafka does not answer.
    """
    connector = connector_of(call, call.seen())
    if connector is not None and connector.config is None:
        raise RefusedError(f"{connector.name} is not registered: a DAG has its configuration. Change it there.")
    name = call.query.get("name", "")
    seen: Seen[Registered] = call.console.registered(call.conn_id, name, now=now)
    if seen.value is None or (now and (seen.problem or seen.is_waiting)):
        why = seen.problem or f"The configuration of {name} has not been read from Kafka yet."
        raise UnavailableError(why, suggestion="Load this page again in a moment.")
    config = seen.value.config
    return seen.value._replace(config={**config, NAME: config.get(NAME) or name})


def _conflict(call: Call, form: Checked, found: Registered) -> tuple[int, str]:
    return CONFLICT, _page(call, replace(form, notes=(_CHANGED, *form.notes)), found.offset)


def _offset_of(call: Call) -> int:
    try:
        return int(call.field_of(SEEN))
    except ValueError as error:
        raise RefusedError("The form does not say which configuration it began with. Open it again.") from error


def _page(call: Call, form: Checked, seen: int) -> str:
    name = str((form.stored or form.config)[NAME])
    plan = None
    if form.is_ready and form.changes():
        plan = call.console.plan(call.conn_id, name, form.config)
    return render(
        "edit.html",
        **call.shell(f"Edit {name}", "connectors"),
        **form_values(call, form, plan),
        name=name,
        offset=seen,
        is_live=False,
    )

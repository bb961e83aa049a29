"""Changes: each is a POST with a right, a check of where it comes from, and an entry in Airflow's audit log."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from airflow_connect.control.herder.herder import Herder
from airflow_connect.control.herder.refusals import RefusedError
from airflow_connect.counting import counted
from airflow_connect.errors import ConnectError
from airflow_connect.ui.pages.calls import Call
from airflow_connect.ui.pages.views import create as create_page
from airflow_connect.ui.pages.views import letters, offsets, run_now
from airflow_connect.ui.pages.views.form import NAME, checked_form
from airflow_connect.ui.pages.views.of_dags import config_of
from airflow_connect.ui.web.audit import record

_STATES: Mapping[str, tuple[str, Callable[[Herder, str], object]]] = {
    "pause": ("paused", lambda herder, name: herder.pause(name)),
    "resume": ("resumed", lambda herder, name: herder.resume(name)),
    "stop": ("stopped", lambda herder, name: herder.stop(name)),
    "restart": ("restarted", lambda herder, name: herder.restart(name, include_tasks=True, only_failed=False)),
}

RUN = "run"


def change_states(call: Call) -> str:
    """Pause, resume, stop, restart or run the connectors that are chosen; a button may name one: `pause:orders`."""
    action, _, one = call.field_of("do").partition(":")
    names = [one] if one else list(dict.fromkeys(call.form.get("name", [])))
    if action not in (*_STATES, RUN):
        raise RefusedError(f"There is no action {action!r}; there are {', '.join((*_STATES, RUN))}.")
    back = call.field_of("back")
    if not names:
        return _back(call, back, "! Choose at least one connector first.")
    if action == RUN:
        return _back(call, back, run_now.start_many(call, names))
    herder = call.console.installations.get(call.conn_id).herder
    word, change = _STATES[action]
    done, refused = 0, []
    for name in names:
        record(f"{action}_connector", call.visitor.name, call.conn_id, name, via="page")
        try:
            change(herder, name)
            done += 1
        except ConnectError as error:
            refused.append(f"{name}: {error}")
    call.seen(now=True)  # So that the next page shows what has changed.
    told = f"{names[0]} was {word}." if done == len(names) == 1 else f"{done} of {len(names)} connectors {word}."
    return _back(call, back, " ".join([*(["!"] if refused else []), told, *run_now.first(refused)]))


def change_offsets(call: Call) -> str | tuple[int, str]:
    """First show what a change of offsets would do; then, confirmed, do it."""
    if not call.field_of("confirmed"):
        return offsets.preview(call)
    name = call.query.get("name", "")
    connector, wanted = offsets.confirmed(call)
    record("alter_offsets", call.visitor.name, call.conn_id, name, via="page", offsets=json.dumps(wanted)[:2000])
    entries = [
        {"partition": {"kafka_topic": topic, "kafka_partition": int(number)}, "offset": offset}
        for place, value in wanted.items()
        for topic, _, number in [place.rpartition("-")]
        for offset in [None if value is None else {"kafka_offset": value}]
    ]
    if connector.is_registered:
        call.console.installations.get(call.conn_id).herder.alter_offsets(name, {"offsets": entries})
    else:
        call.console.set_offsets(call.conn_id, config_of(call, connector), entries)
    call.seen(now=True)
    return call.href("connector", name=name, done=f"The offsets of {counted(len(wanted), 'partition')} were changed.")


def replay_letters(call: Call) -> str:
    """Replay dead letters whose number the user has seen and confirmed."""
    connector = letters.permitted(call)
    record("replay_dead_letters", call.visitor.name, call.conn_id, connector.name, via="page")
    told = letters.replay(call, connector)
    call.seen(now=True)
    return call.href("connector", name=connector.name, done=told)


def create(call: Call) -> str | tuple[int, str]:
    """Check a configuration; register it if the user has confirmed that."""
    if call.field_of("do") != "create":
        return create_page.check(call)
    checked = checked_form(call)
    if checked.problem:
        return create_page.check(call)
    name = str(checked.config[NAME])
    record("create_connector", call.visitor.name, call.conn_id, name, checked.config, via="page")
    call.console.installations.get(call.conn_id).herder.create(name, checked.config)
    call.seen(now=True)
    return call.href("connector", name=name, done=f"{name} was created.")


def _back(call: Call, page: str, told: str) -> str:
    """The page that the form was on; never another site."""
    if page.startswith("connector:"):
        return call.href("connector", name=page.partition(":")[2], done=told)
    return call.href("problems" if page == "problems" else "", done=told)

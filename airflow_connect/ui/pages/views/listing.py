"""All connectors of an installation, the worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from airflow_connect.documents.run import DONE, EMPTY
from airflow_connect.runtime.reporting.texts import format_count
from airflow_connect.ui.overview.model import Connector, Run, State
from airflow_connect.ui.pages.calls import Call
from airflow_connect.ui.pages.charts import Bar, strip
from airflow_connect.ui.pages.rendering import at, duration, render
from airflow_connect.ui.pages.views.hiding import shown_config
from airflow_connect.ui.pages.views.lag import week
from airflow_connect.ui.web.access import Right

RUNS_SHOWN = 20
WORDS = {
    State.FAILED: "Failed", State.LATE: "Late", State.RUNNING: "Copying", State.WAITING: "Has new records",
    State.NEW: "Has not run yet", State.CURRENT: "Up to date", State.PAUSED: "Paused", State.STOPPED: "Stopped",
}  # fmt: skip
KINDS = {
    State.FAILED: "bad", State.LATE: "warn", State.RUNNING: "busy", State.WAITING: "quiet", State.NEW: "quiet",
    State.CURRENT: "ok", State.PAUSED: "quiet", State.STOPPED: "quiet",
}  # fmt: skip
SIGNS = {"bad": "✗", "warn": "!", "busy": "▶", "ok": "✓", "quiet": "·"}


@dataclass(frozen=True, slots=True)
class Row:
    """A connector in the list."""

    connector: Connector
    state: Markup
    strip: Markup
    week: Markup
    share: str
    action: str
    dag: str
    may_run: bool


def badge(state: State) -> Markup:
    """The state as a sign and a word."""
    kind = KINDS[state]
    shown = '<span class="badge {}"><span aria-hidden="true">{}</span> {}</span>'
    return Markup(shown).format(kind, SIGNS[kind], WORDS[state])


def run_bar(run: Run, href: str) -> Bar:
    """A run as a bar that leads to it."""
    kind = {DONE: "warn" if run.dead_lettered else "ok", EMPTY: "quiet"}.get(run.status, "bad")
    dead = f", {format_count(run.dead_lettered)} dead letters" if run.dead_lettered else ""
    told = {DONE: f"{format_count(run.read)} records{dead}", EMPTY: "nothing to copy"}.get(run.status, "failed")
    return Bar(run.read, f"{at(run.started_ms)}: {told}, {duration(run.duration_ms)}", kind, href)


def page(call: Call) -> str:
    """The list."""
    seen = call.seen()
    every = seen.value.worst_first() if seen.value else []
    search, state = call.query.get("q", "").strip(), call.query.get("state", "")
    shown = [c for c in every if _matches(c, search) and state in ("", c.state.value)]
    counts, may_run = Counter(connector.state for connector in every), _may_run(call, shown)
    return render(
        "list.html",
        **call.shell("Connectors", "connectors", seen),
        rows=[_row(connector, seen.value.at_ms, may_run) for connector in shown] if seen.value else [],
        total=len(every),
        counts=[(s, WORDS[s], KINDS[s], counts[s]) for s in State if counts[s]],
        search=search,
        state=state,
    )


def _matches(connector: Connector, search: str) -> bool:
    """Whether each word is in the name, the class, a topic or a key or value of the configuration."""
    words = search.lower().split()
    if not words:
        return True
    topics = {position.topic for position in connector.positions}
    # Only what a page shows: a search must not tell, letter by letter, what a secret is.
    shown = (f"{key}={value}" for key, value in shown_config(connector.config or {}).items())
    text = " ".join([connector.name, connector.kind, *topics, *shown]).lower()
    return all(word in text for word in words)


def _may_run(call: Call, shown: Sequence[Connector]) -> dict[str, bool]:
    """Whether a run of each connector may be offered. What depends on a single DAG, Airflow decides after the click."""
    may_operate = call.may(Right.OPERATE)
    may_trigger = may_operate and any(not c.is_registered for c in shown) and call.visitor.may_trigger()
    return {c.name: (may_operate and c.target == "STARTED") or (may_trigger and bool(c.dags)) for c in shown}


def _row(connector: Connector, now_ms: int, may_run: Mapping[str, bool]) -> Row:
    runs = connector.runs[:RUNS_SHOWN][::-1]
    bars = [run_bar(run, "") for run in runs]
    last = f"The last {len(bars)} runs of {connector.name}: " + (bars[-1].title if bars else "none")
    action = {State.FAILED: "restart", State.PAUSED: "resume", State.STOPPED: "resume"}.get(connector.state, "pause")
    return Row(
        connector,
        badge(connector.state),
        strip(bars, last) if bars else Markup(""),
        week(connector, now_ms),
        f"{connector.progress.share:.0%}" if connector.progress and connector.progress.share is not None else "",
        action if connector.is_registered else "",
        connector.dags[0] if connector.dags and not connector.is_registered else "",
        may_run[connector.name],
    )

"""All connectors of an installation, the worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from markupsafe import Markup

from airflow_connect.documents.run import DONE, EMPTY
from airflow_connect.runtime.reporting.texts import format_count
from airflow_connect.ui.overview.model import Connector, State
from airflow_connect.ui.pages.calls import Call
from airflow_connect.ui.pages.charts import Bar, strip
from airflow_connect.ui.pages.rendering import at, duration, render
from airflow_connect.ui.pages.views.hiding import shown_config
from airflow_connect.ui.pages.views.lag import week
from airflow_connect.ui.web.access import Right

RUNS_SHOWN = 20
WORDS = {
    State.FAILED: "Failed", State.LATE: "Late", State.UNKNOWN: "Lag not known", State.RUNNING: "Copying",
    State.WAITING: "Has new records", State.NEW: "Has not run yet", State.CURRENT: "Up to date",
    State.PAUSED: "Paused", State.STOPPED: "Stopped",
}  # fmt: skip
KINDS = {
    State.FAILED: "bad", State.LATE: "warn", State.UNKNOWN: "warn", State.RUNNING: "busy", State.WAITING: "quiet",
    State.NEW: "quiet", State.CURRENT: "ok", State.PAUSED: "quiet", State.STOPPED: "quiet",
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


class _Shown(NamedTuple):
    """What a bar shows of a run."""

    status: str
    started_ms: int
    duration_ms: int
    read: int
    dead_lettered: int

    def bar(self) -> Bar:
        """The bar."""
        kind = {DONE: "warn" if self.dead_lettered else "ok", EMPTY: "quiet"}.get(self.status, "bad")
        dead = f", {format_count(self.dead_lettered)} dead letters" if self.dead_lettered else ""
        told = {DONE: f"{format_count(self.read)} records{dead}", EMPTY: "nothing to copy"}.get(self.status, "failed")
        return Bar(self.read, f"{at(self.started_ms)}: {told}, {duration(self.duration_ms)}", kind)


def _runs(connector: Connector) -> Markup:
    """The last runs as small bars."""
    shown = connector.runs[:RUNS_SHOWN][::-1]
    facts = (_Shown(run.status, run.started_ms, run.duration_ms, run.read, run.dead_lettered) for run in shown)
    return _drawn(connector.name, tuple(facts))


@lru_cache(maxsize=2048)
def _drawn(name: str, runs: tuple[_Shown, ...]) -> Markup:
    """Drawn once for each run: a list has hundreds of these, each with twenty bars."""
    bars = [run.bar() for run in runs]
    return strip(bars, f"The last {len(bars)} runs of {name}: {bars[-1].title}") if bars else Markup("")


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
    action = {State.FAILED: "restart", State.PAUSED: "resume", State.STOPPED: "resume"}.get(connector.state, "pause")
    return Row(
        connector,
        badge(connector.state),
        _runs(connector),
        week(connector, now_ms),
        f"{connector.progress.share:.0%}" if connector.progress and connector.progress.share is not None else "",
        action if connector.is_registered else "",
        connector.dags[0] if connector.dags and not connector.is_registered else "",
        may_run[connector.name],
    )

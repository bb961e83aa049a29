"""What is wrong in all installations, for somebody who was woken by it: since when, what it costs, what helps."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from airflow_connect.documents.run import DONE, EMPTY
from airflow_connect.runtime.reporting.texts import format_count, plural
from airflow_connect.ui.overview.model import Connector, Run, State
from airflow_connect.ui.overview.problems import Problem, Trouble
from airflow_connect.ui.overview.retention import Deadline
from airflow_connect.ui.pages.calls import Call
from airflow_connect.ui.pages.checking import Checked, checked
from airflow_connect.ui.pages.rendering import at, render, span_of
from airflow_connect.ui.web.access import Right

KINDS = {Trouble.FAILED: "bad", Trouble.LOST: "bad", Trouble.LOSING: "bad", Trouble.UNREADABLE: "bad"}
_CHANGED_MEANWHILE = "offset.changed_meanwhile"
"""The one error of offsets that the next run gets over without help."""


@dataclass(frozen=True, slots=True)
class Help:
    """The one button: a change that is sent (`do`), or a page that it leads to (`href`), of Airflow or of ours."""

    word: str
    do: str = ""
    href: str = ""
    is_of_airflow: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A problem as the page shows it.

    Attributes:
        of: the request, as if it had been sent to the installation of the connector.
        badges: sort of badge, and word.
        since, costs, tried: sentences.
    """

    of: Call
    problem: Problem
    badges: tuple[tuple[str, str], ...]
    since: str
    costs: tuple[str, ...]
    tried: tuple[str, ...]
    help: Help | None


def page(call: Call) -> str:
    """The page."""
    every = checked(call.console)
    rows = [row for found in every for row in _rows(call, found)]
    order = list(Trouble)
    rows.sort(key=lambda row: order.index(row.problem.troubles[0]))
    read = [found.seen.value.at_ms for found in every if found.seen.value]
    return render(
        "problems.html",
        **call.shell("Problems", "problems"),
        every=every,
        silent=[(replace(call, conn_id=found.conn_id), found.seen) for found in every if found.seen.problem],
        dags_problem=call.console.installations.problem(),
        waiting=[found.conn_id for found in every if found.is_waiting],
        notes=[note for found in every for note in _notes(found)],
        checked_ms=min(read, default=None),
        rows=rows,
        has_failed=any(Trouble.FAILED in row.problem.troubles for row in rows),
    )


def _rows(call: Call, found: Checked) -> list[Row]:
    if not found.problems:
        return []
    of = replace(call, conn_id=found.conn_id)
    operates, changes = of.may(Right.OPERATE), of.may(Right.CHANGE)
    is_of_dag = any(not p.connector.is_registered for p in found.problems)
    # What depends on a single DAG is decided after the click.
    triggers = operates and is_of_dag and of.visitor.may_trigger()
    edits = operates and is_of_dag and of.visitor.may_edit_dag()
    return [
        Row(
            of,
            p,
            tuple((KINDS.get(trouble, "warn"), trouble.value) for trouble in p.troubles),
            _since(p),
            _costs(p),
            _tried(p.connector),
            _help(of, p, may_run=operates, may_change=changes)
            if p.connector.is_registered
            else _help(of, p, may_run=triggers, may_change=edits),
        )
        for p in found.problems
    ]


def _notes(found: Checked) -> list[str]:
    """What was not looked at, so that silence is not taken for health."""
    notes = []
    if found.deadlines and found.deadlines.problem:
        notes.append(f"{found.conn_id}: when topics lose records is not known. {found.deadlines.problem}")
    connectors = found.seen.value.connectors.values() if found.seen.value else ()
    if unknown := [c.name for c in connectors if c.lag_problem]:
        notes.append(
            f"{found.conn_id}: the lag of {plural(len(unknown), 'connector')} is not known ({_named(unknown)}), so"
            " nothing here tells whether they are late or lose records."
        )
    if unplanned := [c for c in connectors if c.schedule_problem and c.lag]:
        notes.append(
            f"{found.conn_id}: {plural(len(unplanned), 'connector')} with records to copy may be late"
            f" ({_named([c.name for c in unplanned])}); nothing here tells. {unplanned[0].schedule_problem}"
        )
    return notes


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


# --- sentences -------------------------------------------------------------------------------------------------------


def _succeeded(run: Run) -> bool:
    return run.status in (DONE, EMPTY)


def _last_success(connector: Connector) -> Run | None:
    return next((run for run in connector.runs if _succeeded(run)), None)


def _since(problem: Problem) -> str:
    """When the worst of it began, as far as any state holds it."""
    connector, last, success = problem.connector, problem.connector.last_run, _last_success(problem.connector)
    match problem.troubles[0]:
        case Trouble.FAILED if last and not _succeeded(last):
            return f"{_when(last.ended_ms)}, or earlier" if success is None else _when(last.ended_ms)
        case Trouble.FAILED:
            return f"after {_when(success.ended_ms)}" if success else "not known"
        case Trouble.LOSING:
            oldest_ms = problem.deadlines[0].at_ms - problem.deadlines[0].retention_ms
            return f"its oldest record waits since {_when(oldest_ms)}"
        case Trouble.LATE if connector.missed_run_ms:
            return f"a run was due {_when(connector.missed_run_ms)}"
        case Trouble.GROWING | Trouble.DEAD_LETTERS if problem.letters.runs:
            return _when(problem.letters.runs[-1].ended_ms)
        case _:
            return "not known"


def _when(ms: int) -> str:
    return f"{at(ms)}, {span_of(time.time() - ms / 1000)} ago"


def _costs(problem: Problem) -> tuple[str, ...]:
    costs = []
    if problem.lost:
        costs.append(f"{plural(problem.lost, 'record')} of its topics were deleted before it copied them.")
    costs += [_loss(deadline) for deadline in problem.deadlines]
    if problem.connector.lag:
        costs.append(f"{plural(problem.connector.lag, 'record')} to copy.")
    if letters := problem.letters.runs:
        costs.append(f"{plural(problem.letters.last, 'dead letter')} in the last run that read records.")
        if len(letters) > 1:
            costs.append(
                f"{format_count(letters[1].dead_lettered)} in the run before it,"
                f" {format_count(problem.letters.total)} in the last {len(letters)} runs that read records."
            )
    return tuple(costs)


def _loss(deadline: Deadline) -> str:
    left_s = deadline.at_ms / 1000 - time.time()
    when = f"loses data in {span_of(left_s)}" if left_s > 0 else "may lose data now"
    return f"Topic {deadline.topic} {when}: it keeps records for {span_of(deadline.retention_ms / 1000)}."


def _tried(connector: Connector) -> tuple[str, ...]:
    last, success = connector.last_run, _last_success(connector)
    if last is None:
        return ("It has no run in the history.",)
    told = [connector.schedule_note] if connector.schedule_note else []
    if not _succeeded(last):
        told.append(f"The run of {_when(last.started_ms)} failed.")
    if success is None:
        return (*told, "The history has no run that succeeded.")
    read = f", {format_count(success.read)} records" if success.read else ", nothing to copy"
    return (*told, f"The last run that succeeded: {_when(success.ended_ms)}{read}.")


# --- what helps ------------------------------------------------------------------------------------------------------


def _help(call: Call, problem: Problem, *, may_run: bool, may_change: bool) -> Help | None:
    """The button that fits, if the user may press it."""
    connector, troubles = problem.connector, set(problem.troubles)
    is_sink = connector.kind == "sink"
    if is_sink and may_change and (Trouble.LOST in troubles or _is_of_offsets(connector)):
        return Help("Offsets", href=call.href("offsets", name=connector.name))
    if troubles & {Trouble.FAILED, Trouble.LOST, Trouble.LOSING, Trouble.LATE}:
        return _restart(call, connector) if may_run else None
    if not troubles & {Trouble.GROWING, Trouble.DEAD_LETTERS}:
        return None
    if is_sink and may_change and connector.queue:
        return Help("Replay dead letters", href=call.href("replay", name=connector.name))
    return Help("Dead letters", href=call.href("connector", name=connector.name) + "#dead-letters")


def _is_of_offsets(connector: Connector) -> bool:
    code = connector.last_run.error.get("code", "") if connector.last_run else ""
    return code.startswith("offset.") and code != _CHANGED_MEANWHILE


def _restart(call: Call, connector: Connector) -> Help | None:
    if not connector.is_registered and connector.state is State.PAUSED:
        return Help("Resume its DAG", href=call.airflow("dags", connector.dags[0]), is_of_airflow=True)
    if not connector.is_registered:
        return Help("Run now", do=f"run:{connector.name}") if connector.dags else None
    if connector.target != "STARTED":
        return Help("Resume", do=f"resume:{connector.name}")
    if connector.state is State.FAILED:
        return Help("Restart", do=f"restart:{connector.name}")
    return Help("Run now", do=f"run:{connector.name}")

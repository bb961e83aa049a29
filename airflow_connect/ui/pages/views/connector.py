"""A connector on one screen: what is wrong, how far it is behind, what it did, what it will do."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_connect.control.herder.refusals import CONFLICT, FORBIDDEN, RefusedError
from airflow_connect.counting import names
from airflow_connect.documents.run import Plan
from airflow_connect.runtime.reporting.texts import format_bytes, format_count, format_seconds, plural
from airflow_connect.ui.overview.model import Connector, Position, Run
from airflow_connect.ui.overview.watching import Seen
from airflow_connect.ui.pages.calls import Call, connector_of
from airflow_connect.ui.pages.charts import meter
from airflow_connect.ui.pages.rendering import render
from airflow_connect.ui.pages.views import history
from airflow_connect.ui.pages.views.hiding import knows_class, shown_config
from airflow_connect.ui.pages.views.listing import badge
from airflow_connect.ui.pages.views.of_dags import last_task, may_change
from airflow_connect.ui.pages.views.running import running_of
from airflow_connect.ui.pages.views.tables import table_rows
from airflow_connect.ui.web.access import Right

if TYPE_CHECKING:
    from airflow_connect.api.coverage import Covered
    from airflow_connect.api.offsets import TopicPartition
    from airflow_connect.ui.pages.asking import Config
    from airflow_connect.ui.web.dag_tasks import DagTask

MOST_PARTITIONS, MOST_TABLES = 100, 100
MOST_GAPS = 3
"""That are named."""


def page(call: Call) -> str:
    """The page."""
    seen = call.seen()
    connector = connector_of(call, seen)
    values: dict[str, Any] = call.shell(call.query.get("name", ""), "connectors", seen)
    if connector is None:
        return render("connector.html", **values, connector=None)
    longest = sorted(connector.positions, key=lambda p: (-p.lag, p.topic, p.partition))[:MOST_PARTITIONS]
    now_ms = seen.value.at_ms if seen.value else 0
    task = _dag_task(call, connector)
    config = connector.config if task is None or task.value is None else task.value.config
    letters, plan = _letters(call, connector), _plan(call, connector, config, task)
    oldest_ms = _oldest(call, connector)
    return render(
        "connector.html",
        **values,
        connector=connector,
        state=badge(connector.state),
        positions=[(position, _meter(position, longest[0].lag)) for position in longest],
        covered=covered_rows(connector)[:MOST_PARTITIONS],
        tables=table_rows(connector.runs),
        most_tables=MOST_TABLES,
        past=history.past_of(
            replace(connector, oldest_ms=oldest_ms),
            now_ms,
            call.query.get("span", ""),
            lambda run: _href(call, connector, run),
        ),
        oldest_ms=oldest_ms,
        spans=tuple(history.SPANS),
        may_run=call.may_run(connector),
        may_change_it=may_change(call, connector),
        running=running_of(connector),
        rendered=_rendered(connector),
        config=sorted(shown_config(config or {}, of_dag=task is not None).items()),
        is_known=task is None or task.value is None or knows_class(task.value.config),
        unknown=unknown_classes(call, task),
        may_plan=may_plan(call, connector, task),
        task=task,
        changes=changed_rows(connector),
        letters=letters,
        histogram=_histogram(letters),
        plan=plan,
        forecast=forecast(connector, plan.value) if plan and plan.value else [],
    )


def _href(call: Call, connector: Connector, run: Run) -> str:
    return call.href("run", name=connector.name, run=run.run_id)


def _oldest(call: Call, connector: Connector) -> int | None:
    """The time of the oldest record that waits; None: nothing does, or it is not known (yet)."""
    if not connector.lag or not connector.positions:
        return None
    seen = call.console.oldest(call.conn_id, connector)
    return seen.value.record_ms if seen.value else None


def _meter(position: Position, most: int) -> object:
    return meter(position.lag, most, f"{position.place}: {format_count(position.lag)} to copy", "ok")


def _rendered(connector: Connector) -> tuple[str, ...]:
    """The page of Airflow with the rendered templates of the task of the last run; () if it is not known."""
    origin = next((run.origin for run in connector.runs if run.origin.get("dag_run_id")), {})
    if not origin.get("dag_id") or not origin.get("task_id"):
        return ()
    return ("dags", origin["dag_id"], "runs", origin["dag_run_id"], "tasks", origin["task_id"], "rendered_templates")


# --- configuration -----------------------------------------------------------------------------------------------


def _dag_task(call: Call, connector: Connector) -> Seen[DagTask] | None:
    """The task that has run the connector last, for a user who may see how its DAG is written; None: there is none."""
    dag_id, task_id = last_task(connector)
    if not dag_id or not call.visitor.may_see_code(dag_id):
        return None
    return call.console.dag_task(call.conn_id, dag_id, task_id, connector.name)


def changed_rows(connector: Connector) -> list[tuple[str, str, str]]:
    """Keys that the last change has altered: key, before, after; a value that was not there is ""."""
    if connector.change is None or connector.config is None:
        return []
    old, new = connector.change.before, connector.config
    before, after = shown_config(old), shown_config(new)
    keys = sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
    return [(key, before.get(key, ""), after.get(key, "")) for key in keys]


def covered_rows(connector: Connector) -> list[tuple[TopicPartition, Covered, str]]:
    """What a backup holds of each partition, those with gaps first: place, offsets, and its gaps in words."""
    rows = sorted(connector.coverage.items(), key=lambda row: (-len(row[1].gaps), row[0]))
    return [(tp, covered, _gaps(covered)) for tp, covered in rows]


def _gaps(covered: Covered) -> str:
    if not covered.gaps:
        return "none"
    size = format_count(sum(end - start for start, end in covered.gaps))
    shown = names([f"{format_count(start)} to {format_count(end - 1)}" for start, end in covered.gaps], MOST_GAPS)
    return f"{plural(len(covered.gaps), 'gap')} of {size} offsets: {shown}"


# --- dead letters and plan ---------------------------------------------------------------------------------------


def _letters(call: Call, connector: Connector) -> Seen[Any] | None:
    """The newest dead letters; None: it has no queue, or the name of its queue is unknown."""
    if not connector.queue or "${" in connector.queue:
        return None
    return call.console.dead_letters(call.conn_id, connector.name, connector.queue)


def _histogram(letters: Seen[Any] | None) -> list[tuple[str, str, int, object]]:
    if letters is None or letters.value is None or not letters.value.reasons:
        return []
    most = letters.value.reasons[0][2]
    return [
        (stage, error, count, meter(count, most, f"{stage}, {error}: {plural(count, 'letter')}", "warn"))
        for stage, error, count in letters.value.reasons
    ]


def _plan(call: Call, connector: Connector, config: Config | None, task: Seen[DagTask] | None) -> Seen[Plan] | None:
    """The plan of the next run; None: its configuration is not known."""
    if config is None or (task is not None and task.value is not None and task.value.templates):
        return None
    if task is not None:
        return call.console.plan_of_dag(call.conn_id, connector.name, config, ask=False)
    return call.console.plan(call.conn_id, connector.name, config)


def may_plan(call: Call, connector: Connector, task: Seen[DagTask] | None) -> bool:
    """Whether the plan of a connector of a DAG may be requested here."""
    if task is None or task.value is None or task.value.templates or unknown_classes(call, task):
        return False
    return bool(connector.dags) and call.may(Right.OPERATE) and call.visitor.may_trigger(connector.dags[0])


def unknown_classes(call: Call, task: Seen[DagTask] | None) -> list[str]:
    """Keys that name classes which the API server does not import for a DAG, so it cannot make the plan."""
    return [] if task is None or task.value is None else call.console.unknown_classes(call.conn_id, task.value.config)


def request_plan(call: Call) -> str:
    """Make the plan of a connector of a DAG, which the page then shows."""
    connector = connector_of(call, call.seen())
    task = None if connector is None else _dag_task(call, connector)
    if connector is None or task is None or task.value is None:
        raise RefusedError("The configuration in the DAG is not known yet. Try again.", 503)
    if not call.visitor.may_trigger(task.value.dag_id):
        raise RefusedError(f"User {call.visitor.name} may not run DAG {task.value.dag_id}.", FORBIDDEN)
    if task.value.templates:
        raise RefusedError(f"Only the running task knows {', '.join(task.value.templates)}.", CONFLICT)
    call.console.plan_of_dag(call.conn_id, connector.name, task.value.config, ask=True)
    return call.href("connector", name=connector.name) + "#plan"


def forecast(connector: Connector, plan: Plan) -> list[tuple[str, str]]:
    """What the next run would do, in numbers: a name and a text each."""
    if plan.is_empty:
        return []
    records = sum(len(r) for r in plan.ranges)
    rows = [("Tasks", format_count(len(plan.tasks)))]
    if plan.ranges:
        rows.append(("Records, at most", format_count(records)))
    copied = [run for run in connector.runs if run.read]
    if not (copied and records):
        return rows
    size = sum(run.size_bytes for run in copied) / sum(run.read for run in copied)
    files = sum(run.files for run in copied) / sum(run.read for run in copied)
    speed = max((run.records_per_s or 0 for run in copied[:5]), default=0)
    if size:
        rows.append(("Size, as in earlier runs", format_bytes(records * size)))
    if files:
        rows.append(("Files, as in earlier runs", f"about {format_count(max(1, round(records * files)))}"))
    if speed:
        rows.append(
            (
                "Copying, at the speed of the last runs",
                f"about {format_seconds(records / speed)}" if records >= speed else "less than a second",
            )
        )
    return rows

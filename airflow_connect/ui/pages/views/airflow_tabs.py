"""Where people come from: the menu, and the tabs of a DAG, a run and a task."""

from __future__ import annotations

from airflow_connect.control.herder.refusals import RefusedError
from airflow_connect.ui.overview.model import Connector, Run
from airflow_connect.ui.pages.calls import Call
from airflow_connect.ui.pages.rendering import render, segment
from airflow_connect.ui.pages.views.origins import is_of


def home(call: Call) -> str | tuple[int, str]:
    """The first installation, or what to do if there is none."""
    if call.console.installations.names():
        return f"{call.root}/{segment(call.console.installations.default_name())}"
    return render("none.html", **call.shell("Kafka Connect", ""), problem=call.console.installations.problem())


def problems(call: Call) -> str | tuple[int, str]:
    """The page of problems, which is the same for every installation: where messages lead to that know none."""
    if not call.console.installations.names():
        return home(call)
    return f"{call.root}/{segment(call.console.installations.default_name())}/problems"


def of_airflow(call: Call) -> str:
    """The connectors of a DAG; or those that a run or a task of it has run.

    A link of a task names its connector as well: it leads to the one that this DAG has run; if it has run none, to that
    of the only installation that has one of this name. A task with one run leads to that run.
    """
    dag_id, run_id, task_id = (call.query.get(name, "") for name in ("dag_id", "run_id", "task_id"))
    if not dag_id:
        raise RefusedError("The address names no DAG: of?dag_id=...")
    named = call.query.get("connector", "")
    found: list[tuple[Call, Connector, list[Run]]] = []
    namesakes: list[tuple[Call, Connector, list[Run]]] = []
    waiting = []
    known: set[str] = set()  # Two connections may lead to the same cluster.
    for conn_id in call.console.installations.names():
        own = Call(call.console, call.visitor, call.root, conn_id, call.query)
        seen = own.seen()
        if seen.value is None:
            waiting.append((conn_id, seen.problem))
            continue
        if namesake := seen.value.connectors.get(named):
            if any(is_of(run.origin, dag_id, "", "") for run in namesake.runs):
                return own.href("connector", name=named)
            namesakes.append((own, namesake, []))
        for connector in seen.value.worst_first():
            every = (run for run in connector.runs if run.run_id not in known)
            runs = [run for run in every if is_of(run.origin, dag_id, run_id, task_id)]
            known.update(run.run_id for run in runs)
            if runs:
                found.append((own, connector, runs))
    if len(namesakes) == 1 and not waiting:
        return namesakes[0][0].href("connector", name=named)
    if task_id and run_id and len(found) == 1 and len(found[0][2]) == 1:
        own, connector, (run,) = found[0]
        return own.href("run", name=connector.name, run=run.run_id)
    values = {"found": [*namesakes, *found], "waiting": waiting, "dag_id": dag_id, "run_id": run_id, "task_id": task_id}
    return render("of_airflow.html", **call.shell(dag_id or "Kafka Connect", ""), **values)

"""Connectors that DAGs run: which task, with which configuration, and who may change their offsets and dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_connect.control.herder.refusals import BAD_REQUEST, CONFLICT, FORBIDDEN, RefusedError
from airflow_connect.ui.overview.model import Connector
from airflow_connect.ui.pages.calls import Call
from airflow_connect.ui.web.access import Right

if TYPE_CHECKING:
    from airflow_connect.ui.pages.asking import Config


def last_task(connector: Connector) -> tuple[str, str]:
    """DAG and task that have run the connector last; ("", "") if it is registered, or not known."""
    origin = next((run.origin for run in connector.runs if run.origin.get("dag_id")), {})
    if connector.is_registered or not origin.get("task_id"):
        return "", ""
    return origin["dag_id"], origin["task_id"]


def may_change(call: Call, connector: Connector) -> bool:
    """Whether the user may change offsets and replay dead letters: of a DAG's connector, whoever may edit the DAG."""
    if connector.is_registered:
        return call.may(Right.CHANGE)
    dag_id, _ = last_task(connector)
    return bool(dag_id) and call.may(Right.OPERATE) and call.visitor.may_edit_dag(dag_id)


def refuse_others(call: Call, connector: Connector) -> None:
    """Refuse a request of a user who may not change the connector.

    Raises:
        RefusedError: with status 403; names the permission.
    """
    if not may_change(call, connector):
        dag_id, _ = last_task(connector)
        needed = f"edit DAG {dag_id}" if dag_id else f"{Right.CHANGE.value} ({call.conn_id})"
        raise RefusedError(
            f"User {call.visitor.name} has no permission for this request: it needs the permission to {needed}.",
            FORBIDDEN,
        )


def config_of(call: Call, connector: Connector) -> Config:
    """The configuration of a connector, for what the API server does itself.

    Raises:
        RefusedError: only the running task of its DAG knows it, or it names classes that are not imported here.
        ConfigError: the DAG does not have it, or it cannot be read here.
    """
    if connector.is_registered:
        return connector.config or {}
    from airflow_connect.ui.web.dag_tasks import read_task

    dag_id, task_id = last_task(connector)
    if not dag_id:
        raise RefusedError(f"{connector.name} is not registered here, and no DAG of its runs is known.", CONFLICT)
    task = read_task(dag_id, task_id, connector.name)
    if task.templates:
        raise RefusedError(
            f"Only the running task {task_id} of DAG {dag_id} knows {', '.join(task.templates)}, so nothing was done."
            " SetOffsetsOperator and ReplayDeadLettersOperator do it in a task with the same arguments.",
            CONFLICT,
        )
    if found := call.console.unknown_classes(call.conn_id, task.config):
        raise RefusedError(
            f"{', '.join(found)} of DAG {dag_id} names a class that is neither part of this package nor an entry point,"
            " and the API server imports no other because a DAG names it, so nothing was done. SetOffsetsOperator and"
            " ReplayDeadLettersOperator do it in a task.",
            BAD_REQUEST,
        )
    return task.config

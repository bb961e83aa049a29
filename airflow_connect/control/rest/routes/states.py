"""`/connectors/NAME/...`: states, tasks, restarts, topics."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Response

from airflow_connect.control.herder.refusals import RefusedError
from airflow_connect.control.rest.answers import AnsweringRoute, Json
from airflow_connect.control.rest.described import CHANGES, READS, answers
from airflow_connect.control.rest.models import ActiveTopics, ConnectorStateInfo, TaskInfo, TaskState
from airflow_connect.control.rest.parameters import ConnectorName, HerderHere, TaskNumber, flag, flag_parameter

router = APIRouter(prefix="/connectors/{connector}", tags=["states"], route_class=AnsweringRoute)
_TASKS = flag_parameter("includeTasks", "Whether tasks are restarted, too (KIP-745).")
_FAILED = flag_parameter("onlyFailed", "Whether only what has failed is restarted (KIP-745).")
_NO_BODY = {status: answers(CHANGES, {status: None}) for status in (202, 204)}


@router.get("/status", responses=answers(READS, {200: ConnectorStateInfo}))
def get_status(herder: HerderHere, name: ConnectorName) -> Response:
    """The states of a connector and of its tasks."""
    return Json(herder.status(name))


@router.put("/pause", status_code=202, response_class=Response, responses=_NO_BODY[202])
def pause_connector(herder: HerderHere, name: ConnectorName) -> Response:
    """Let no run begin."""
    herder.pause(name)
    return Response(status_code=202)


@router.put("/resume", status_code=202, response_class=Response, responses=_NO_BODY[202])
def resume_connector(herder: HerderHere, name: ConnectorName) -> Response:
    """Let runs begin."""
    herder.resume(name)
    return Response(status_code=202)


@router.put("/stop", status_code=204, responses=_NO_BODY[204])
def stop_connector(herder: HerderHere, name: ConnectorName) -> Response:
    """Let no run begin, and remove the tasks, so that offsets can be changed (KIP-875)."""
    herder.stop(name)
    return Response(status_code=204)


@router.post("/restart", responses=answers(CHANGES, {202: ConnectorStateInfo, 204: None}), status_code=204)
def restart_connector(
    herder: HerderHere,
    name: ConnectorName,
    include_tasks: Annotated[str, _TASKS] = "false",
    only_failed: Annotated[str, _FAILED] = "false",
) -> Response:
    """Run a connector now. With a parameter that is true, the answer is 202 and shows what is restarted."""
    flags = {"include_tasks": flag(include_tasks), "only_failed": flag(only_failed)}
    state = herder.restart(name, **flags)
    return Json(state, 202) if any(flags.values()) else Response(status_code=204)


@router.get("/tasks", responses=answers(READS, {200: list[TaskInfo]}))
def list_tasks(herder: HerderHere, name: ConnectorName) -> Response:
    """The tasks of a connector and their configurations."""
    return Json(herder.tasks(name))


@router.get("/tasks/{task}/status", responses=answers(READS, {200: TaskState}))
def get_task_status(herder: HerderHere, name: ConnectorName, task: TaskNumber) -> Response:
    """The state of a task."""
    return Json(herder.task_status(name, task))


@router.post("/tasks/{task}/restart", status_code=204, responses=_NO_BODY[204])
def restart_task(herder: HerderHere, name: ConnectorName, task: TaskNumber) -> Response:
    """Run the connector of a task now: a run has all tasks."""
    herder.restart_task(name, task)
    return Response(status_code=204)


@router.get("/topics", responses=answers(READS, {200: dict[str, ActiveTopics]}))
def list_topics(herder: HerderHere, name: ConnectorName) -> Response:
    """Topics that the connector has used (KIP-558)."""
    return Json(herder.active_topics(name))


@router.put("/topics/reset", status_code=202, response_class=Response, responses=_NO_BODY[202])
def reset_topics(herder: HerderHere, name: ConnectorName) -> Response:
    """Forget which topics the connector has used."""
    herder.reset_topics(name)
    return Response(status_code=202)


# Requests between Kafka Connect's workers are signed (KIP-507); this installation has no such requests.


@router.post("/tasks", include_in_schema=False)
async def refuse_task_configs() -> Response:
    """Refuse."""
    raise RefusedError("Internal request missing required signature")


@router.put("/fence", include_in_schema=False)
async def refuse_fencing() -> Response:
    """Refuse."""
    raise RefusedError("Internal request missing required signature")

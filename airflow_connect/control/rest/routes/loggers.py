"""`/admin/loggers` (KIP-495, KIP-976): log levels of this process, or of all workers."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from airflow_connect.control.herder.loggers import checked_level
from airflow_connect.control.rest.answers import AnsweringRoute, Json
from airflow_connect.control.rest.described import READS, WITH_BODY, answers, takes
from airflow_connect.control.rest.models import LoggerLevel
from airflow_connect.control.rest.parameters import Body, HerderHere, LoggerName, ServedHere

router = APIRouter(prefix="/admin/loggers", tags=["admin"], route_class=AnsweringRoute)
_SCOPE = Query(description="`worker`, or `cluster` for all workers.")


@router.get("", responses=answers(READS, {200: dict[str, LoggerLevel]}))
async def list_loggers(served: ServedHere) -> Response:
    """Every logger that has a level."""
    return Json(served.worker.loggers.every())


@router.get("/{logger}", responses=answers(READS, {200: LoggerLevel}))
async def get_logger(served: ServedHere, logger: LoggerName) -> Response:
    """The level of a logger."""
    return Json(served.worker.loggers.one(logger))


@router.put("/{logger}", responses=answers(WITH_BODY, {200: list[str], 204: None}), openapi_extra=takes("Level"))
def set_level(
    served: ServedHere,
    herder: HerderHere,
    logger: LoggerName,
    body: Body,
    scope: Annotated[str, _SCOPE] = "worker",
) -> Response:
    """Set the level of a logger and of those below it; answers with their names, or with 204 for the cluster."""
    level = checked_level(body)
    if scope.lower() != "cluster":
        return Json(served.worker.loggers.set(logger, level))
    herder.set_cluster_level(logger, level)
    served.worker.loggers.set(logger, level)
    return Response(status_code=204)

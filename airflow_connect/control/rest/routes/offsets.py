"""`/connectors/NAME/offsets` (KIP-875)."""

from __future__ import annotations

from fastapi import APIRouter, Response

from airflow_connect.control.rest.answers import AnsweringRoute, Json
from airflow_connect.control.rest.described import CHANGES, READS, WITH_BODY, answers, takes
from airflow_connect.control.rest.models import ConnectorOffsets, Message
from airflow_connect.control.rest.parameters import Body, ConnectorName, HerderHere

router = APIRouter(prefix="/connectors/{connector}/offsets", tags=["offsets"], route_class=AnsweringRoute)


@router.get("", responses=answers(READS, {200: ConnectorOffsets}))
def get_offsets(herder: HerderHere, name: ConnectorName) -> Response:
    """Committed offsets."""
    return Json(herder.offsets(name))


@router.patch("", responses=answers(WITH_BODY, {200: Message}), openapi_extra=takes("ConnectorOffsets"))
def alter_offsets(herder: HerderHere, name: ConnectorName, body: Body) -> Response:
    """Set offsets of a stopped connector; null deletes one. Other offsets stay."""
    return Json({"message": herder.alter_offsets(name, body)})


@router.delete("", responses=answers((*CHANGES, 400), {200: Message}))
def reset_offsets(herder: HerderHere, name: ConnectorName) -> Response:
    """Delete the offsets of a stopped connector."""
    return Json({"message": herder.reset_offsets(name)})

"""`/connectors`: the list, creation, configurations, removal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request, Response

from airflow_connect.control.rest.answers import AnsweringRoute, Json
from airflow_connect.control.rest.bodies import config_of, create_request_of
from airflow_connect.control.rest.described import CHANGES, READS, WITH_BODY, answers, takes
from airflow_connect.control.rest.models import ConnectorInfo, ExpandedConnector
from airflow_connect.control.rest.parameters import Body, ConnectorName, HerderHere

router = APIRouter(prefix="/connectors", tags=["connectors"], route_class=AnsweringRoute)
_EXPAND = Query(description="`status`, `info` or both. Without it, the answer is a list of names.")


@router.get("", responses=answers(READS, {200: list[str] | dict[str, ExpandedConnector]}))
def list_connectors(herder: HerderHere, expand: Annotated[list[str] | None, _EXPAND] = None) -> Response:
    """Names of all connectors, or their states and configurations."""
    return Json(herder.names() if expand is None else herder.expanded(frozenset(expand)))


@router.post(
    "",
    status_code=201,
    responses=answers(WITH_BODY, {201: ConnectorInfo}),
    openapi_extra=takes("CreateConnectorRequest"),
)
def create_connector(request: Request, herder: HerderHere, body: Body) -> Response:
    """Create a connector."""
    return _created(request, herder.create(*create_request_of(body)))


@router.get("/{connector}", responses=answers(READS, {200: ConnectorInfo}))
def get_connector(herder: HerderHere, name: ConnectorName) -> Response:
    """A connector, its configuration and its tasks."""
    return Json(herder.info(name))


@router.delete("/{connector}", status_code=204, responses=answers(CHANGES, {204: None}))
def delete_connector(herder: HerderHere, name: ConnectorName) -> Response:
    """Remove a connector. Its offsets stay."""
    herder.delete(name)
    return Response(status_code=204)


@router.get("/{connector}/config", responses=answers(READS, {200: dict[str, str | None]}))
def get_config(herder: HerderHere, name: ConnectorName) -> Response:
    """The configuration as it was sent; references to secrets are not resolved."""
    return Json(herder.config(name))


@router.put(
    "/{connector}/config",
    responses=answers(WITH_BODY, {200: ConnectorInfo, 201: ConnectorInfo}),
    openapi_extra=takes("Configuration"),
)
def put_config(request: Request, herder: HerderHere, name: ConnectorName, body: Body) -> Response:
    """Give a connector another configuration, or create it (201)."""
    is_new, info = herder.put_config(name.strip(), config_of(body))
    return _created(request, info) if is_new else Json(info)


@router.patch(
    "/{connector}/config", responses=answers(WITH_BODY, {200: ConnectorInfo}), openapi_extra=takes("Configuration")
)
def patch_config(herder: HerderHere, name: ConnectorName, body: Body) -> Response:
    """Change keys of a configuration; null removes a key (KIP-477)."""
    return Json(herder.patch_config(name, config_of(body)))


def _created(request: Request, info: Mapping[str, Any]) -> Response:
    base = f"{request.url.scheme}://{request.url.netloc}{request.scope.get('root_path', '')}"
    return Json(info, 201, {"Location": f"{base}/connectors/{quote(info['name'], safe='')}"})

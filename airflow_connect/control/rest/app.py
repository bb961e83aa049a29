"""The application: routers, what surrounds them, and the description."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from airflow_connect import __version__
from airflow_connect.control.rest.answers import answer_http_error
from airflow_connect.control.rest.models import Configuration, ConnectorOffsets, CreateConnectorRequest, Level
from airflow_connect.control.rest.parameters import Served
from airflow_connect.control.rest.paths import EncodedPaths
from airflow_connect.control.rest.routes import connectors, loggers, offsets, plugins, server, states

CONNECTORS: tuple[ModuleType, ...] = (server, connectors, states, offsets, plugins)
ADMIN: tuple[ModuleType, ...] = (loggers,)
EVERYTHING = (*CONNECTORS, *ADMIN)
_BODIES = (Configuration, ConnectorOffsets, CreateConnectorRequest, Level)
_REF = "#/components/schemas/{model}"
_DESCRIPTION = "Kafka Connect's REST API. Errors are answered with `error_code` and `message`."


def create_app(served: Served, subjects: Sequence[ModuleType] = EVERYTHING) -> FastAPI:
    """The application, without a server and without access control around it.

    Args:
        served: what it serves.
        subjects: modules of `routes`.
    """
    app = FastAPI(
        title="airflow-connect",
        version=__version__,
        description=_DESCRIPTION,
        docs_url=None,  # Its pages load scripts of another host.
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
        middleware=[Middleware(EncodedPaths)],
        exception_handlers={HTTPException: answer_http_error},
    )
    app.state.served = served
    for subject in subjects:
        app.include_router(subject.router)
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]
    return app


def _described(app: FastAPI) -> dict[str, Any]:
    """OpenAPI 3.1, with the models of bodies, which FastAPI does not read itself."""
    if app.openapi_schema is None:
        found = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes, tags=app.openapi_tags
        )
        _, bodies = models_json_schema([(model, "validation") for model in _BODIES], ref_template=_REF)
        schemas = found["components"]["schemas"]
        schemas |= bodies["$defs"]
        # What FastAPI answers to parameters that it refuses; here it refuses none.
        for operation in (each for path in found["paths"].values() for each in path.values()):
            operation["responses"].pop("422", None)
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        app.openapi_schema = found
    return app.openapi_schema

"""What handlers get from a request: the herder, names and numbers of the path, the body."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request

from airflow_connect.control.herder.herder import Herder
from airflow_connect.control.herder.refusals import NOT_FOUND, RefusedError
from airflow_connect.control.rest.bodies import body_of
from airflow_connect.control.rest.paths import decoded
from airflow_connect.control.rest.worker_state import WorkerState


@dataclass(frozen=True, slots=True)
class Served:
    """What the application serves.

    Attributes:
        herder_of: the herder that carries out a request.
        admit: called before an operation, with its name in the description; raises RefusedError.
        worker: what is known about this process.
    """

    herder_of: Callable[[Request], Herder]
    admit: Callable[[Request, str], Awaitable[None]] | None = None
    worker: WorkerState = field(default_factory=WorkerState)


# Dependencies are coroutines: FastAPI would call a plain function in a thread of its own.


async def _served(request: Request) -> Served:
    found: Served = request.app.state.served
    return found


async def _herder(request: Request) -> Herder:
    found: Served = request.app.state.served
    return found.herder_of(request)


async def _connector(connector: Annotated[str, Path(description="The name of the connector.")]) -> str:
    return decoded(connector)


async def _plugin(plugin: Annotated[str, Path(description="Java class, alias, or dotted path of a class.")]) -> str:
    return decoded(plugin)


async def _logger(logger: Annotated[str, Path(description="The name of the logger; `root` is the root.")]) -> str:
    return decoded(logger)


async def _task(
    task: Annotated[str, Path(description="The number of the task.", json_schema_extra={"type": "integer"})],
) -> int:
    """An int of Java; everything else is no path of the API."""
    digits = task.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 11 or not -(1 << 31) <= int(task) < 1 << 31:
        raise RefusedError("HTTP 404 Not Found", NOT_FOUND)
    return int(task)


def flag(value: str) -> bool:
    """A query parameter as Java's Boolean.parseBoolean reads it."""
    return value.lower() == "true"


def flag_parameter(name: str, description: str) -> Any:
    """The description of a query parameter that is true or false; any text is accepted."""
    return Query(alias=name, description=description, json_schema_extra={"type": "boolean"})


ServedHere = Annotated[Served, Depends(_served)]
HerderHere = Annotated[Herder, Depends(_herder)]
ConnectorName = Annotated[str, Depends(_connector)]
PluginName = Annotated[str, Depends(_plugin)]
LoggerName = Annotated[str, Depends(_logger)]
TaskNumber = Annotated[int, Depends(_task)]
Body = Annotated[Any, Depends(body_of)]

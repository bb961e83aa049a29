"""Bodies of requests: read with a limit of size and time, parsed as Kafka Connect's Jackson parses them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

from fastapi import Request

from airflow_connect.api.config.values import coerce_config, coerce_json
from airflow_connect.control.herder.refusals import RefusedError
from airflow_connect.control.state.records import PAUSED, STARTED, STOPPED
from airflow_connect.errors import ConfigError
from airflow_connect.runtime.bounded_connections import BODY_WITHIN_S

MOST_BYTES = 1 << 20
"""As much as a record of a config topic can hold with Kafka's defaults."""
MOST_LEVELS = 100
_STATES = {"RUNNING": STARTED, "PAUSED": PAUSED, "STOPPED": STOPPED}
_MEMBERS = frozenset({"name", "config", "initial_state"})


class CreateRequest(NamedTuple):
    """The body of a request to create a connector; `initial_state` is a target state, or None."""

    name: str
    config: dict[str, str | None]
    initial_state: str | None


async def body_of(request: Request) -> Any:
    """The JSON of a body; None if it is empty.

    Raises:
        RefusedError: no JSON, too large, too slow, or not said to be JSON.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RefusedError("HTTP 415 Unsupported Media Type", 415)
    try:
        raw = await asyncio.wait_for(_read(request), BODY_WITHIN_S)
    except TimeoutError:
        raise RefusedError(f"The body did not arrive within {BODY_WITHIN_S:.0f} s.", 408) from None
    if not raw:
        return None
    try:
        body = json.loads(raw.decode("utf-8-sig"), parse_constant=_refuse_constant)
        if b"\\u" in raw:
            json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise RefusedError("The body has half of a surrogate pair, which is no character.") from error
    except UnicodeDecodeError as error:
        raise RefusedError("The body is not UTF-8.") from error
    except RecursionError as error:
        raise RefusedError("The body is nested too deeply.") from error
    except json.JSONDecodeError as error:
        # The text of the body is not repeated: it may hold a secret.
        place = f"line {error.lineno}, column {error.colno}"
        raise RefusedError(f"The body is not JSON: {error.msg} ({place}).") from None
    except ValueError as error:  # A number with too many digits.
        raise RefusedError("The body has a number that is too long.") from error
    if raw.count(b"[") + raw.count(b"{") > MOST_LEVELS and _levels(body) > MOST_LEVELS:
        raise RefusedError("The body is nested too deeply.")
    return body


def _levels(body: Any) -> int:
    """How deeply lists and objects are nested."""
    levels, here = 0, [body]
    while here := [each for each in here if isinstance(each, (dict, list))]:
        levels += 1
        here = [inner for each in here for inner in (each.values() if isinstance(each, dict) else each)]
    return levels


def _refuse_constant(name: str) -> NoReturn:
    """NaN and Infinity are JavaScript; JSON has no such numbers (RFC 8259, 6)."""
    raise RefusedError(f"The body is not JSON: {name} is not a JSON number.")


async def _read(request: Request) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MOST_BYTES:
            raise RefusedError(f"The body is larger than {MOST_BYTES >> 20} MiB.", 413)
        parts.append(part)
    return b"".join(parts)


def config_of(body: Any, what: str = "The body") -> dict[str, str | None]:
    """A configuration: numbers and booleans become text.

    Raises:
        RefusedError: it is not a JSON object of plain values.
    """
    if not isinstance(body, Mapping):
        raise RefusedError(f'{what} must be a JSON object of configuration keys: {{"connector.class": "..."}}.')
    try:
        return coerce_config(body)
    except ConfigError as error:
        raise RefusedError(str(error)) from error


def create_request_of(body: Any) -> CreateRequest:
    """The body of POST /connectors.

    Raises:
        RefusedError: it has another form.
    """
    if not isinstance(body, Mapping):
        raise RefusedError('The body must be a JSON object: {"name": "...", "config": {...}}.')
    unknown = sorted(str(member) for member in body.keys() - _MEMBERS)
    if unknown:
        raise RefusedError(f"The body has unknown members: {', '.join(unknown)}. Known: config, initial_state, name.")
    try:
        name = (coerce_json("name", body.get("name")) or "").strip()
    except ConfigError as error:
        raise RefusedError(str(error)) from error
    return CreateRequest(name, config_of(body.get("config"), "`config`"), _state_of(body.get("initial_state")))


def _state_of(given: Any) -> str | None:
    if given is None:
        return None
    if not isinstance(given, str) or given.upper() not in _STATES:
        raise RefusedError(f"initial_state is {given!r}; it can be RUNNING, PAUSED or STOPPED.")
    return _STATES[given.upper()]

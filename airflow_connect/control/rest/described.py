"""Parts of the description that many operations share."""

from __future__ import annotations

from typing import Any

from airflow_connect.control.rest.models import ErrorMessage

_WHY = {
    400: "The request, or a configuration, is wrong.",
    403: "Refused.",
    404: "There is no such connector, task, plugin or logger.",
    405: "The path does not have this method.",
    406: "The client does not accept JSON.",
    408: "The body did not arrive in time.",
    409: "Something else is changing the same thing, or live workers of Kafka Connect own the topics.",
    413: "The body is too large.",
    415: "The body is not said to be JSON.",
    500: "Kafka or a plugin has failed in a way that a retry does not mend.",
    503: "Kafka or another server is unavailable: try again.",
    401: "No user, or a wrong password.",
}
READS = (401, 403, 404, 405, 406, 500, 503)
CHANGES = (*READS, 409)
WITH_BODY = (*CHANGES, 400, 408, 413, 415)


def answers(statuses: tuple[int, ...], ok: dict[int, Any] | None = None) -> dict[int | str, dict[str, Any]]:
    """`responses` of an operation: errors, and by status the models of answers without an error."""
    errors: dict[int | str, dict[str, Any]] = {
        status: {"model": ErrorMessage, "description": _WHY[status]} for status in sorted(statuses)
    }
    good: dict[int | str, dict[str, Any]] = {
        status: {"description": "Done; there is no body."} if model is None else {"model": model}
        for status, model in (ok or {}).items()
    }
    return {**good, **errors}


def takes(model: str) -> dict[str, Any]:
    """`openapi_extra` of an operation with a JSON body, which `bodies` reads."""
    schema = {"$ref": f"#/components/schemas/{model}"}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}

"""Documents of third-party code, as they are after they have crossed a process border."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from airflow_connect.errors import TaskFailedError


def plain_document(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The document as JSON reads it back, so that who gets it at once sees the same as who gets it later.

    Args:
        document: what a connector or a task has returned.
        name: what returned it, for the message: `Class.method`.

    Raises:
        TaskFailedError: it is not a JSON object.
    """
    try:
        found: dict[str, Any] = json.loads(json.dumps(dict(document), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise TaskFailedError(
            f"{name} returned something that is not a JSON document: {error}.",
            code="plugin.document",
            suggestion="A document maps strings to strings, numbers, booleans, None, lists and other documents.",
        ) from error
    return found

"""Records that failed inside a plugin host, as our errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_connect.api.own_chain import ForeignException, RecordFailedError
from airflow_connect.errors import DataError


def failure_of(found: Mapping[str, Any], stage_class: str = "") -> RecordFailedError:
    """The error of a record that a converter, a transformation or the sink task has refused.

    Args:
        found: `stage`, `executing`, `class`, `message` and `stack`, as the host tells them; perhaps `retriable`.
        stage_class: the class for a dead letter, if that is not the one that was executing: a worker counts a predicate
            as a part of its transformation.
    """
    stage, executing = str(found.get("stage") or "TASK_PUT"), str(found.get("executing") or "the plugin")
    text = str(found.get("message") or "").strip().removesuffix(".")
    said = f": {text}" if text else ""
    exception = ForeignException(str(found["class"]), str(found.get("message") or ""), str(found.get("stack") or ""))
    error = RecordFailedError(
        f"{executing} failed with {exception.name}{said}.",
        code="java.record",
        stage=stage,
        stage_class=stage_class or executing,
        exception=exception,
    )
    error.retriable = bool(found.get("retriable"))
    return error


def not_held(plugin: str, error: DataError) -> RecordFailedError:
    """The error of a source's record that Python cannot hold, so that no Python class of its chain can get it."""
    return RecordFailedError(
        f"A record of {plugin} cannot be passed to Python: {error.message}",
        code=error.code,
        stage="TRANSFORMATION",
        stage_class=plugin,
        exception=ForeignException(type(error).__name__, error.message, ""),
    )

"""What an embedded Connect takes from its name: state topics of its own, and short pauses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_connect.errors import ConfigError

if TYPE_CHECKING:
    from airflow_connect.runtime.driver.run_in_progress import Engine

_STATE = {"config": "configs", "offset": "offsets", "status": "status", "runs": "runs"}
_LEGAL = re.compile(r"[A-Za-z0-9._-]{1,200}")
INTERVAL = "run.interval.seconds"


def worker_of(app_id: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The worker configuration of an application; keys that are given come first.

    Raises:
        ConfigError: the id cannot be a part of names of topics.
    """
    if not _LEGAL.fullmatch(app_id) or app_id in (".", ".."):
        raise ConfigError(
            f"The application id is {app_id!r}.",
            config_path="group.id",
            suggestion="It names topics and transactional ids: use letters, digits, '.', '_' and '-'.",
        )
    return {
        "group.id": app_id,
        **{f"{kind}.storage.topic": f"{app_id}-{topic}" for kind, topic in _STATE.items()},
        **{f"{kind}.storage.replication.factor": "-1" for kind in _STATE},
        INTERVAL: "1",
        **given,
    }


def engine_of(worker: Mapping[str, Any], *, in_process: bool) -> Engine:
    """Where tasks run: on Spark, or in this process."""
    if in_process:
        from airflow_connect.runtime.engine.in_process import InProcessEngine

        return InProcessEngine()
    from airflow_connect.config_providers.resolving import resolve_references
    from airflow_connect.runtime.engine.spark import SparkEngine

    resolved = resolve_references({}, worker).resolve(worker)
    return SparkEngine({key: str(value) for key, value in resolved.items() if key.startswith("spark.")})

"""Whether the run that a task belongs to is still the one that may write (S5 of exactly_once/task_transaction.py).

A driver writes its run id into the connector's state before it fences the tasks of earlier runs. A task looks at it
after its own `init_transactions`: an older run's task that starts late has either been fenced, or sees the newer claim.
Source of the idea: postProducerCheck of Kafka Connect's ExactlyOnceWorkerSourceTask (KIP-618).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_connect.api.errors import FencedError
from airflow_connect.kafka import runs_topic

if TYPE_CHECKING:
    from airflow_connect.kafka.clients import Admin


def claimed_by(admin: Admin, settings: Mapping[str, Any], topic: str, connector: str) -> str:
    """Id of the run that may write, or "" when nobody has claimed the connector."""
    found = runs_topic.find(admin, topic)
    if found is None:
        return ""
    records = runs_topic.read(admin, settings, found, connector)
    state = runs_topic.decode_document("state", connector, records)
    return str(state["run_id"]) if state else ""


def refuse_other_run(claim: str, run_id: str) -> None:
    """Raise unless the claim is this run's.

    Raises:
        FencedError: a newer run has taken over.
    """
    if claim != run_id:
        raise FencedError(
            f"Run {claim or '(none)'} of the same connector has taken over; a task of run {run_id} was stopped.",
            suggestion="Nothing to do: the newer run does the work. Make sure that only one DAG runs this connector.",
        )

"""Checks that the run of a task is still the one that may write (S5 of exactly_once/task_transaction.py).

A driver writes its run id into the connector's state before it fences the tasks of earlier runs. A task checks it
after its own `init_transactions`: a task of an older run that starts late has either been fenced, or sees the newer
claim. When its tasks have ended, the driver gives up the claim, so an attempt that Spark starts later sees that too.
Source of the idea: postProducerCheck of Kafka Connect's ExactlyOnceWorkerSourceTask (KIP-618).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_connect.errors import FencedError, StateError
from airflow_connect.exactly_once.phases import COPYING
from airflow_connect.kafka.state import runs_topic

if TYPE_CHECKING:
    from airflow_connect.kafka.clients.short_lived import Admin


class Claim(NamedTuple):
    """The run that may write.

    Attributes:
        run_id: the run that last claimed the connector; "": none.
        is_held: whether its tasks may still write.
    """

    run_id: str
    is_held: bool


def claimed_by(admin: Admin, settings: Mapping[str, Any], topic: str, connector: str, start: int = 0) -> Claim:
    """The current claim in the connector's state, whose record is not before `start` in its partition.

    Raises:
        ConnectError: it could not be read.
    """
    found = runs_topic.find(admin, topic)
    if found is None:
        return Claim("", is_held=False)
    records = runs_topic.read_from(admin, settings, found, connector, start).values
    state = runs_topic.decode_document("state", connector, records)
    return Claim(str(state["run_id"]), state["phase"] == COPYING) if state else Claim("", is_held=False)


def refuse_other_run(claim: Claim, run_id: str) -> None:
    """Raise an error unless this run holds the claim.

    Raises:
        FencedError: a newer run has taken over, or this run has ended.
        StateError: the runs topic has lost the claim.
    """
    if not claim.run_id:
        raise StateError(
            f"The runs topic has no claim of run {run_id} any more. The topic was deleted, recreated or emptied after"
            " the run began, so a task cannot see whether a newer run has taken over. The task was stopped.",
            code="state.claim_lost",
            suggestion="Run again: it continues after the last committed offsets. Do not delete or empty this topic"
            " (runs.storage.topic).",
        )
    if claim.run_id != run_id:
        raise FencedError(
            f"Run {claim.run_id or '(none)'} of the same connector has taken over; a task of run {run_id} was stopped.",
            suggestion="Nothing to do: the newer run does the work. Make sure that only one DAG runs this connector.",
        )
    if not claim.is_held:
        raise FencedError(
            f"Run {run_id} has ended: another attempt did the work of a task that was still starting or running.",
            suggestion="Nothing to do.",
        )

"""Whether the run that a task belongs to is still the one that may write (S5 of exactly_once/task_transaction.py).

A driver writes its run id into the connector's state before it fences the tasks of earlier runs. A task looks at it
after its own `init_transactions`: an older run's task that starts late has either been fenced, or sees the newer claim.
When its tasks have ended the driver gives the claim up, so that an attempt that Spark still starts finds that too.
Source of the idea: postProducerCheck of Kafka Connect's ExactlyOnceWorkerSourceTask (KIP-618).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_connect.api.errors import FencedError
from airflow_connect.exactly_once.phases import COPYING
from airflow_connect.kafka import runs_topic

if TYPE_CHECKING:
    from airflow_connect.kafka.clients import Admin


class Claim(NamedTuple):
    """Who may write.

    Attributes:
        run_id: the run that claimed the connector last; "": none.
        is_held: whether its tasks still may.
    """

    run_id: str
    is_held: bool


def claimed_by(admin: Admin, settings: Mapping[str, Any], topic: str, connector: str, start: int = 0) -> Claim:
    """The claim as it is in the connector's state, whose record is not before `start` in its partition.

    Raises:
        ConnectError: Kafka did not say.
    """
    found = runs_topic.find(admin, topic)
    if found is None:
        return Claim("", is_held=False)
    records = runs_topic.read_from(admin, settings, found, connector, start).values
    state = runs_topic.decode_document("state", connector, records)
    return Claim(str(state["run_id"]), state["phase"] == COPYING) if state else Claim("", is_held=False)


def refuse_other_run(claim: Claim, run_id: str) -> None:
    """Raise unless the claim is this run's, and held.

    Raises:
        FencedError: a newer run has taken over, or this run has ended.
    """
    if claim.run_id != run_id:
        raise FencedError(
            f"Run {claim.run_id or '(none)'} of the same connector has taken over; a task of run {run_id} was stopped.",
            suggestion="Nothing to do: the newer run does the work. Make sure that only one DAG runs this connector.",
        )
    if not claim.is_held:
        raise FencedError(
            f"Run {run_id} has ended: another attempt did the work of a task that was only starting, or going on.",
            suggestion="Nothing to do.",
        )

"""Moves one connector: stop it there, register it stopped here, set its offsets, let it run.

Until it is registered here with its offsets, the cluster's connector is only stopped, so each failure before that is
answered by letting it go on there. It is never deleted there: it stays, stopped, as the way back.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from airflow_connect.control.migration.judging import Judged
from airflow_connect.counting import counted
from airflow_connect.errors import ConnectError, NotStoppedError, UnavailableError
from airflow_connect.retrying import AtDeadline, Backoff, Retry

if TYPE_CHECKING:
    from airflow_connect.control.client.over_kafka import KafkaConnectors
    from airflow_connect.control.client.rest import ConnectRest

STOPPED, PAUSED = "STOPPED", "PAUSED"
STOP_WITHIN_S, EMPTY_WITHIN_S = 120.0, 60.0


def move(
    cluster: ConnectRest, ours: KafkaConnectors, judged: Judged, tell: Callable[[str], None], options: str = ""
) -> dict[str, Any]:
    """Move a connector; returns `name`, `offsets` and the `state` that it has here.

    Args:
        cluster: where it runs.
        ours: where it shall run.
        judged: what `judge` has found; it can move.
        tell: gets a sentence about each step.
        options: what a command needs to find this installation, for suggestions; with a blank before it.

    Raises:
        ConnectError: it could not be moved. It goes on in the cluster as before, and is not registered here. So does a
            connector whose move is interrupted.
        UnavailableError: it was moved, but is still stopped on both sides; the message says so.
    """
    name = judged.name
    cluster.stop(name)
    try:
        _wait_until_stopped(cluster, name)
        offsets = cluster.offsets(name)
        tell(f"{name}: stopped in the cluster, at {counted(len(offsets), 'offset')}")
        ours.create(name, judged.config, STOPPED)
        try:
            count = _take_offsets(ours, name, offsets)
        except BaseException:
            ours.delete(name)
            raise
    except BaseException:  # Ctrl-C and defects, too: it must not stay stopped on both sides.
        _go_on(cluster, judged)
        raise
    tell(f"{name}: registered here, {counted(count, 'offset')} set")
    try:
        if judged.state == PAUSED:
            ours.pause(name)
        elif judged.state != STOPPED:
            ours.resume(name)
    except ConnectError as error:
        raise UnavailableError(
            f"It is registered here with its offsets, but it does not run yet: {error.message}",
            suggestion=f"Let it run with: airflow-connect connectors resume {name}{options}",
        ) from error
    except BaseException:
        tell(
            f"{name}: registered here with its offsets, but it does not run yet. Let it run with:"
            f" airflow-connect connectors resume {name}{options}"
        )
        raise
    return {"name": name, "offsets": len(offsets), "state": ours.states(name)["connector"]["state"]}


def _wait_until_stopped(cluster: ConnectRest, name: str) -> None:
    tries = Retry(Backoff(0.1, longest_s=1.0), within_s=STOP_WITHIN_S, at_deadline=AtDeadline.STOP)
    while True:
        status = cluster.status(name)
        if status is not None and status.is_all(STOPPED):
            return
        if not tries.pause():
            raise UnavailableError(f"The cluster has not stopped connector {name} within {STOP_WITHIN_S:.0f} s.")


def _take_offsets(ours: KafkaConnectors, name: str, offsets: list[dict[str, Any]]) -> int:
    """Set the offsets that differ here; returns how many."""
    known = {_mark(entry["partition"]): entry["offset"] for entry in ours.offsets(name)}
    wanted = [entry for entry in offsets if known.get(_mark(entry["partition"])) != entry["offset"]]
    tries = Retry(Backoff(0.2, longest_s=1.0), within_s=EMPTY_WITHIN_S, at_deadline=AtDeadline.STOP)
    while wanted:
        try:
            ours.alter_offsets(name, wanted)
            break
        except NotStoppedError:  # The group's last member is still leaving.
            if not tries.pause():
                raise
    return len(wanted)


def _go_on(cluster: ConnectRest, judged: Judged) -> None:
    if judged.state == PAUSED:
        cluster.pause(judged.name)
    elif judged.state != STOPPED:
        cluster.resume(judged.name)


def _mark(partition: dict[str, Any]) -> str:
    return json.dumps({key: str(value) for key, value in partition.items()}, sort_keys=True)

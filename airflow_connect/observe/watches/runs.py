"""Answers about the runs of a connector, from its documents in the runs topic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_connect.documents.run import DONE, EMPTY
from airflow_connect.errors import ConnectError
from airflow_connect.exactly_once.kafka_journal import END, RUN, STATE
from airflow_connect.exactly_once.state import ConnectorState
from airflow_connect.kafka.state.runs_topic import decode_document, document_names
from airflow_connect.observe.watches.conditions import FAIL, RunEnds
from airflow_connect.observe.watches.observation import Observation

_TIME_LENGTH = len("20261123T021530")
_SHOWN = ("run_id", "status", "started_ms", "ended_ms", "records", "files", "size_bytes", "recovered_run_id")


class RunFailedError(ConnectError):
    """The run that was waited for has ended without a commit."""

    code = "run.failed"


def state_of(connector: str, documents: Mapping[str, bytes]) -> ConnectorState | None:
    """The state record of a connector, None before its first run.

    Raises:
        StateError: it is damaged, or a newer release wrote it.
    """
    found = decode_document(STATE, connector, documents)
    return ConnectorState.from_json(found) if found else None


def observe_run(connector: str, documents: Mapping[str, bytes], condition: RunEnds) -> Observation:
    """Look for the run that is waited for.

    Raises:
        RunFailedError: it has ended without a commit, and the condition says that this fails.
        StateError: a document is damaged, or a newer release wrote it.
    """
    if condition.run_id:
        return _named_run(connector, documents, condition)
    newest: Observation | None = None
    for name in reversed(document_names(documents, RUN)):
        entry = _entry(connector, documents, name)
        if entry is None or int(entry["started_ms"]) < condition.since_ms:
            continue
        if entry["status"] in (DONE, EMPTY):
            return Observation(True, _facts(connector, entry))
        newest = newest or _failed(connector, name, condition)
    end = decode_document(END, connector, documents)
    if newest is None and end is not None and int(end["started_ms"]) >= condition.since_ms:
        if end["status"] == EMPTY:
            return Observation(True, _facts(connector, end))
        if end["is_final"]:
            return _failed(connector, end["run_id"], condition, end["error_code"])
    return newest or Observation(False, {"connector": connector})


def _named_run(connector: str, documents: Mapping[str, bytes], condition: RunEnds) -> Observation:
    run_id = condition.run_id
    entry = _entry(connector, documents, run_id) or _recovered_by(connector, documents, run_id)
    if entry is not None:
        ended = entry["status"] in (DONE, EMPTY)
        return Observation(True, _facts(connector, entry)) if ended else _failed(connector, run_id, condition)
    end = decode_document(END, connector, documents)
    if end is not None and end["run_id"] == run_id:
        if end["status"] == EMPTY:
            return Observation(True, _facts(connector, end))
        return _failed(connector, run_id, condition, end["error_code"])
    state = state_of(connector, documents)
    # A run that begins takes the state over from one that has ended. Ids of runs begin with a time, in seconds.
    if state is not None and state.run_id[:_TIME_LENGTH] > run_id[:_TIME_LENGTH]:
        return _failed(connector, run_id, condition)
    return Observation(False, {"connector": connector, "run_id": run_id})


def _recovered_by(connector: str, documents: Mapping[str, bytes], run_id: str) -> dict[str, Any] | None:
    """The entry of the run that finished another one, if it did."""
    for name in document_names(documents, RUN):
        entry = _entry(connector, documents, name)
        if entry is not None and entry.get("recovered_run_id") == run_id:
            return entry
    return None


def _entry(connector: str, documents: Mapping[str, bytes], name: str) -> dict[str, Any] | None:
    return decode_document(RUN, connector, documents, name)


def _failed(connector: str, run_id: str, condition: RunEnds, error_code: str = "") -> Observation:
    if condition.on_failure == FAIL:
        why = (
            f"failed with {error_code}" if error_code else "ended without a commit: it failed, or found nothing to copy"
        )
        raise RunFailedError(
            f"Run {run_id} of connector {connector} has {why}.",
            suggestion="Look at the log of its task. With on_failure='wait' the sensor goes on waiting.",
        )
    return Observation(False, {"connector": connector, "run_id": run_id})


def _facts(connector: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"connector": connector, **{name: entry[name] for name in _SHOWN if name in entry}}

"""Moves that are interrupted, and moves to another Kafka cluster. Whole moves: tests/integration/connect_handover."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from airflow_connect.control.client.rest import ConnectorStatus
from airflow_connect.control.migration.judging import Judged, judge
from airflow_connect.control.migration.moving import move
from airflow_connect.errors import UnavailableError

CONFIG = {"name": "c", "connector.class": "FileStreamSink", "topics": "t", "file": "/tmp/f"}
OFFSETS = [{"partition": {"kafka_topic": "t", "kafka_partition": 0}, "offset": {"kafka_offset": 7}}]


class Side:
    """One installation: the state of its connector, None: it has none; one method may fail."""

    def __init__(self, state: str | None, failing: str = "", error: BaseException | None = None) -> None:
        self.state, self._failing, self._error = state, failing, error
        self.cluster_id = "one"
        self.herder = SimpleNamespace(server_info=lambda: {"kafka_cluster_id": "one"})
        self.settings = SimpleNamespace(raw={}, interval_s=60.0)

    def _call(self, method: str) -> None:
        if method == self._failing and self._error is not None:
            raise self._error

    def names(self) -> list[str]:
        return [] if self.state is None else ["c"]

    def kafka_cluster_id(self) -> str | None:
        return self.cluster_id

    def kind(self, name: str) -> str:
        return "sink"

    def config(self, name: str) -> dict[str, str]:
        return CONFIG

    def states(self, name: str) -> dict[str, Any]:
        return {"connector": {"state": self.state}}

    def status(self, name: str) -> ConnectorStatus:
        return SimpleNamespace(is_all=lambda state: state == self.state)  # type: ignore[return-value]

    def offsets(self, name: str) -> list[dict[str, Any]]:
        self._call("offsets")
        return OFFSETS if self.state is not None else []

    def create(self, name: str, config: Any, initial: str) -> None:
        self._call("create")
        self.state = initial

    def alter_offsets(self, name: str, offsets: Any) -> None:
        self._call("alter_offsets")

    def delete(self, name: str) -> None:
        self.state = None

    def stop(self, name: str) -> None:
        self.state = "STOPPED"

    def pause(self, name: str) -> None:
        self.state = "PAUSED"

    def resume(self, name: str) -> None:
        self._call("resume")
        self.state = "RUNNING"


def judged(state: str = "RUNNING") -> Judged:
    return Judged("c", "sink", state, CONFIG, OFFSETS, ())


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ZeroDivisionError(), UnavailableError("x")], ids=repr)
@pytest.mark.parametrize("failing", ["create", "alter_offsets"])
@pytest.mark.parametrize("state", ["RUNNING", "PAUSED"])
def test_connector_goes_on_in_the_cluster_whatever_ends_its_move(failing: str, error: BaseException, state: str):
    cluster, ours = Side(state), Side(None, failing, error)
    # Here the offsets differ from those of the cluster, so they are set.
    ours.offsets = lambda name: []  # type: ignore[method-assign]
    with pytest.raises(type(error)):
        move(cluster, ours, judged(state), lambda text: None)  # type: ignore[arg-type]
    assert (cluster.state, ours.state) == (state, None)


def test_interrupted_last_step_says_how_to_let_it_run():
    cluster, ours, told = Side("RUNNING"), Side(None, "resume", KeyboardInterrupt()), list[str]()
    with pytest.raises(KeyboardInterrupt):
        move(cluster, ours, judged(), told.append, " --worker w.properties")  # type: ignore[arg-type]
    assert (cluster.state, ours.state) == ("STOPPED", "STOPPED")
    assert told[-1].endswith("Let it run with: airflow-connect connectors resume c --worker w.properties")


@pytest.mark.parametrize(("theirs", "can_move"), [("one", True), (None, True), ("two", False)])
def test_offsets_of_another_kafka_cluster_are_not_moved(theirs: str | None, can_move: bool):
    cluster = Side("RUNNING")
    cluster.cluster_id = theirs
    (found,) = judge(cluster, Side(None), [], {})  # type: ignore[arg-type]
    errors = [finding.text for finding in found.findings if "Kafka cluster two" in finding.text]
    assert bool(errors) is not can_move
    assert not errors or "use the Kafka cluster two, and this worker configuration the Kafka cluster one" in errors[0]

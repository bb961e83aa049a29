"""How far a run is: what pages are told, how often, and that it never harms the run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_connect.documents.run_progress import RunProgress, TaskProgress
from airflow_connect.exactly_once.kafka_journal import JournalClients, KafkaJournal
from airflow_connect.exactly_once.state import CLOSED, COPYING, ConnectorState
from airflow_connect.kafka.state.runs_topic import RunsTopic
from airflow_connect.kafka.state.state_documents import encode_document, parse_key
from airflow_connect.kafka.writing.unimportant import UnimportantWriter
from airflow_connect.runtime.driver import pages_progress
from airflow_connect.runtime.driver.pages_progress import PagesProgress
from airflow_connect.runtime.spec import RunSpec
from airflow_connect.ui.overview.topic_tails import History

SPEC = RunSpec({"name": "orders"}, {}, run_id="r1", origin={"dag_id": "d"})
TASKS = (TaskProgress(0, 1, 30, 300, 1_000, 3_000),)


class Clock:
    """`time.monotonic` of the module."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 1000.0
        monkeypatch.setattr(pages_progress.time, "monotonic", lambda: self.now_s)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def progress(done: int) -> dict[str, Any]:
    return {"event": "progress", "phase": "copy", "done": done, "total": 90, "bytes": 1, "seconds": 1.0}


def test_pages_are_told_phases_counts_and_tasks_but_nothing_of_a_short_copy(clock: Clock) -> None:
    events: list[Any] = []
    told: list[Any] = []

    def tell(document: Any) -> str:
        told.append(document)
        return ""

    pages = PagesProgress(events.append, tell, SPEC, 5)
    pages({"event": "phase", "phase": "plan"})
    clock.now_s += 2
    pages({"event": "phase", "phase": "copy", "total": 90})
    pages.tasks = lambda: TASKS
    clock.now_s += 1
    pages(progress(10))
    assert told == []
    clock.now_s += 2.5
    pages(progress(30))
    (found,) = [RunProgress.from_json(json.loads(json.dumps(document))) for document in told]
    assert (found.run_id, found.started_ms, found.phase, found.done, found.total) == ("r1", 5, "copy", 30, 90)
    assert found.phases_ms == {"plan": 2000}
    assert found.tasks == TASKS
    assert (found.origin, found.share) == ({"dag_id": "d"}, 30 / 90)
    clock.now_s += 5
    pages({"event": "phase", "phase": "publish", "total": 7})
    assert (told[-1]["phase"], told[-1]["phases_ms"], told[-1]["total"]) == ("publish", {"plan": 2000, "copy": 8500}, 7)
    assert len(events) == 5


def test_a_long_copy_is_told_less_and_less_often(clock: Clock) -> None:
    told: list[Any] = []

    def tell(document: Any) -> str:
        told.append(document)
        return ""

    pages = PagesProgress(lambda _: None, tell, SPEC, 5)
    pages({"event": "phase", "phase": "copy", "total": 90})
    counts = []
    for second in range(24 * 3600):
        clock.now_s += 1
        pages(progress(1))
        if second in (60, 3600):
            counts.append(len(told))
    assert counts[0] in range(12, 17)
    assert counts[1] < 300
    assert len(told) < 3100


def test_a_problem_is_told_once_and_nothing_is_tried_again(clock: Clock) -> None:
    events: list[Any] = []
    tries: list[Any] = []

    def tell(document: Any) -> str:
        tries.append(document)
        return "The broker is away."

    pages = PagesProgress(events.append, tell, SPEC, 5)
    pages({"event": "phase", "phase": "copy", "total": 90})
    for _ in range(3):
        clock.now_s += 60
        pages(progress(1))
    assert len(tries) == 1
    warnings = [event["message"] for event in events if event["event"] == "warning"]
    assert warnings == ["Pages do not see how far this run is: The broker is away."]


def test_a_broker_that_is_away_delays_nothing_and_its_reason_is_told() -> None:
    settings = {"bootstrap.servers": "127.0.0.1:1", "message.timeout.ms": 50}
    writer = UnimportantWriter({**settings, "acks": "all"})
    assert writer.send(("t", 0, b"k", b"v")) == ""
    assert writer.send(("t", 0, b"k", b"v")) == ""  # one is on its way: this one is not queued
    writer.close()
    assert UnimportantWriter({"no.such.setting": "1"}).send(("t", 0, b"k", b"v")) != ""


def record_of(document: RunProgress) -> tuple[str, bytes]:
    clients: Any = JournalClients(None, {}, None, RunsTopic("connect-runs", 1), None)  # type: ignore[arg-type]
    topic, partition, key, value = KafkaJournal("orders", clients).progress_record(document.to_json())
    assert (topic, partition) == ("connect-runs", 0)
    assert key is not None and value is not None
    return key.decode(), value


def state_records(run_id: str, phase: str) -> list[tuple[str, bytes]]:
    records = encode_document("state", "orders", ConnectorState("orders", run_id, phase, 0).to_json())
    return [(key.decode(), value) for key, value in records if value is not None]


def test_source_that_tells_its_parts_has_a_share(clock: Clock) -> None:
    told: list[Any] = []
    pages = PagesProgress(lambda _: None, lambda document: str(told.append(document) or ""), SPEC, 5)
    pages({"event": "phase", "phase": "copy", "total": 0})
    pages.expected = (12, "files of 2 partitions")
    clock.now_s += 4
    pages({**progress(30), "total": 0, "parts": 3})
    found = RunProgress.from_json(told[0])
    assert (found.parts_done, found.parts_total, found.parts_what) == (3, 12, "files of 2 partitions")
    assert found.share == 3 / 12
    earlier = {name: value for name, value in told[0].items() if not name.startswith("parts_")}
    assert RunProgress.from_json(earlier).to_json() == earlier
    assert RunProgress.from_json(earlier).share is None


@pytest.mark.parametrize(
    ("run_id", "phase", "end", "copying", "is_shown"),
    [
        ("r1", COPYING, "", "r1", True),
        ("r2", COPYING, "", "r2", False),  # a newer run copies: what r1 has told is old
        ("r1", CLOSED, "", "", False),
        ("r1", COPYING, "r1", "", False),  # it has failed
        ("r1", COPYING, "r0", "r1", True),
    ],
)
def test_only_the_run_that_copies_now_has_progress(
    run_id: str, phase: str, end: str, copying: str, is_shown: bool
) -> None:
    history = History("orders")
    ended = {"v": 1, "run_id": end, "status": "failed", "started_ms": 1, "ended_ms": 2}
    ends = [(key.decode(), value) for key, value in encode_document("end", "orders", ended) if value] if end else []
    for key, value in [
        *state_records(run_id, phase),
        record_of(RunProgress("r1", 1, 2, "copy", 3, 9, {}, TASKS)),
        *ends,
    ]:
        history.take(parse_key(key), key, value)
    assert (history.copying, history.progress is not None, history.damage) == (copying, is_shown, "")

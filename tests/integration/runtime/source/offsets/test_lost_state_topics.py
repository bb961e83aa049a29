"""State topics of a source that lose their records: what is read again is named, and so is a claim that is gone."""

from __future__ import annotations

import pytest

from airflow_connect.runtime import crash_points
from airflow_connect.runtime.driver.entry import reset_offsets
from airflow_connect.runtime.driver.source import run as source_run
from tests.integration.runtime.source.conftest import Numbers
from tests.support.kafka_data import create_topic, delete_topic, partition_count

pytestmark = pytest.mark.integration


def recreate(numbers: Numbers, kind: str) -> None:
    """Delete a state topic of the connector, and create it as it was, without its records."""
    topic = numbers.worker_config[f"{kind}.storage.topic"]
    partitions = partition_count(numbers.bootstrap, topic)
    delete_topic(numbers.bootstrap, topic)
    create_topic(numbers.bootstrap, topic, partitions, {"cleanup.policy": "compact"})


@pytest.fixture
def copied(numbers: Numbers) -> Numbers:
    """A source with state topics of its own that has copied three numbers from each of two source partitions."""
    numbers.worker_config |= {f"{kind}.storage.topic": f"{numbers.name}-{kind}" for kind in ("offset", "runs")}
    numbers.feed(3, 3)
    numbers.run()
    return numbers


def missing(notes: tuple[str, ...]) -> list[str]:
    return [note for note in notes if "missing" in note]


def test_offsets_that_the_topic_has_lost_between_runs_are_named(copied: Numbers) -> None:
    recreate(copied, "offset")
    copied.feed(4, 4)

    report, next_one = copied.run(), copied.run()

    assert report.records == 8
    (note,) = missing(report.notes)
    assert "2 offsets are missing: 2 source partitions had an offset when the last run ended" in note
    assert copied.worker_config["offset.storage.topic"] in note
    assert missing(next_one.notes) == []


def test_offsets_that_the_topic_loses_during_a_run_are_named_by_this_run(
    copied: Numbers, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied.feed(4, 4)
    read = source_run.SourceSession.read_offsets

    def lose_and_read(session):
        monkeypatch.undo()
        recreate(copied, "offset")
        return read(session)

    monkeypatch.setattr(source_run.SourceSession, "take_offsets", read)
    monkeypatch.setattr(source_run.SourceSession, "read_offsets", lose_and_read)
    report = copied.run()

    assert report.records == 2
    (note,) = missing(report.notes)
    assert "2 offsets are missing: 2 source partitions had an offset during this run" in note


def test_offsets_that_were_reset_are_not_called_missing(copied: Numbers) -> None:
    reset_offsets(copied.spec(), [{"p": 1}])

    report = copied.run()

    assert report.records == 3
    assert missing(report.notes) == []


def test_claim_that_the_runs_topic_has_lost_is_an_error_of_its_own(
    copied: Numbers, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied.feed(4, 4)

    def lose(point: str) -> None:
        if point == crash_points.SOURCE_PLANNED:
            monkeypatch.undo()
            recreate(copied, "runs")

    monkeypatch.setattr(source_run, "reached", lose)
    stopped = copied.try_run()
    copied.run()

    assert stopped.error is not None and stopped.error["code"] == "state.claim_lost"
    assert "deleted, recreated or emptied" in stopped.error["message"]
    copied.assert_exactly_once(4, 4)

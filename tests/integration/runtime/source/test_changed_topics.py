"""What topics of a source lack is named: if they are deleted or created again, or transformations are changed."""

from __future__ import annotations

import pytest

from airflow_connect.documents.run import RunReport
from airflow_connect.errors import UnavailableError
from airflow_connect.kafka.admin import topics
from airflow_connect.runtime.driver.entry import plan_connector, reset_offsets
from airflow_connect.runtime.driver.source import run as source_run
from airflow_connect.runtime.driver.source import written_topics
from tests.integration.runtime.source.conftest import Numbers
from tests.integration.runtime.source.numbers import NumbersConnector
from tests.support.kafka_data import create_topic, delete_topic

pytestmark = pytest.mark.integration
CREATED = {"partitions": 2, "replication.factor": 1}


@pytest.fixture
def copied(numbers: Numbers) -> Numbers:
    numbers.config |= {f"topic.creation.default.{key}": str(n) for key, n in CREATED.items()}
    numbers.feed(3, 3)
    numbers.run()
    return numbers


def recreate(numbers: Numbers) -> None:
    delete_topic(numbers.bootstrap, numbers.topic)
    create_topic(numbers.bootstrap, numbers.topic, 2, {})


def changed(report: RunReport) -> list[str]:
    return [note for note in report.notes if "continues at its offsets" in note]


@pytest.mark.parametrize("grows", [False, True])
@pytest.mark.parametrize("again", [False, True], ids=["deleted", "recreated"])
def test_topic_that_has_changed_since_the_last_run_is_named_once(copied: Numbers, again: bool, grows: bool) -> None:
    """The run went on, and the topic had only what came later."""
    (recreate if again else lambda numbers: delete_topic(numbers.bootstrap, numbers.topic))(copied)
    if grows:
        copied.feed(4, 4)
    shown = plan_connector(copied.spec())
    report, next_one = copied.run(), copied.run()

    (note,) = changed(report)
    what = "deleted and created again" if again else "deleted"
    assert note.startswith(f"1 topic was {what} since the last run: {copied.topic}. The connector continues")
    assert note in shown.notes
    assert report.records == (2 if grows else 0)
    assert changed(next_one) == []
    if grows and not again:
        recreate(copied)
        assert len(changed(copied.run())) == 1


def test_topic_that_was_deleted_together_with_all_offsets_is_no_loss(copied: Numbers) -> None:
    recreate(copied)
    reset_offsets(copied.spec(), None)
    report = copied.run()
    assert report.records == 6 and changed(report) == []


def test_topic_that_changes_during_a_run_is_named_by_this_run(copied: Numbers, monkeypatch: pytest.MonkeyPatch) -> None:
    copied.feed(4, 4)

    def reached(point: str) -> None:
        if point == source_run.crash_points.SOURCE_RECONCILED:
            recreate(copied)

    monkeypatch.setattr(source_run, "reached", reached)
    (note,) = changed(copied.run())
    monkeypatch.undo()
    assert "deleted and created again during this run" in note
    assert changed(copied.run()) == []


def test_ids_that_kafka_does_not_tell_after_the_copy_do_not_fail_the_run(
    numbers: Numbers, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers.feed(3)

    def refuse(*_: object) -> None:
        raise UnavailableError("Kafka did not answer.")

    with monkeypatch.context() as patched:
        patched.setattr(written_topics.WrittenTopics, "look", refuse)
        patched.setattr(source_run.SourceRun, "_look_at_topics", lambda *_: written_topics.WrittenTopics({}, None))
        report = numbers.run()
    assert any("are unknown: Kafka did not answer. If one of them" in note for note in report.notes)
    assert report.records == 3 and changed(numbers.run()) == []


def test_source_that_needs_no_names_and_topics_beyond_the_limit(
    copied: Numbers, monkeypatch: pytest.MonkeyPatch
) -> None:
    recreate(copied)
    with monkeypatch.context() as patched:
        patched.setattr(NumbersConnector, "names_changed_topics", lambda *_: False)
        assert changed(copied.run()) == []
    monkeypatch.setattr(written_topics, "MOST_TOPICS", 0)
    copied.feed(4, 4)
    notes = copied.run().notes
    assert any("Of 1 topic, it is not noticed if they are deleted or created again" in note for note in notes)


def test_topic_that_may_not_be_described_is_not_called_deleted(
    copied: Numbers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topics, "ids_of", lambda *_: ({}, frozenset()))
    assert changed(copied.run()) == []
    monkeypatch.undo()
    recreate(copied)
    assert len(changed(copied.run())) == 1


ROUTER = {
    "transforms": "mask,route",
    "transforms.mask.type": "MaskField$Value",
    "transforms.mask.fields": "n",
    "transforms.route.type": "RegexRouter",
    "transforms.route.regex": "(.*)",
    "transforms.route.replacement": "$1-new",
}


def test_topic_that_lacks_records_because_of_changed_transformations_is_named_once(copied: Numbers) -> None:
    """The run was empty, or copied what came later, and said nothing."""
    copied.config |= ROUTER
    copied.feed(4, 3)
    shown, report = plan_connector(copied.spec()), copied.run()
    (note,) = changed(report)
    assert note.startswith("Transformations that choose the topics of records, or drop some, were changed since the")
    keys = "transforms, transforms.route.regex, transforms.route.replacement, transforms.route.type"
    assert f"({keys})" in note and "(2 source partitions)" in note and note in shown.notes
    assert report.records == 1 and changed(copied.run()) == []

    copied.config |= {"transforms.mask.fields": "p", "transforms": "route,mask"}
    assert changed(copied.run()) == []
    reset_offsets(copied.spec(), None)
    copied.config["transforms.route.replacement"] = "$1-other"
    assert copied.run().records == 7 and changed(copied.run()) == []


def test_transformations_are_not_named_if_the_last_run_did_not_keep_them(
    copied: Numbers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was one of an earlier release, or of a source that does not need it."""
    with monkeypatch.context() as patched:
        patched.setattr(NumbersConnector, "names_changed_routes", lambda *_: False)
        copied.run()
    copied.config |= ROUTER
    assert changed(copied.run()) == []
    copied.config["transforms.route.regex"] = "x(.*)"
    assert len(changed(copied.run())) == 1

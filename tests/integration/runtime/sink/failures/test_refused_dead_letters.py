"""Dead letters that their queue would refuse: repaired, or refused before anything is published; never a stuck run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.record import KafkaRecord
from airflow_connect.errors import AccessError
from airflow_connect.kafka.admin import dead_letter_queue
from airflow_connect.kafka.admin.copied_settings import alter_settings
from airflow_connect.kafka.admin.topic_settings import settings_of
from airflow_connect.kafka.admin.watermarks import READ_COMMITTED, READ_UNCOMMITTED, latest_offsets
from airflow_connect.kafka.clients.short_lived import admin_client
from airflow_connect.kafka.reading.dead_letters import DeadLetter
from airflow_connect.kafka.reading.topic_contents import committed_records, ranges_of
from airflow_connect.runtime import crash_points
from tests.support.copies.jdbc_sink import jdbc_sink
from tests.support.copies.local import LocalSink, local_sink
from tests.support.kafka_data import create_topic, delete_topic
from tests.support.servers.databases import Database
from tests.support.steps import Crashed, Steps
from tests.support.waiting import wait_until

IN_2100 = 4_102_444_800_000
GOOD = [b'{"n": 1}', b'{"n": 2}']


@pytest.fixture
def sink(kafka: Any, make_topic: Any, tmp_path: Path, unique_name: str) -> LocalSink:
    """A connector with a dead letter queue that does not exist yet."""
    topic = make_topic(config={"message.timestamp.after.max.ms": str(2**63 - 1)})
    return local_sink(
        kafka,
        tmp_path / "out",
        topic,
        errors_tolerance="all",
        errors_deadletterqueue_topic_name=f"{unique_name}-dlq",
        errors_deadletterqueue_topic_replication_factor="1",
        errors_deadletterqueue_context_headers_enable="true",
    )


def queue_name(sink: LocalSink) -> str:
    name: str = sink.connector()["errors.deadletterqueue.topic.name"]
    return name


def letters(sink: LocalSink, queue: str = "") -> list[KafkaRecord]:
    """Every committed record of the queue."""
    settings = {"bootstrap.servers": sink.kafka.bootstrap}
    admin, topic = admin_client(settings), queue or queue_name(sink)
    places = [TopicPartition(topic, 0)]
    wait_until(
        lambda: latest_offsets(admin, places, READ_COMMITTED) == latest_offsets(admin, places, READ_UNCOMMITTED),
        "the markers of the transaction",
    )
    return list(committed_records(settings, ranges_of(admin, topic)))


def set_queue(sink: LocalSink, **settings: str) -> None:
    """Change settings of the queue; `_` stands for `.`."""
    changes: dict[str, str | None] = {name.replace("_", "."): value for name, value in settings.items()}
    admin, queue = admin_client({"bootstrap.servers": sink.kafka.bootstrap}), queue_name(sink)
    alter_settings(admin, {queue: changes})
    wait_until(lambda: changes.items() <= settings_of(admin, [queue])[queue].items(), "the new settings")


def broken(*values: bytes, key: bytes | None = None, timestamp: int | None = None) -> list[Any]:
    """Two records around some that cannot be converted."""
    return [(0, key, GOOD[0]), *((0, key, value, timestamp or 0) for value in values), (0, key, GOOD[1])]


def test_timestamp_that_the_queue_refuses_becomes_a_header(sink: LocalSink, produce: Any) -> None:
    produce(sink.topic, broken(b"x", timestamp=IN_2100))

    report = sink.run()

    (letter,) = letters(sink)
    assert (report.records, report.dead_lettered) == (2, 1)
    assert letter.value == b"x"
    assert letter.timestamp is not None and letter.timestamp < IN_2100
    assert dict(letter.headers)["__connect.errors.timestamp"] == str(IN_2100).encode()
    assert f"1 dead letter was written to {queue_name(sink)} with the time of this run" in " ".join(report.notes)
    assert f"{sink.topic}-0@1" in " ".join(report.notes)
    assert sink.run().status == "empty"


def test_timestamp_that_the_queue_replaces_becomes_a_header(sink: LocalSink, kafka: Any, produce: Any) -> None:
    create_topic(kafka.bootstrap, queue_name(sink), 1, {"message.timestamp.type": "LogAppendTime"})
    produce(sink.topic, broken(b"x", timestamp=IN_2100))

    report = sink.run()

    (letter,) = letters(sink)
    assert dict(letter.headers)["__connect.errors.timestamp"] == str(IN_2100).encode()
    assert DeadLetter(letter).timestamp == IN_2100
    assert f"1 dead letter was written to {queue_name(sink)} with the time of this run" in " ".join(report.notes)


def test_letter_that_is_too_large_with_its_context_is_written_without_it(sink: LocalSink, produce: Any) -> None:
    produce(sink.topic, broken(b"x" * 1_048_300), {"message.max.bytes": 1_048_588})

    report = sink.run()

    (letter,) = letters(sink)
    assert (report.records, report.dead_lettered) == (2, 1)
    assert letter.value == b"x" * 1_048_300
    assert letter.headers == ()
    assert any("with no or fewer context headers" in note and f"{sink.topic}-0@1" in note for note in report.notes)


@pytest.mark.parametrize(
    ("settings", "reason", "cure"),
    [
        ({"max.message.bytes": "1000"}, "it accepts 1000 bytes (max.message.bytes)", {"max_message_bytes": "9000"}),
        ({"cleanup.policy": "compact"}, "it is compacted, and {}-0@1 has no key", {"cleanup_policy": "delete"}),
    ],
)
def test_letter_that_cannot_be_written_fails_the_run_before_anything_is_published(
    sink: LocalSink, kafka: Any, produce: Any, settings: dict[str, str], reason: str, cure: dict[str, str]
) -> None:
    create_topic(kafka.bootstrap, queue_name(sink), 1, settings)
    produce(sink.topic, broken(b"x" * 2_000))

    refused = sink.try_run()
    before = (sink.keys(), sink.offsets(), sink.view().manifest)
    set_queue(sink, **cure)
    report = sink.run()

    assert refused.error["code"] == "dead_letter.refused"
    assert reason.format(sink.topic) in refused.error["message"]
    assert f"{sink.topic}-0@1" in refused.error["message"]
    assert queue_name(sink) in refused.error["message"]
    assert before == ([], {}, None)
    assert (report.records, report.dead_lettered, len(letters(sink))) == (2, 1, 1)


def test_letters_in_a_compacted_queue_are_written_with_a_warning(sink: LocalSink, kafka: Any, produce: Any) -> None:
    create_topic(kafka.bootstrap, queue_name(sink), 1, {"cleanup.policy": "compact"})
    produce(sink.topic, broken(b"x", b"y", key=b"k"))

    report = sink.run()

    assert report.dead_lettered == 2
    assert any("is compacted: Kafka keeps only the last letter of each key" in note for note in report.notes)


def test_letters_that_fit_alone_but_not_together_are_written(sink: LocalSink, kafka: Any, produce: Any) -> None:
    create_topic(kafka.bootstrap, queue_name(sink), 1, {"max.message.bytes": "40000"})
    produce(sink.topic, broken(*(b"x" * 5_000 for _ in range(20))))

    assert sink.run().dead_lettered == 20
    assert len(letters(sink)) == 20


@pytest.fixture
def unreadable_settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """A principal that may write to the queue, and not describe its settings; call it to end that."""

    def denied(*_: Any) -> Any:
        raise AccessError("Kafka denied access to the topic while reading its settings.", code="kafka.denied")

    with monkeypatch.context() as patched:
        patched.setattr(dead_letter_queue, "settings_of", denied)
        yield patched.undo


def test_refusal_at_the_commit_names_the_record_and_the_next_run_finishes(
    sink: LocalSink, kafka: Any, produce: Any, unreadable_settings: Callable[[], None]
) -> None:
    create_topic(kafka.bootstrap, queue_name(sink), 1, {"cleanup.policy": "compact"})
    produce(sink.topic, broken(b"x", b"y"))

    refused = sink.try_run()
    again = sink.try_run()
    set_queue(sink, cleanup_policy="delete")
    sink.run()

    for report in (refused, again):
        assert report.error["code"] == "data.refused_by_kafka"
        assert f"writing a copy of {sink.topic}-0@1 to topic {queue_name(sink)}" in report.error["message"]
    assert len(letters(sink)) == 2
    assert sink.run().status == "empty"
    sink.assert_exactly_once([{"n": 1}, {"n": 2}])


@pytest.fixture
def stuck(sink: LocalSink, kafka: Any, produce: Any, steps: Steps) -> LocalSink:
    """A connector whose run died after its manifest, and whose queue has become too small since."""
    produce(sink.topic, broken(b"x" * 2_000))
    steps.crash(crash_points.MANIFEST_WRITTEN)
    with pytest.raises(Crashed):
        sink.try_run()
    set_queue(sink, max_message_bytes="1000")
    assert sink.try_run().error["code"] == "dead_letter.refused"
    return sink


def test_open_manifest_is_finished_by_another_queue(stuck: LocalSink, unique_name: str) -> None:
    refused = stuck.try_run()
    report = stuck.run(errors_deadletterqueue_topic_name=f"{unique_name}-other")

    assert "To give these dead letters up, remove errors.deadletterqueue.topic.name" in refused.error["suggestion"]
    assert report.recovered_run_id
    assert len(letters(stuck, f"{unique_name}-other")) == 1
    stuck.assert_exactly_once([{"n": 1}, {"n": 2}])


def test_letters_of_an_open_manifest_are_given_up_by_removing_the_queue(stuck: LocalSink) -> None:
    report = stuck.run(
        errors_deadletterqueue_topic_name=None,
        errors_deadletterqueue_topic_replication_factor=None,
        errors_deadletterqueue_context_headers_enable=None,
    )

    told = " ".join(str(event.get("message", "")) for event in stuck.events)
    assert report.recovered_run_id
    assert f"1 dead letter of run {report.recovered_run_id} was given up" in told
    assert f"{stuck.topic}-0@1" in told
    stuck.assert_exactly_once([{"n": 1}, {"n": 2}])


def test_queue_that_was_deleted_after_the_manifest_is_created_again(
    sink: LocalSink, kafka: Any, produce: Any, steps: Steps
) -> None:
    produce(sink.topic, broken(b"x"))
    steps.crash(crash_points.PUBLISHED)
    with pytest.raises(Crashed):
        sink.try_run()
    delete_topic(kafka.bootstrap, queue_name(sink))

    sink.run()

    assert [letter.value for letter in letters(sink)] == [b"x"]


def test_database_gets_each_row_once_although_its_dead_letters_were_refused_first(
    sink: LocalSink, kafka: Any, produce: Any, sqlite_database: Database
) -> None:
    create_topic(kafka.bootstrap, queue_name(sink), 1, {"max.message.bytes": "1000"})
    produce(sink.topic, broken(b"x" * 2_000))
    settings = {key.replace(".", "_"): text for key, text in sink.config.items()}
    rows = jdbc_sink(kafka, sqlite_database, sink.topic, in_columns=True, **settings)

    refused = rows.try_run()
    set_queue(sink, max_message_bytes="9000")
    rows.run()

    assert refused.error["code"] == "dead_letter.refused"
    assert "has committed no offset" in refused.error["suggestion"]
    assert len(letters(sink)) == 1
    rows.assert_exactly_once([{"n": 1}, {"n": 2}])

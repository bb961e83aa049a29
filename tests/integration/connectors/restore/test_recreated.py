"""A backup of a topic that was deleted and recreated meanwhile: its offsets begin at 0 again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from airflow_connect.runtime.driver.kinds import kind_of
from tests.integration.connectors.restore.test_groups import Groups, commit, committed
from tests.support.copies.backups import TIME_MS
from tests.support.copies.local import LocalSink, local_sink
from tests.support.copies.restore import Restore, local_restore_of, stored

pytestmark = pytest.mark.integration


def values(restore: Restore) -> list[bytes | None]:
    return [one.value for one in stored(restore.bootstrap, restore.target)]


@pytest.fixture
def backed_up(kafka: Any, make_topic: Any, produce: Any, tmp_path: Path) -> Callable[..., tuple[LocalSink, Restore]]:
    """The offsets 20 to 22 of a topic, and those of its successor."""

    def back_up(new: int, other: str = "", continues: str = "earliest") -> tuple[LocalSink, Restore]:
        topic = make_topic(1)
        settings = {"store.kafka.records": "true", "format.class": "ParquetFormat", "flush.size": "1000"}
        sink = local_sink(kafka, tmp_path, topic, **settings, **{"offsets.out.of.range": continues})
        produce(topic, [(0, b"k", b"old %d" % n, TIME_MS, []) for n in range(23)])
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        for deleted in admin.delete_records([TopicPartition(topic, 0, 20)]).values():
            deleted.result()
        sink.run()
        for gone in admin.delete_topics([topic]).values():
            gone.result()
        make_topic(1, name=topic)
        produce(topic, [(0, b"k", b"new %d" % n, TIME_MS, []) for n in range(new)])
        sink.name += other
        sink.run()
        produce(topic, [(0, b"k", b"last", TIME_MS, [])])
        sink.run()
        return sink, local_restore_of(sink, f"{topic}-restored")

    return back_up


@pytest.mark.parametrize("other", ["", "-anew"], ids=["same-sink", "other-sink"])
def test_records_of_two_topics_with_one_name_are_not_mixed(backed_up: Any, other: str) -> None:
    sink, restore = backed_up(2, other)

    report = restore.try_run()

    assert report.error is not None and report.error["code"] == "restore.recreated"
    told = report.error["message"]
    assert f"{sink.topic}-0 of the backup has records of several topics" in told
    assert "from offset 0 on of the topic with id" in told and "from offset 20 on of the topic with id" in told
    assert restore.offsets() == {}
    first = {"restore.until.offsets": f"{sink.topic}:0:3"}
    restore.run(**first)
    assert values(restore) == [b"new 0", b"new 1", b"last"]
    restore.target += "-old"
    restore.run(**{"restore.from.offsets": f"{sink.topic}:0:20"})
    assert values(restore) == [b"old 20", b"old 21", b"old 22"]


def test_topic_whose_successor_goes_on_after_it_is_restored_and_told(backed_up: Any) -> None:
    _, restore = backed_up(25, continues="latest")
    told = "has records of several topics"
    assert [note for note in kind_of(restore.spec()).plan().notes if told in note]
    report = restore.run()
    (note,) = [note for note in report.notes if told in note]
    assert "from offset 20 on" in note and "from offset 25 on" in note
    assert values(restore) == [b"old 20", b"old 21", b"old 22", b"last"]


def test_offsets_of_groups_in_the_other_topic_are_refused(backed_up: Any, tmp_path: Path) -> None:
    sink, restore = backed_up(2)
    commit(restore.bootstrap, f"{sink.topic}-group", sink.topic, 0, 2)  # of the new topic
    sink.run()
    restore.run(**{"restore.from.offsets": f"{sink.topic}:0:20"})
    groups = Groups(restore, tmp_path)

    code, found = groups.run()

    (error,) = [one["error"] for one in found["result"]["connectors"]]
    assert (code != 0, error["code"]) == (True, "restore.other_document")
    assert "is of another topic with this name" in error["message"]
    assert committed(restore.bootstrap, f"{sink.topic}-group", restore.target, 0)[0] < 0
    documents = sorted((tmp_path / "topics" / "+runs" / sink.name).iterdir())
    assert groups.run("--document", documents[0].stem)[0] == 0, "no group had an offset in the old topic"
    assert committed(restore.bootstrap, f"{sink.topic}-group", restore.target, 0)[0] < 0

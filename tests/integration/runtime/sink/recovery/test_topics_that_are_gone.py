"""An open manifest whose topic was deleted or recreated before the next run: finished, and never with other records."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.runtime import crash_points
from tests.support.copies.local import LocalSink, local_sink
from tests.support.copies.s3 import numbered
from tests.support.kafka_data import create_topic, delete_records, delete_topic
from tests.support.steps import Crashed, Steps


@pytest.fixture
def open_manifest(
    kafka: Any, make_topic: Any, produce: Any, steps: Steps, tmp_path: Path, unique_name: str
) -> Callable[[], tuple[LocalSink, str, str]]:
    """A connector that was killed after its manifest: 5 records of each of two topics, found by `topics.regex`."""

    def make() -> tuple[LocalSink, str, str]:
        a, b = f"{unique_name}-a", f"{unique_name}-b"
        for topic, first in ((a, 0), (b, 10)):
            make_topic(name=topic, partitions=2)
            produce(topic, numbered(first, first + 5)[0])
        sink = local_sink(kafka, tmp_path / "out", a)
        sink.config |= {"topics": None, "topics.regex": f"{unique_name}-[ab]"}
        steps.crash(crash_points.MANIFEST_WRITTEN)
        with pytest.raises(Crashed):
            sink.try_run()
        return sink, a, b

    return make


def lose_staged_files(sink: LocalSink) -> None:
    """As somebody does who cleans up."""
    for name in sink.uploads():
        (Path(sink.bucket) / name).unlink()


def copied(sink: LocalSink) -> list[int]:
    return sorted(value["n"] for value in sink.values())


def test_manifest_of_a_topic_that_was_deleted_is_finished_without_its_offset(open_manifest: Any, kafka: Any) -> None:
    sink, a, b = open_manifest()
    delete_topic(kafka.bootstrap, b)

    report = sink.run()

    assert report.recovered_run_id
    assert copied(sink) == [0, 1, 2, 3, 4, 10, 11, 12, 13, 14]
    assert sink.offsets(a) == {0: 5, 1: 0}
    assert any(f"Kafka no longer has topic {b}. It was copied up to {b}-0@5" in note for note in report.notes)
    assert sink.view().manifest is None
    assert sink.run().status == "empty"


@pytest.mark.parametrize("recreated", [False, True])
def test_topic_that_is_deleted_between_manifest_and_commit_is_named_and_has_no_offset(
    kafka: Any, make_topic: Any, produce: Any, steps: Steps, tmp_path: Path, unique_name: str, recreated: bool
) -> None:
    a, b = (make_topic(name=f"{unique_name}-{letter}") for letter in "ab")
    for topic in (a, b):
        produce(topic, numbered(0, 5)[0])
    sink = local_sink(kafka, tmp_path / "out", a)
    sink.config |= {"topics": None, "topics.regex": f"{unique_name}-[ab]"}

    def delete() -> None:
        delete_topic(kafka.bootstrap, b)
        if recreated:
            create_topic(kafka.bootstrap, b, 1)

    steps.on(crash_points.PUBLISHED, delete)
    report = sink.run()
    after = sink.try_run()

    what = "was recreated: its id was" if recreated else "This run had copied it before."
    assert [note for note in report.notes if b in note and what in note] != []
    assert (sink.offsets(a), sink.offsets(b), copied(sink)) == ({0: 5}, {}, sorted([*range(5)] * 2))
    if recreated:
        assert f"Topic {b} was recreated" in after.error["message"] and f"{b}-0@5" in after.error["message"]
    else:
        assert f"Kafka no longer has topic {b}. It was copied up to {b}-0@5." in after.notes


def test_manifest_of_a_topic_that_was_recreated_smaller_is_finished_and_the_run_refused(
    open_manifest: Any, kafka: Any, produce: Any
) -> None:
    sink, _, b = open_manifest()
    delete_topic(kafka.bootstrap, b)
    create_topic(kafka.bootstrap, b, 1)
    produce(b, numbered(100, 120)[0])

    refused = sink.try_run()
    finished = (sink.view().manifest, sink.offsets(b), copied(sink))
    report = sink.run(offsets_out_of_range="earliest", topics_dir="second")

    assert f"Topic {b} was recreated" in refused.error["message"]
    assert finished == (None, {}, [0, 1, 2, 3, 4, 10, 11, 12, 13, 14])
    assert report.records == 20
    assert copied(sink)[10:] == list(range(100, 120))


def test_lost_files_are_never_copied_again_from_a_topic_that_was_recreated(
    open_manifest: Any, kafka: Any, produce: Any
) -> None:
    sink, a, b = open_manifest()
    lose_staged_files(sink)
    delete_topic(kafka.bootstrap, b)
    create_topic(kafka.bootstrap, b, 2)
    produce(b, numbered(100, 120)[0])

    refused = sink.try_run()

    assert refused.error["code"] == "publish.lost"
    assert f"Topic {b} was recreated" in refused.error["message"]
    assert f"{b}+0+0000000000" in refused.error["message"]
    assert copied(sink) == []
    assert sink.offsets(a) == {}
    assert sink.uploads() == []

    decided = sink.run(offsets_out_of_range="earliest")

    assert copied(sink) == [0, 1, 2, 3, 4, *range(100, 120)]
    (note,) = [note for note in decided.notes if "given up" in note]
    assert f"of {b}-0 that cannot be copied again as they were" in note and f"Topic {b} was recreated" in note
    assert "5 records between offsets 0 and 5 are given up" in note


def test_lost_files_whose_records_are_partly_deleted_are_named(open_manifest: Any, kafka: Any) -> None:
    sink, a, _ = open_manifest()
    lose_staged_files(sink)
    delete_records(kafka.bootstrap, a, 0, 2)

    refused = sink.try_run()

    assert refused.error["code"] == "publish.lost"
    assert f"Kafka no longer holds {a}-0@0" in refused.error["message"]
    assert f"{a}+0+0000000000" in refused.error["message"]
    assert "manifest stays open" in refused.error["suggestion"]

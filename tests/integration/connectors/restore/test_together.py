"""Restores that begin at the same moment in one empty topic: one of them writes, and the other one fails."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.connectors.restore.alone import Alone
from airflow_connect.documents.run import RunReport
from airflow_connect.errors import OffsetError
from tests.support.copies.backups import TIME_MS, record, write_file
from tests.support.copies.restore import LOCAL_SOURCE, Restore, stored

pytestmark = pytest.mark.integration
WAIT_S = 60


@pytest.fixture
def restore(kafka: Any, tmp_path: Path, unique_name: str) -> Restore:
    """A restore of a directory."""
    config = {"connector.class": LOCAL_SOURCE, "store.url": str(tmp_path), "format.class": "ParquetFormat"}
    return Restore(kafka.bootstrap, "t", unique_name, config)


VALUES = {"format.class": "StringFormat", "accept.loss": "timestamp,key,headers", "store.kafka.records": "false",
          "value.converter": "org.apache.kafka.connect.storage.StringConverter"}  # fmt: skip


def backup(folder: Path, form: str) -> None:
    if form == "records":
        write_file(folder / "topics", [record(n, b"%d" % n) for n in range(3)])
    else:
        path = folder / "topics" / "t" / "partition=0" / "t+0+0000000000.txt"
        path.parent.mkdir(parents=True)
        path.write_text("0\n1\n2\n")


def together(restore: Restore, **more: str) -> list[RunReport]:
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(restore.try_run, name=f"{restore.target}-{one}", **more) for one in "ab"]
        return [run.result() for run in runs]


def waiting(call: Callable[..., Any]) -> Callable[..., Any]:
    """The first two calls begin when both are about to."""
    left, barrier = [None, None], threading.Barrier(2)

    def wait(*arguments: Any) -> Any:
        if left:
            left.pop()
            barrier.wait(WAIT_S)
        return call(*arguments)

    return wait


@pytest.mark.parametrize("form", ["records", "values"])
@pytest.mark.parametrize("exists", [True, False])
def test_of_two_that_begin_together_one_fails(
    restore: Restore, make_topic: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, *, exists: bool
) -> None:
    backup(tmp_path, form)
    if exists:
        restore.target = make_topic(1)
    # The tasks of both have started before either of them writes, and have written before either of them commits.
    monkeypatch.setattr(Alone, "__init__", waiting(Alone.__init__))
    monkeypatch.setattr(Alone, "check", waiting(Alone.check))
    more = {"accept.loss": "retention"} if form == "records" else VALUES
    reports = together(restore, **more)
    assert sorted(report.status for report in reports) == ["done", "failed"], [
        report.error and report.error["message"] for report in reports
    ]
    failed = next(report for report in reports if report.status == "failed")
    assert failed.error is not None and failed.error["code"] == "restore.not_alone"
    assert "-0 was empty when" in failed.error["message"] and "at offset 0" in failed.error["message"]
    assert "first record of this run at offset 3" in failed.error["message"]
    assert [one.value for one in stored(restore.bootstrap, restore.target)] == [b"0", b"1", b"2"]
    again = [restore.try_run(name=f"{restore.target}-{one}", **more) for one in "ab"]
    assert sorted(report.status for report in again) == ["empty", "failed"]
    assert [one.value for one in stored(restore.bootstrap, restore.target)] == [b"0", b"1", b"2"]


def failing_once(restore: Restore, monkeypatch: pytest.MonkeyPatch, **more: str) -> None:
    """A run whose first transaction is aborted when Kafka has all of it."""
    check = Alone.check

    def fail(self: Alone, first: Mapping[TopicPartition, int]) -> None:
        check(self, first)
        raise OffsetError("The first transaction fails.", code="test.fails")

    monkeypatch.setattr(Alone, "check", fail)
    report = restore.try_run(**more)
    assert report.error is not None and report.error["code"] == "test.fails"
    monkeypatch.setattr(Alone, "check", check)
    assert stored(restore.bootstrap, restore.target) == []


@pytest.mark.parametrize("columnar", [True, False])
def test_own_aborted_records_are_not_those_of_another(
    restore: Restore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, columnar: bool
) -> None:
    backup(tmp_path, "records")
    failing_once(restore, monkeypatch)
    assert restore.run(columnar=columnar).records == 3
    assert [one.value for one in stored(restore.bootstrap, restore.target)] == [b"0", b"1", b"2"]


@pytest.mark.parametrize(
    ("end", "words"),
    [("commit", "-0 [0, 6)"), ("open", "that has begun at offset 4"), ("abort", "")],
)
def test_what_came_before_the_next_attempt(
    restore: Restore, produce: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, words: str
) -> None:
    backup(tmp_path, "records")
    failing_once(restore, monkeypatch)
    produce.transaction(restore.target, [(0, b"k", b"foreign", TIME_MS, [])], end)
    report = restore.try_run()
    found = [one.value for one in stored(restore.bootstrap, restore.target)]
    if end == "abort":
        assert (report.status, found) == ("done", [b"0", b"1", b"2"])
        return
    code = "restore.target" if end == "commit" else "restore.not_alone"
    assert report.error is not None and report.error["code"] == code
    assert words in report.error["message"]
    assert found == ([b"foreign"] if end == "commit" else [])


def test_any_topic_is_appended_to(restore: Restore, produce: Any, tmp_path: Path, monkeypatch: Any) -> None:
    backup(tmp_path, "records")
    failing_once(restore, monkeypatch)
    produce(restore.target, [(0, b"k", b"foreign", TIME_MS, [])])
    restore.run(**{"target.must_be": "any"})
    assert [one.value for one in stored(restore.bootstrap, restore.target)] == [b"foreign", b"0", b"1", b"2"]

"""Settings that would delete records while they are restored: lifted, remembered, and set again."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.connectors.restore.target import Targets
from airflow_connect.errors import UnavailableError
from airflow_connect.kafka.admin.topic_settings import change, settings_of
from airflow_connect.kafka.admin.topics import all_names
from airflow_connect.kafka.clients.short_lived import admin_client
from airflow_connect.runtime.driver.kinds import kind_of
from tests.support.command_line import run_command
from tests.support.copies.backups import TIME_MS, record, write_file
from tests.support.copies.restore import LOCAL_SOURCE, Restore, stored
from tests.support.kafka_data import delete_topic

pytestmark = pytest.mark.integration
HOUR_MS = 3_600_000
LIFTED = {"target.retention.lifted": "true"}


def write_document(folder: Path, *topics: str, partitions: int = 1, **settings: str) -> None:
    """What a sink has written about its topics."""
    facts = {"id": "x" * 22, "partitions": partitions, "replication_factor": 1, "settings": settings, "schema_ids": {}}
    found = {"v": 1, "written_ms": TIME_MS, "topics": dict.fromkeys(topics, facts), "groups": {}, "schemas": []}
    path = folder / "topics" / "+runs" / "sink" / "20261127T000001-aaaaaa.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(found))


@pytest.fixture
def restore(kafka: Any, tmp_path: Path, unique_name: str) -> Restore:
    """A restore of a directory with two old records."""
    write_file(tmp_path / "topics", [record(0), record(1)])
    config = {"connector.class": LOCAL_SOURCE, "store.url": str(tmp_path), "format.class": "ParquetFormat"}
    return Restore(kafka.bootstrap, "t", unique_name, config)


def settings(restore: Restore, topic: str = "") -> dict[str, str]:
    return settings_of(admin_client({"bootstrap.servers": restore.bootstrap}), [topic or restore.target])[
        topic or restore.target
    ]


def command(restore: Restore, folder: Path, *more: str, **overrides: str) -> tuple[int, dict[str, Any]]:
    spec = restore.spec(**overrides)
    files = [folder / "worker.json", folder / "restore.json"]
    for path, content in zip(files, (spec.worker, spec.connector), strict=True):
        path.write_text(json.dumps(dict(content)))
    done = run_command("restore", "settings", *files, "--json", *more)
    return done.exit_code, done.envelope


def test_retention_is_lifted_and_set_again(restore: Restore, make_topic: Any, tmp_path: Path) -> None:
    before = {"retention.ms": str(HOUR_MS), "cleanup.policy": "compact,delete"}
    restore.target = make_topic(1, before)
    plan = kind_of(restore.spec()).plan().notes
    assert [note for note in plan if note.startswith("A run would be refused:") and "target.retention.lifted" in note]
    plan = kind_of(restore.spec(**LIFTED)).plan().notes
    assert f"A run would lift what deletes records of {restore.target}." in plan
    assert settings(restore)["retention.ms"] == str(HOUR_MS)

    report = restore.run(**LIFTED)

    assert len(stored(restore.bootstrap, restore.target)) == 2
    now = settings(restore)
    assert (now["retention.ms"], now["cleanup.policy"], now["retention.bytes"]) == ("-1", "delete", "-1")
    told = f"{restore.target} keeps everything while it is restored. It had"
    (note,) = (note for note in report.notes if note.startswith(told))
    assert f"retention.ms={HOUR_MS}, cleanup.policy=compact,delete" in note
    restore.run(**LIFTED)  # What was lifted is not remembered as what the topic had.

    code, found = command(restore, tmp_path)
    assert (code, settings(restore)["retention.ms"]) == (1, "-1")
    assert "Kafka would delete 2 restored records soon" in found["error"]["message"]
    code, found = command(restore, tmp_path, "--dry-run", **{"accept.loss": "retention"})
    assert (code, settings(restore)["retention.ms"]) == (0, "-1")
    assert found["result"]["connectors"][0]["topics"][0]["isDone"] is False
    for _ in range(2):
        code, found = command(restore, tmp_path, **{"accept.loss": "retention"})
        assert (code, found["result"]["connectors"][0]["topics"][0]["isDone"]) == (0, True)
    now = settings(restore)
    assert {name: now[name] for name in before} == before


def test_created_topic_gets_the_settings_of_its_original(restore: Restore, tmp_path: Path) -> None:
    old = int(time.time() * 1000) - TIME_MS + HOUR_MS
    write_document(tmp_path, "t", **{"retention.ms": str(old), "cleanup.policy": "compact"})
    report = restore.run()
    assert settings(restore)["retention.ms"] == "-1"
    wanted = f"`airflow-connect restore settings` sets retention.ms={old}, cleanup.policy=compact when all is restored."
    assert [note for note in report.notes if note.endswith(wanted)]
    code, _ = command(restore, tmp_path)
    now = settings(restore)
    assert (code, now["retention.ms"], now["cleanup.policy"]) == (0, str(old), "compact")


def test_topic_that_was_recreated_does_not_get_them(restore: Restore, make_topic: Any, tmp_path: Path) -> None:
    restore.target = make_topic(1, {"retention.ms": str(HOUR_MS)})
    restore.run(**LIFTED)
    delete_topic(restore.bootstrap, restore.target)
    code, found = command(restore, tmp_path, **{"accept.loss": "retention"})
    assert (code != 0, "does not exist any more" in found["error"]["message"]) == (True, True)


def test_topics_without_a_record_are_created_like_their_originals(restore: Restore, tmp_path: Path) -> None:
    empty = f"{restore.target}-empty"
    write_document(tmp_path, "t", "idle", "other", partitions=3, **{"max.message.bytes": "2000000"})
    config = {"topics": "t,idle", "topic.rename": f"t:{restore.target},idle:{empty}"}
    plan = kind_of(restore.spec(**config)).plan().notes
    assert f"A run would create 2 topics: {restore.target}, {empty}." in plan
    report = restore.run(**config)
    assert settings(restore, empty)["max.message.bytes"] == "2000000"
    assert [note for note in report.notes if f"Created {empty} with 3 partitions" in note and "no record of it" in note]
    assert "other" not in all_names(admin_client({"bootstrap.servers": restore.bootstrap}))
    assert restore.run(**config).records == 0


def test_smaller_limit_of_a_record_is_told(restore: Restore, make_topic: Any, tmp_path: Path) -> None:
    write_document(tmp_path, "t", **{"max.message.bytes": "9000000"})
    restore.target = make_topic(1, {"retention.ms": "-1"})
    report = restore.run()
    told = f"{restore.target} has max.message.bytes=1048588, and t had 9000000 when it was backed up"
    assert [note for note in report.notes if note.startswith(told)]


def test_settings_of_several_runs_are_remembered(restore: Restore, make_topic: Any, tmp_path: Path) -> None:
    restore.target = make_topic(1, {"retention.ms": str(HOUR_MS), "cleanup.policy": "compact,delete"})
    restore.run(**LIFTED)
    change(admin_client({"bootstrap.servers": restore.bootstrap}), restore.target, {"retention.ms": str(2 * HOUR_MS)})
    write_file(tmp_path / "topics", [record(2)])
    restore.run(**LIFTED)
    code, _ = command(restore, tmp_path, **{"accept.loss": "retention"})
    now = settings(restore)
    assert (code, now["retention.ms"], now["cleanup.policy"]) == (0, str(2 * HOUR_MS), "compact,delete")


def test_topic_of_a_run_that_failed_after_creating_it_gets_its_settings(
    restore: Restore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = int(time.time() * 1000) - TIME_MS + HOUR_MS
    write_document(tmp_path, "t", **{"retention.ms": str(old), "cleanup.policy": "compact"})
    create = Targets.create

    def create_then_fail(self: Targets, missing: Any) -> list[str]:
        create(self, missing)
        raise UnavailableError("Kafka does not answer.")

    monkeypatch.setattr(Targets, "create", create_then_fail)
    assert restore.try_run().status == "failed"
    monkeypatch.undo()
    report = restore.run()
    assert [note for note in report.notes if f"sets retention.ms={old}, cleanup.policy=compact when" in note]
    code, _ = command(restore, tmp_path)
    now = settings(restore)
    assert (code, now["retention.ms"], now["cleanup.policy"]) == (0, str(old), "compact")


def test_created_topic_takes_old_records_and_leaves_out_settings_that_the_cluster_does_not_have(
    restore: Restore, tmp_path: Path
) -> None:
    """The limit fits records that were new when they were written; the other setting is of another kind of cluster."""
    limit = "message.timestamp.before.max.ms"
    write_document(tmp_path, "t", **{limit: "86400000", "vendor.value.check": "true"})
    report = restore.run()
    assert report.records == 2
    told = "The cluster does not have these settings of original topics: vendor.value.check."
    assert told in report.notes
    assert settings(restore)[limit] == str((1 << 63) - 1)
    assert command(restore, tmp_path, **{"accept.loss": "retention"})[0] == 0
    assert settings(restore)[limit] == "86400000"


def test_topic_whose_files_have_another_format_is_not_taken_for_an_empty_one(restore: Restore, tmp_path: Path) -> None:
    write_document(tmp_path, "t", "idle")
    for chosen in ("t", ""):
        report = restore.try_run(**{"format.class": "AvroFormat", "topics": chosen})
        assert report.status == "failed" and report.error is not None
        assert report.error["code"] == "restore.nothing"
        assert "holds no file of topic t. It has 1 file with other names." in report.error["message"]
    assert restore.target not in all_names(admin_client({"bootstrap.servers": restore.bootstrap}))

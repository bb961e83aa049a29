"""What a restore refuses before it writes anything, and what it leaves out."""

from __future__ import annotations

import base64
import os
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from airflow_connect.connectors.restore.target import Targets
from airflow_connect.kafka.admin.topics import all_names
from airflow_connect.kafka.clients.short_lived import admin_client
from airflow_connect.runtime.driver.kinds import kind_of
from tests.integration.connectors.files.s3.objects import PARQUET_FORMAT
from tests.support.copies.backups import TIME_MS, encoded, record, write_file
from tests.support.copies.restore import LOCAL_SOURCE, Restore, restore_of, stored
from tests.support.kafka_data import delete_topic
from tests.support.servers.s3_interceptor import S3Interceptor

pytestmark = pytest.mark.integration
DAY_MS = 86_400_000


@pytest.fixture
def restore(kafka: Any, tmp_path: Path, unique_name: str) -> Restore:
    """A restore of a directory."""
    config = {"connector.class": LOCAL_SOURCE, "store.url": str(tmp_path), "format.class": "ParquetFormat"}
    return Restore(kafka.bootstrap, "t", unique_name, config)


def backup(folder: Path, *numbers: int, partition: int = 0, **more: Any) -> Path:
    records = [record(n, partition=partition, **more) for n in numbers]
    return write_file(folder / "topics", records)


def error(restore: Restore, **overrides: str) -> tuple[str, str]:
    report = restore.try_run(**overrides)
    assert report.status == "failed" and report.error is not None
    return report.error["code"], report.error["message"]


def test_topic_that_is_not_empty_is_refused(restore: Restore, make_topic: Any, produce: Any, tmp_path: Path) -> None:
    backup(tmp_path, 0, 1)
    restore.target = make_topic(1)
    produce(restore.target, [(0, b"k", b"other", TIME_MS, [])])
    code, message = error(restore)
    assert code == "restore.target"
    assert f"{restore.target} is not empty" in message and f"{restore.target}-0 [0, 1)" in message
    assert restore.offsets() == {}
    restore.run(**{"target.must_be": "any"})
    assert [one.value for one in stored(restore.bootstrap, restore.target)] == [b"other", b"v", b"v"]


def test_all_findings_come_at_once_and_nothing_is_created(restore: Restore, make_topic: Any, tmp_path: Path) -> None:
    backup(tmp_path, 0, partition=2)
    write_file(tmp_path / "topics", [record(0, topic="new")])
    settings = {"message.timestamp.type": "LogAppendTime", "retention.ms": str(DAY_MS)}
    restore.target = make_topic(1, settings)
    code, message = error(restore, **{"topics": "t,new", "target.must_be": "resume"})
    assert code == "restore.target"
    for expected in ("4 findings", "has 1 partition, and the backup 3", "LogAppendTime", "nothing of t-2", "of new-0"):
        assert expected in message
    assert "new" not in all_names(admin_client({"bootstrap.servers": restore.bootstrap}))


def test_records_that_kafka_would_delete_are_refused_unless_accepted(
    restore: Restore, make_topic: Any, tmp_path: Path
) -> None:
    backup(tmp_path, 0, 1)
    restore.target = make_topic(1, {"retention.ms": str(DAY_MS)})
    code, message = error(restore)
    assert (code, f"retention.ms={DAY_MS}" in message) == ("restore.target", True)
    report = restore.run(**{"accept.loss": "retention"})
    assert "Records that are older than their topic keeps them, and that Kafka deletes soon: 2." in report.notes


def test_timestamps_that_the_topic_refuses(restore: Restore, make_topic: Any, tmp_path: Path) -> None:
    backup(tmp_path, 0)
    restore.target = make_topic(1, {"message.timestamp.before.max.ms": str(DAY_MS)})
    assert f"message.timestamp.before.max.ms={DAY_MS}" in error(restore)[1]


@pytest.mark.parametrize("stamp", [0, -1])
def test_timestamp_that_cannot_be_written_leaves_its_partition_out(
    restore: Restore, tmp_path: Path, stamp: int
) -> None:
    backup(tmp_path, 0, 1, partition=0)
    write_file(tmp_path / "topics", [record(0, partition=1), record(1, partition=1, timestamp=stamp)])
    report = restore.try_run()
    assert report.status == "failed" and report.error is not None
    assert f"t-1@1 of the backup has the timestamp {stamp}" in str(report.error["message"])
    assert [one.partition for one in stored(restore.bootstrap, restore.target)] == [0, 0, 1]
    report = restore.run(**{"accept.loss": "timestamp"})
    assert report.records == 1
    assert any("accept.loss=timestamp): 1" in note for note in report.notes)


def test_header_name_with_a_zero_byte_leaves_its_partition_out(restore: Restore, tmp_path: Path) -> None:
    backup(tmp_path, 0, headers=[{"key": b"a\0b", "value": None}])
    code, message = error(restore)
    assert "t-0@0 of the backup has a header whose name contains a zero byte" in message
    assert code


def test_topic_that_was_recreated_or_deleted_is_refused(restore: Restore, make_topic: Any, tmp_path: Path) -> None:
    backup(tmp_path, 0)
    restore.run()
    backup(tmp_path, 1)
    delete_topic(restore.bootstrap, restore.target)
    assert "does not exist any more" in error(restore)[1]
    restore.config["topic.rename"] = f"t:{make_topic(1)}"
    assert "were restored to" in error(restore)[1]


def test_changed_file_fails_its_partition_and_no_other(restore: Restore, tmp_path: Path) -> None:
    backup(tmp_path, 0, partition=0)
    path = backup(tmp_path, 0, partition=1)
    path.write_bytes(path.read_bytes()[:-9])
    (tmp_path / "topics" / "t" / "notes.txt").write_text("foreign")
    report = restore.try_run()
    assert report.status == "failed" and report.error is not None
    assert "cannot be read" in str(report.error["message"])
    assert [one.partition for one in stored(restore.bootstrap, restore.target)] == [0]


def test_damaged_later_file_leaves_its_partition_out(restore: Restore, tmp_path: Path) -> None:
    backup(tmp_path, 0, partition=0)
    backup(tmp_path, 0, partition=1)
    path = backup(tmp_path, 1, 2, partition=1)
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    (tmp_path / "topics" / "t" / "notes.txt").write_text("foreign")
    report = restore.try_run()
    assert report.status == "failed" and report.error is not None
    assert path.name in str(report.error["message"])
    assert any("notes.txt" in note for note in report.notes)
    assert [one.partition for one in stored(restore.bootstrap, restore.target)] == [0, 1]
    path.write_bytes(whole)
    assert restore.run().records == 2


def test_nothing_to_restore_is_an_error(restore: Restore, tmp_path: Path) -> None:
    (tmp_path / "topics").mkdir()
    code, message = error(restore)
    assert code == "restore.nothing"
    assert f"{tmp_path}/topics holds no file of topic t" in message


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"transforms": "r", "transforms.r.type": "org.apache.kafka.connect.transforms.RegexRouter",
          "transforms.r.regex": "a", "transforms.r.replacement": "b"}, "topic.rename"),
        ({"value.converter": "org.apache.kafka.connect.json.JsonConverter"}, "change the bytes"),
    ],
    ids=["transforms", "converter"],
)  # fmt: skip
def test_what_would_change_records_is_refused(
    restore: Restore, tmp_path: Path, change: dict[str, str], words: str
) -> None:
    backup(tmp_path, 0)
    guessed = restore.try_run(**change)
    assert guessed.error is not None and guessed.error["code"] == "restore.whole_records"
    report = restore.try_run(**change, **{"store.kafka.records": "true"})
    assert report.status == "failed" and report.error is not None
    assert words in f"{report.error['message']} {report.error['suggestion']}"
    code = {"transforms": "restore.transforms", "value.converter": "restore.converter"}[next(iter(change))]
    assert report.error["code"] == code
    spec = restore.spec(**change, **{"store.kafka.records": "true"})
    found = kind_of(spec).findings()
    assert [(one["key"], one["level"]) for one in found if one["level"] == "error"] == [(next(iter(change)), "error")]


def test_damaged_files_of_whole_records_are_not_passed_over(restore: Restore, tmp_path: Path) -> None:
    backup(tmp_path, 0)
    assert error(restore, **{"behavior.on.error": "log"})[0] == "restore.on_error"


def test_customers_key_is_sent_with_every_read(
    kafka: Any, s3: Any, make_topic: Any, produce: Any, make_sink: Any
) -> None:
    topic = make_topic(1)
    produce(topic, [(0, b"k", b"v", TIME_MS, [])])
    sink = make_sink(topic, **{"store.kafka.records": "true", "flush.size": "10", "format.class": PARQUET_FORMAT})
    sink.run()
    seen: list[set[str]] = []
    forward = S3Interceptor(upstream=s3.endpoint_url)

    def keep(request: Any, ask: Any) -> None:
        if request.method == "GET" and request.path.endswith((".parquet", ".json")):
            prefix = "x-amz-server-side-encryption-customer-"
            seen.append({n.removeprefix(prefix) for n in map(str.lower, request.headers) if n.startswith(prefix)})

    forward.rules.append(keep)
    key = base64.b64encode(b"k" * 32).decode()
    with forward:
        # The server of the tests does not know such keys, and may refuse them.
        restore_of(sink, f"{topic}-restored", **{"store.url": forward.url, "s3.sse.customer.key": key}).try_run()
    assert seen and all(names == {"algorithm", "key", "key-md5"} for names in seen)


def test_plan_tells_what_is_left_and_changes_nothing(restore: Restore, tmp_path: Path) -> None:
    backup(tmp_path, 0, 1)
    backup(tmp_path, 0, partition=1)
    notes = kind_of(restore.spec()).plan().notes
    assert any(note.startswith("To restore: 2 files of 2 partitions") and "t-0 from offset 0" in note for note in notes)
    assert restore.target not in all_names(admin_client({"bootstrap.servers": restore.bootstrap}))
    assert restore.offsets() == {}
    restore.run()
    assert any(note.startswith("To restore: 0 files") for note in kind_of(restore.spec()).plan().notes)


def test_names_that_a_listing_leaves_out_are_told(restore: Restore, tmp_path: Path) -> None:
    backup(tmp_path, 0)
    folder = tmp_path / "topics" / "t" / "partition=0"
    (folder / "t+0+0000000009.parquet").symlink_to("nowhere")
    (tmp_path / "topics" / "elsewhere").symlink_to(tmp_path)
    report = restore.run(**{"topic.rename": f"t:{restore.target},u:{restore.target}-u"})
    assert any("1 directory is a link" in note for note in report.notes)
    assert any("t+0+0000000009.parquet" in note and "nothing is read there" in note for note in report.notes)
    assert any("topic.rename names topics" in note and ": u." in note for note in report.notes)


def test_object_that_changes_during_a_run_is_an_error_with_both_etags(
    kafka: Any, make_topic: Any, produce: Any, make_sink: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow_connect.connectors.restore.task import RestoreTask

    topic = make_topic(1)
    produce(topic, [(0, b"k", b"v", TIME_MS, [])])
    sink = make_sink(topic, **{"store.kafka.records": "true", "flush.size": "10", "format.class": PARQUET_FORMAT})
    sink.run()
    client, (key,) = sink.s3.client(), [key for key in sink.keys() if "+runs" not in key]  # noqa: SIM118 (no dict)
    before = client.head_object(Bucket=sink.bucket, Key=key)["ETag"].strip('"')
    start = RestoreTask.start

    def change_then_start(self: RestoreTask, config: Any) -> None:
        client.put_object(Bucket=sink.bucket, Key=key, Body=b"other")
        start(self, config)

    monkeypatch.setattr(RestoreTask, "start", change_then_start)
    report = restore_of(sink, f"{topic}-restored").try_run()
    after = client.head_object(Bucket=sink.bucket, Key=key)["ETag"].strip('"')
    assert report.status == "failed" and report.error is not None
    assert f"ETag {before}" in str(report.error["message"]) and f"ETag {after}" in str(report.error["message"])


def test_topic_that_is_gone_after_everything_was_restored_is_refused(
    restore: Restore, make_topic: Any, tmp_path: Path
) -> None:
    backup(tmp_path, 0)
    restore.run()
    assert restore.try_run().status == "empty"
    former = restore.config.get("topic.rename", "")
    restore.config["topic.rename"] = f"t:{make_topic(1)}"
    assert f"were restored to {restore.target} before" in error(restore)[1]
    restore.config["topic.rename"] = former or f"t:{restore.target}"
    delete_topic(restore.bootstrap, restore.target)
    assert error(restore)[0] == "restore.target"
    assert "does not exist any more" in error(restore)[1]
    notes = kind_of(restore.spec()).plan().notes
    assert [note for note in notes if note.startswith("A run would be refused:") and "does not exist any more" in note]


def test_topic_that_is_deleted_during_a_run_is_an_error(
    restore: Restore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow_connect.connectors.restore.task import RestoreTask

    backup(tmp_path, 0, 1)
    stop = RestoreTask.stop

    def delete_then_stop(self: RestoreTask) -> None:
        stop(self)
        delete_topic(restore.bootstrap, restore.target)

    monkeypatch.setattr(RestoreTask, "stop", delete_then_stop)
    code, message = error(restore)
    assert code == "restore.other_topic"
    assert f"{restore.target} does not exist any more" in message


def test_file_that_was_replaced_in_its_middle_by_an_older_one_is_refused(restore: Restore, tmp_path: Path) -> None:
    path = backup(tmp_path, *range(10))
    restore.run(**{"run.max.records": "3"})
    assert restore.offsets()[0]["file"] == f"t/partition=0/{path.name}"
    path.write_bytes(encoded([record(n, b"other") for n in range(10)]))
    os.utime(path, (1, 1))
    assert error(restore)[0] == "restore.changed"


def test_time_of_the_brokers_is_told_where_it_is_accepted(restore: Restore, make_topic: Any, tmp_path: Path) -> None:
    backup(tmp_path, 0)
    restore.target = make_topic(1, {"message.timestamp.type": "LogAppendTime"})
    report = restore.run(**{"accept.loss": "timestamp"})
    told = f"{restore.target} has message.timestamp.type=LogAppendTime: its records get the time of this run."
    assert told in report.notes


@pytest.mark.parametrize("columnar", [True, False])
def test_timestamp_that_the_topic_does_not_take_leaves_its_partition_out(
    restore: Restore, tmp_path: Path, *, columnar: bool
) -> None:
    later = int(time.time() * 1000) + DAY_MS  # Kafka 4 takes an hour, former releases took any time
    for partition in range(2):
        first = record(0, partition=partition)
        write_file(tmp_path / "topics", [first, record(1, partition=partition, timestamp=later + partition - 1)])
    write_file(tmp_path / "topics", [record(0, partition=2), record(1, partition=2)])
    restore.config["tasks.max"] = "1"
    report = restore.try_run(columnar=columnar)
    assert report.status == "failed" and report.error is not None
    assert f"t-0@1 of the backup has the timestamp {later - 1}, which {restore.target} does not take" in str(
        report.error["message"]
    )
    assert [one.partition for one in stored(restore.bootstrap, restore.target)] == [0, 1, 2, 2]
    report = restore.run(columnar=columnar, **{"accept.loss": "timestamp"})
    assert any("accept.loss=timestamp): 2" in note for note in report.notes)
    assert len(stored(restore.bootstrap, restore.target)) == 6


@pytest.mark.parametrize("columnar", [True, False])
def test_record_without_a_key_leaves_its_partition_out_of_a_compacted_topic(
    restore: Restore, make_topic: Any, tmp_path: Path, *, columnar: bool
) -> None:
    write_file(tmp_path / "topics", [record(0), record(1, key=None), record(2)])
    backup(tmp_path, 0, partition=1)
    restore.target = make_topic(2, {"cleanup.policy": "compact"})
    restore.config["tasks.max"] = "1"
    report = restore.try_run(columnar=columnar)
    assert report.status == "failed" and report.error is not None
    assert f"t-0@1 of the backup has no key, and {restore.target} is compacted" in str(report.error["message"])
    assert [one.partition for one in stored(restore.bootstrap, restore.target)] == [0, 1]
    restore.run(columnar=columnar, **{"target.retention.lifted": "true"})
    assert len(stored(restore.bootstrap, restore.target)) == 4


def test_topic_that_a_client_creates_at_the_same_time_is_checked(
    restore: Restore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup(tmp_path, 0)
    create = Targets.create

    def come_second(self: Targets, missing: Any) -> list[str]:
        admin = AdminClient({"bootstrap.servers": restore.bootstrap})
        made = admin.create_topics([NewTopic(restore.target, 1, 1, config={"retention.ms": str(DAY_MS)})])
        made[restore.target].result()
        return create(self, missing)

    monkeypatch.setattr(Targets, "create", come_second)
    code, message = error(restore)
    assert (code, f"retention.ms={DAY_MS}" in message) == ("restore.target", True)
    assert restore.offsets() == {}

"""Consumer groups go on in a restored topic where they were in the original: `airflow-connect restore groups`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.integration.connectors.files.s3.objects import PARQUET_FORMAT
from tests.support.command_line import run_command
from tests.support.copies.backups import TIME_MS
from tests.support.copies.restore import Restore, restore_of

pytestmark = pytest.mark.integration


def commit(bootstrap: str, group: str, topic: str, partition: int, offset: int, metadata: str = "") -> None:
    client = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    client.commit(offsets=[TopicPartition(topic, partition, offset, metadata)], asynchronous=False)
    client.close()


def committed(bootstrap: str, group: str, topic: str, partition: int) -> tuple[int, str]:
    client = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    (found,) = client.committed([TopicPartition(topic, partition)], timeout=30)
    client.close()
    return found.offset, found.metadata or ""


def next_values(bootstrap: str, group: str, topic: str, partition: int, count: int) -> list[bytes | None]:
    """What a consumer of the group reads next in a partition."""
    client = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False, "auto.offset.reset": "error"}
    )
    client.assign([TopicPartition(topic, partition)])
    found = client.consume(count, timeout=30)
    client.close()
    return [message.value() for message in found]


class Groups:
    """The command for one restore."""

    def __init__(self, restore: Restore, folder: Path) -> None:
        spec = restore.spec()
        self._files = [folder / "worker.json", folder / "restore.json"]
        for path, content in zip(self._files, (spec.worker, spec.connector), strict=True):
            path.write_text(json.dumps(dict(content)))

    def run(self, *more: str) -> tuple[int, dict[str, Any]]:
        """Exit code and result."""
        done = run_command("restore", "groups", *self._files, "--json", *more)
        return done.exit_code, done.envelope


@pytest.fixture
def copied(make_topic: Any, produce: Any, make_sink: Any) -> Any:
    """A topic with gaps in its offsets, and the sink that backs it up."""
    topic = make_topic(2)
    for number in range(4):
        produce.transaction(topic, [(0, b"k", b"v%d" % number, TIME_MS, [])], "commit")
        produce.transaction(topic, [(0, b"k", b"aborted", TIME_MS, [])], "abort")
    produce(topic, [(1, None, b"w%d" % number, TIME_MS, []) for number in range(3)])
    return make_sink(topic, **{"store.kafka.records": "true", "format.class": PARQUET_FORMAT, "flush.size": "2"})


def test_groups_go_on_where_they_were(kafka: Any, copied: Any, tmp_path: Path) -> None:
    topic, bootstrap = copied.topic, kafka.bootstrap
    target, group, other = f"{topic}-restored", f"{topic}-group", f"{topic}-other"
    commit(bootstrap, group, topic, 0, 8, "so far")  # the next record is v2
    commit(bootstrap, group, topic, 1, 3)
    commit(bootstrap, other, topic, 1, 1)
    copied.run()
    restore = restore_of(copied, target)
    restore.run()
    groups = Groups(restore, tmp_path)

    code, dry = groups.run("--dry-run")
    assert (code, committed(bootstrap, group, target, 0)[0] < 0) == (0, True)
    code, found = groups.run("--groups", f"{topic}-g.*")

    assert code == 0
    offsets = found["result"]["connectors"][0]["offsets"]
    assert [(one["group"], one["partition"], one["isDone"]) for one in offsets] == [(group, 0, True), (group, 1, True)]
    assert next_values(bootstrap, group, target, 0, 2) == [b"v2", b"v3"]
    assert committed(bootstrap, group, target, 0)[1] == "so far"
    assert committed(bootstrap, group, target, 1)[0] == 3
    assert committed(bootstrap, other, target, 1)[0] < 0
    assert len(dry["result"]["connectors"][0]["offsets"]) == 3
    assert groups.run()[0] == 0  # again, with the other group
    assert next_values(bootstrap, other, target, 1, 2) == [b"w1", b"w2"]


def test_offset_ahead_of_what_is_restored_ends_there(kafka: Any, copied: Any, produce: Any, tmp_path: Path) -> None:
    topic, group = copied.topic, f"{copied.topic}-group"
    target = f"{topic}-restored"
    copied.run()
    restore = restore_of(copied, target)
    restore.run()
    produce(topic, [(1, None, b"later", TIME_MS, [])])
    commit(kafka.bootstrap, group, topic, 1, 4)
    copied.run()  # The newest document, of records that are not restored.

    code, found = Groups(restore, tmp_path).run()

    (offset,) = found["result"]["connectors"][0]["offsets"]
    assert (code, offset["newOffset"], offset["note"]) == (0, 3, "it was 1 offsets ahead of what is restored")
    assert committed(kafka.bootstrap, group, target, 1)[0] == 3
    restore.run()
    assert next_values(kafka.bootstrap, group, target, 1, 1) == [b"later"]


def test_groups_of_a_part_of_the_backup(kafka: Any, copied: Any, tmp_path: Path) -> None:
    topic, before, after = copied.topic, f"{copied.topic}-before", f"{copied.topic}-after"
    commit(kafka.bootstrap, before, topic, 1, 0)
    commit(kafka.bootstrap, after, topic, 1, 2)
    copied.run()
    restore = restore_of(copied, f"{topic}-restored", **{"restore.from.offsets": f"{topic}:1:1"})
    restore.run()

    code, _ = Groups(restore, tmp_path).run()

    assert code == 0
    assert next_values(kafka.bootstrap, before, restore.target, 1, 2) == [b"w1", b"w2"]
    assert next_values(kafka.bootstrap, after, restore.target, 1, 1) == [b"w2"]


def test_group_that_has_other_offsets_is_kept_unless_allowed(kafka: Any, copied: Any, tmp_path: Path) -> None:
    topic, group = copied.topic, f"{copied.topic}-group"
    target = f"{topic}-restored"
    commit(kafka.bootstrap, group, topic, 1, 2)
    copied.run()
    restore = restore_of(copied, target)
    restore.run()
    commit(kafka.bootstrap, group, target, 1, 1)
    groups = Groups(restore, tmp_path)

    code, found = groups.run()

    assert code != 0
    assert f"{target}-1 1 (translated: 2)" in found["error"]["message"]
    assert committed(kafka.bootstrap, group, target, 1)[0] == 1
    assert groups.run("--overwrite")[0] == 0
    assert committed(kafka.bootstrap, group, target, 1)[0] == 2


def test_foreign_record_in_the_topic_is_an_error(kafka: Any, copied: Any, produce: Any, tmp_path: Path) -> None:
    topic, target = copied.topic, f"{copied.topic}-restored"
    commit(kafka.bootstrap, f"{topic}-group", topic, 1, 3)
    copied.run()
    restore = restore_of(copied, target)
    restore.run()
    produce(target, [(1, None, b"foreign", TIME_MS, [])])

    code, found = Groups(restore, tmp_path).run()

    assert code != 0
    assert f"{target}-1@4 is not in the backup" in found["error"]["message"]
    assert committed(kafka.bootstrap, f"{topic}-group", target, 1)[0] < 0


def test_backup_without_documents_and_other_connectors_are_errors(copied: Any, tmp_path: Path) -> None:
    copied.run()
    client = copied.s3.client()
    (key,) = (key for key in copied.keys() if "+runs" in key)  # noqa: SIM118 (a sink is no dict)
    client.delete_object(Bucket=copied.bucket, Key=key)
    restore = restore_of(copied, f"{copied.topic}-restored")

    code, found = Groups(restore, tmp_path).run()

    assert (code, found["error"]["code"]) == (2, "restore.no_document")
    restore.config["connector.class"] = "FileStreamSource"
    restore.config |= {"file": "x", "topic": "t"}
    code, found = Groups(restore, tmp_path).run()
    assert (code, found["error"]["code"]) == (2, "restore.no_restore")


def test_each_topic_has_the_newest_document_of_its_own_sink(
    kafka: Any, copied: Any, make_topic: Any, produce: Any, make_sink: Any, tmp_path: Path
) -> None:
    """Sinks of several topics write to one place by default, and the last one to run knows nothing of the others."""
    topic, other = copied.topic, make_topic(1)
    produce(other, [(0, None, b"x", TIME_MS, [])])
    commit(kafka.bootstrap, f"{topic}-group", topic, 1, 2)
    copied.run()
    sink = make_sink(other, **{"store.kafka.records": "true", "format.class": PARQUET_FORMAT, "flush.size": "2"})
    sink.run()
    restore = restore_of(copied, f"{topic}-restored")
    restore.run()
    groups = Groups(restore, tmp_path)

    code, found = groups.run()

    assert (code, committed(kafka.bootstrap, f"{topic}-group", restore.target, 1)[0]) == (0, 2)
    (one,) = found["result"]["connectors"]
    assert copied.connector()["name"] in one["document"] and sink.connector()["name"] not in one["document"]
    of_other = next(key for key in sink.keys() if f"+runs/{sink.connector()['name']}/" in key)  # noqa: SIM118 (no dict)
    code, found = groups.run("--document", Path(of_other).stem)
    assert (code, found["error"]["code"]) == (2, "restore.no_document")
    assert f"with offsets of consumer groups for {topic}" in found["error"]["message"]


@pytest.mark.parametrize("by_time", [True, False])
def test_equal_records_before_the_beginning_are_not_taken_for_those_of_the_topic(
    kafka: Any, make_topic: Any, produce: Any, make_sink: Any, tmp_path: Path, *, by_time: bool
) -> None:
    topic = make_topic(1)
    produce(topic, [(0, b"k", value, TIME_MS + n // 2, []) for n, value in enumerate((b"a", b"b", b"a", b"c"))])
    commit(kafka.bootstrap, f"{topic}-group", topic, 0, 2)
    sink = make_sink(topic, **{"store.kafka.records": "true", "format.class": PARQUET_FORMAT, "flush.size": "3"})
    sink.run()
    begin = {"restore.from.timestamp": str(TIME_MS + 1)} if by_time else {"restore.from.offsets": f"{topic}:0:2"}
    restore = restore_of(sink, f"{topic}-restored", **begin, **{"accept.loss": "timestamp"})
    restore.run(**{"run.max.records": "1"})
    assert restore.offsets()[0]["begin"] == 2
    restore.run()

    assert Groups(restore, tmp_path).run()[0] == 0

    assert next_values(kafka.bootstrap, f"{topic}-group", restore.target, 0, 2) == [b"a", b"c"]


def test_equal_records_that_the_topic_has_lost_are_not_taken_for_those_that_are_left(
    kafka: Any, make_topic: Any, produce: Any, make_sink: Any, tmp_path: Path
) -> None:
    topic, group = make_topic(1), f"group-{tmp_path.name}"
    produce(topic, [(0, b"k", value, TIME_MS, []) for value in (b"a", b"b", b"a", b"c")])
    commit(kafka.bootstrap, group, topic, 0, 2)
    sink = make_sink(topic, **{"store.kafka.records": "true", "format.class": PARQUET_FORMAT, "flush.size": "3"})
    sink.run()
    restore = restore_of(sink, f"{topic}-restored")
    restore.run()
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    for deleted in admin.delete_records([TopicPartition(restore.target, 0, 2)]).values():
        deleted.result()

    assert Groups(restore, tmp_path).run("--groups", group)[0] == 0

    assert next_values(kafka.bootstrap, group, restore.target, 0, 2) == [b"a", b"c"]

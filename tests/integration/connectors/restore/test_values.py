"""Files of values back into topics: what sinks without whole records have written, for each format and converter."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.kafka.admin.topics import all_names
from airflow_connect.kafka.clients.short_lived import admin_client
from airflow_connect.runtime.driver.kinds import kind_of
from tests.integration.connectors.files.s3.objects import AVRO_FORMAT, PARQUET_FORMAT
from tests.support.command_line import run_command
from tests.support.copies.backups import TIME_MS
from tests.support.copies.restore import LOCAL_SOURCE, Restore, restore_of, stored
from tests.support.kafka_data import delete_topic
from tests.support.servers.s3_interceptor import Answer, S3Interceptor, Seen, error

pytestmark = pytest.mark.integration

JSON_FORMAT = "io.confluent.connect.s3.format.json.JsonFormat"
BYTES_FORMAT = "io.confluent.connect.s3.format.bytearray.ByteArrayFormat"
JSON = "org.apache.kafka.connect.json.JsonConverter"
STRING = "org.apache.kafka.connect.storage.StringConverter"
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
PLAIN_JSON = {"value.converter": JSON, "value.converter.schemas.enable": "false"}
WITH_SCHEMAS = {"value.converter": JSON, "value.converter.schemas.enable": "true"}
SCHEMA = {
    "type": "struct",
    "optional": False,
    "fields": [
        {"field": "id", "type": "int32", "optional": False},
        {"field": "name", "type": "string", "optional": True},
        {
            "field": "at",
            "type": "int64",
            "optional": False,
            "name": "org.apache.kafka.connect.data.Timestamp",
            "version": 1,
        },
    ],
}
LOST = {"accept.loss": "timestamp,key,headers"}


def plain(n: int) -> bytes:
    return b'{"id":%d,"name":%s,"at":%d}' % (n, b"null" if n % 3 == 0 else b'"n%d"' % n, TIME_MS + n)


def with_schema(n: int) -> bytes:
    payload = json.loads(plain(n))
    return json.dumps({"schema": SCHEMA, "payload": payload}, separators=(",", ":")).encode()


CASES = {
    "json": (JSON_FORMAT, PLAIN_JSON, {}, plain),
    "json gzip": (JSON_FORMAT, PLAIN_JSON, {"s3.compression.type": "gzip"}, plain),
    "parquet": (PARQUET_FORMAT, WITH_SCHEMAS, {}, with_schema),
    "parquet snappy": (PARQUET_FORMAT, WITH_SCHEMAS, {"parquet.codec": "snappy"}, with_schema),
    "avro": (AVRO_FORMAT, WITH_SCHEMAS, {}, with_schema),
    "bytes": (BYTES_FORMAT, {"value.converter": BYTES}, {}, plain),
}


@pytest.mark.parametrize("columnar", [True, False], ids=["columns", "records"])
@pytest.mark.parametrize("case", CASES)
def test_values_come_back_in_their_partitions(
    make_topic: Any, produce: Any, make_sink: Any, case: str, *, columnar: bool
) -> None:
    form, converter, more, value = CASES[case]
    topic = make_topic(3)
    produce(topic, [(n % 2, None, value(n), TIME_MS, []) for n in range(30)])
    sink = make_sink(topic, **{"format.class": form, "flush.size": "4", **converter, **more})
    sink.run()
    restore = restore_of(sink, f"{topic}-restored", **converter, **LOST)
    if form == BYTES_FORMAT:
        restore.config["store.kafka.records"] = "false"

    report = restore.run(columnar=columnar, **{"run.max.records": "7"})
    assert 0 < report.records < 10  # a limit of two tasks
    restore.run(columnar=columnar)

    found = stored(restore.bootstrap, restore.target)
    for partition in range(2):
        values = [one.value for one in found if one.partition == partition]
        assert [as_json(one) for one in values] == [as_json(value(n)) for n in range(partition, 30, 2)]
    assert restore.run().records == 0
    produce(topic, [(1, None, value(99), TIME_MS, [])])
    sink.run()
    assert restore.run(columnar=columnar).records == 1


def as_json(value: bytes | None) -> Any:
    """A message without the names of its schema, which Parquet does not keep."""
    found = json.loads(value or b"null")
    if isinstance(found, dict) and "schema" in found:
        found["schema"].pop("name", None)
        for field in found["schema"]["fields"]:
            field.pop("default", None)
    return found


@pytest.mark.parametrize("form", [JSON_FORMAT, PARQUET_FORMAT, AVRO_FORMAT], ids=["json", "parquet", "avro"])
def test_keys_headers_and_tombstones_come_back(make_topic: Any, produce: Any, make_sink: Any, form: str) -> None:
    topic = make_topic(1)
    converter = PLAIN_JSON if form == JSON_FORMAT else WITH_SCHEMAS
    value = plain if form == JSON_FORMAT else with_schema
    records = [
        (0, b"k%d" % n, None if n == 5 else value(n), TIME_MS, [("a", b"1"), ("a", b"x%d" % n), ("b", b"")])
        for n in range(9)
    ]
    produce(topic, records)
    parts = {
        "store.kafka.keys": "true", "store.kafka.headers": "true", "keys.format.class": form,
        "headers.format.class": form, "key.converter": STRING, "header.converter": STRING,
        "behavior.on.null.values": "write",
    }  # fmt: skip
    sink = make_sink(topic, **{"format.class": form, "flush.size": "4", **converter, **parts})
    sink.run()
    same = {"key.converter": STRING, "header.converter": STRING, **converter}
    restore = restore_of(sink, f"{topic}-restored", **same, **{"accept.loss": "timestamp"})

    report = restore.try_run()
    assert report.error is not None and report.error["code"] == "restore.losses"
    assert "order" in str(report.error["message"]) and "accept.loss=header_types,order,timestamp" in str(report.error)
    restore.config["accept.loss"] = "timestamp,header_types,order"
    restore.run(**{"run.max.records": "3"})
    restore.run()

    found = {one.key: one for one in stored(restore.bootstrap, restore.target)}
    assert sorted(found) == [b"k%d" % n for n in range(9)]  # type: ignore[type-var]
    for n in range(9):
        one = found[b"k%d" % n]
        assert (one.value is None) == (n == 5)
        assert one.value is None or as_json(one.value) == as_json(value(n))
        assert one.headers == ((b"a", b"1"), (b"a", b"x%d" % n), (b"b", b""))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A partition of JSON lines in three files."""
    path = tmp_path / "topics" / "t" / "partition=0"
    path.mkdir(parents=True)
    for first in (0, 5, 10):
        lines = [b'{"n":%d}\n' % n for n in range(first, first + 5)]
        (path / f"t+0+{first:010d}.json").write_bytes(b"".join(lines))
    return path


@pytest.fixture
def restore(kafka: Any, folder: Path, unique_name: str) -> Restore:
    config = {"connector.class": LOCAL_SOURCE, "store.url": f"file://{folder.parents[2]}", "format.class": JSON_FORMAT}
    return Restore(kafka.bootstrap, "t", unique_name, {**config, **PLAIN_JSON, **LOST})


def numbers(restore: Restore) -> list[int]:
    return [json.loads(one.value or b"{}")["n"] for one in stored(restore.bootstrap, restore.target)]


def failure(restore: Restore, **overrides: str) -> dict[str, Any]:
    report = restore.try_run(**overrides)
    assert report.status == "failed" and report.error is not None
    return dict(report.error)


def text_of(error: dict[str, Any]) -> str:
    return f"{error['message']} {error['suggestion']}"


def test_losses_must_be_accepted_by_their_names(restore: Restore) -> None:
    restore.config["accept.loss"] = ""
    error = failure(restore)
    assert error["code"] == "restore.losses"
    assert error["suggestion"].startswith("Set accept.loss=headers,key,timestamp to restore them nevertheless.")
    report = restore.run(**LOST)
    told = "What accept.loss allows to be lost: headers: records have no headers; key: keys become null; timestamp:"
    assert [note for note in report.notes if note.startswith(told)]


def test_damaged_line_leaves_out_what_follows_and_an_error_is_told(restore: Restore, folder: Path) -> None:
    damaged = folder / "t+0+0000000005.json"
    damaged.write_bytes(b'{"n":5}\n{"n":6}\n{"n"\n{"n":8}\n')
    error = failure(restore)
    assert f"{damaged} from record 2 on" in text_of(error) and "cannot be read" in text_of(error)
    assert numbers(restore) == [0, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("policy", ["ignore", "log"])
def test_damaged_file_can_be_left_out(restore: Restore, folder: Path, policy: str) -> None:
    damaged = folder / "t+0+0000000005.json"
    damaged.write_bytes(b'{"n":5}\n{"n":6}\n{"n"\n{"n":8}\n')
    report = restore.run(**{"behavior.on.error": policy})
    assert numbers(restore) == [0, 1, 2, 3, 4, 5, 6, 10, 11, 12, 13, 14]
    assert "Files of which the rest was left out (behavior.on.error): 1." in report.notes
    assert [note for note in report.notes if f"behavior.on.error={policy}: {damaged} from record 2 on" in note]


def test_files_that_change_or_come_late_are_refused(restore: Restore, folder: Path) -> None:
    restore.run(**{"run.max.records": "7"})
    file = folder / "t+0+0000000005.json"
    file.write_bytes(file.read_bytes() + b'{"n":9}\n')
    assert failure(restore)["code"] == "restore.changed"


def test_file_between_those_that_are_restored_is_refused(restore: Restore, folder: Path) -> None:
    restore.run()
    (folder / "t+0+0000000007.json").write_bytes(b'{"n":7}\n')
    assert failure(restore)["code"] == "restore.late_file"


def test_file_that_comes_while_a_restored_one_is_deleted_is_refused(restore: Restore, folder: Path) -> None:
    restore.run()
    (folder / "t+0+0000000000.json").unlink()
    late = folder / "t+0+0000000007.json"
    late.write_bytes(b'{"n":7}\n')
    os.utime(late, (1, 1))
    assert failure(restore)["code"] == "restore.late_file"
    late.unlink()
    (note,) = (note for note in restore.run().notes if "not there any more" in note)
    assert note.startswith("Of t-0, 1 file is not there any more that was restored.")


def test_file_that_is_gone_in_the_middle_is_an_error(restore: Restore, folder: Path) -> None:
    restore.run(**{"run.max.records": "7"})
    (folder / "t+0+0000000005.json").unlink()
    assert failure(restore)["code"] == "restore.gone"


def test_headers_or_keys_without_values_are_an_error(restore: Restore, folder: Path) -> None:
    (folder / "t+0+0000000000.headers.json").write_bytes(b'{"headers":[]}\n' * 5)
    assert failure(restore)["code"] == "restore.parts"


def test_keys_without_values_are_tombstones_in_their_directory_only(restore: Restore, folder: Path) -> None:
    for first in (0, 5, 10):
        (folder / f"t+0+{first:010d}.keys.json").write_bytes(b'"k"\n' * 5)
    tombstones = folder.parent / "tombstone"
    tombstones.mkdir()
    (tombstones / "t+0+0000000015.keys.json").write_bytes(b'"k"\n')
    same = {"accept.loss": "timestamp,headers,order", "key.converter": STRING}
    restore.run(**same)
    assert [one.value is None for one in stored(restore.bootstrap, restore.target)] == [False] * 15 + [True]
    (folder / "t+0+0000000020.keys.json").write_bytes(b'"k"\n')
    assert "t+0+0000000020.keys.json has keys or headers" in text_of(failure(restore, **same))


def test_parts_with_different_numbers_of_records_fail_before_a_record_is_written(
    restore: Restore, folder: Path
) -> None:
    for first in (0, 5, 10):
        (folder / f"t+0+{first:010d}.keys.json").write_bytes(b'"k"\n' * (4 if first == 5 else 5))
    error = failure(restore)
    assert "t+0+0000000005.keys.json has 4" in text_of(error)
    assert numbers(restore) == [0, 1, 2, 3, 4]


def test_whole_records_and_values_are_not_mixed_up(make_topic: Any, produce: Any, make_sink: Any) -> None:
    topic = make_topic(1)
    produce(topic, [(0, None, with_schema(1), TIME_MS, [])])
    whole = make_sink(topic, **{"format.class": PARQUET_FORMAT, "store.kafka.records": "true"})
    whole.run()
    error = failure(restore_of(whole, f"{topic}-1", **WITH_SCHEMAS, **LOST))
    assert error["code"] == "restore.whole_records" and "store.kafka.records=true" in error["suggestion"]
    values = make_sink(topic, **{"format.class": PARQUET_FORMAT, **WITH_SCHEMAS})
    values.config["topics.dir"] = "values"
    values.run()
    error = failure(restore_of(values, f"{topic}-2", **{"topics.dir": "values"}))
    assert error["code"] == "restore.no_backup" and "store.kafka.records=false" in error["suggestion"]


def test_plan_of_values(restore: Restore) -> None:
    notes = kind_of(restore.spec()).plan().notes
    assert "To copy: 3 files of 1 partition, 125 bytes: t-0." in notes
    assert any(note.startswith("A run would create 1 topic") for note in notes)


def test_settings_of_a_created_topic_are_set_and_groups_are_refused(
    restore: Restore, folder: Path, tmp_path: Path
) -> None:
    facts = {"id": "x" * 22, "partitions": 1, "replication_factor": 1, "schema_ids": {},
             "settings": {"retention.ms": "86400000"}}  # fmt: skip
    runs = folder.parents[1] / "+runs" / "sink"
    runs.mkdir(parents=True)
    document = {"v": 1, "written_ms": TIME_MS, "topics": {"t": facts}, "groups": {}, "schemas": []}
    (runs / "20261127T000001-aaaaaa.json").write_text(json.dumps(document))
    report = restore.run()
    assert not [note for note in report.notes if "+runs" in note]
    spec, files = restore.spec(), [tmp_path / "worker.json", tmp_path / "restore.json"]
    for path, content in zip(files, (spec.worker, spec.connector), strict=True):
        path.write_text(json.dumps(dict(content)))
    done = run_command("restore", "settings", *files, "--json")
    assert done.exit_code == 0 and done.envelope["result"]["connectors"][0]["topics"][0]["isDone"]
    done = run_command("restore", "groups", *files, "--json")
    assert "Files of values have no offsets of records" in done.envelope["error"]["message"]


def test_topic_that_is_gone_after_everything_was_restored_is_refused(restore: Restore) -> None:
    restore.run()
    assert restore.try_run().status == "empty"
    delete_topic(restore.bootstrap, restore.target)
    error = failure(restore)
    assert error["code"] == "restore.target" and "does not exist any more" in error["message"]


def test_same_record_in_two_files_of_a_directory_is_an_error(restore: Restore, folder: Path) -> None:
    (folder / "t+0+0000000003.json").write_bytes(b'{"n":3}\n{"n":4}\n')
    error = failure(restore)
    told = f"{folder}/t+0+0000000003.json begins with offset 3, and t/partition=0/t+0+0000000000.json with offset 0"
    assert f"{told} and has 5 records, so 2 records are in both." in error["message"]
    assert numbers(restore) == [0, 1, 2, 3, 4]
    error = failure(restore)  # what was restored before is compared, too
    assert "so 2 records are in both" in error["message"]
    assert numbers(restore) == [0, 1, 2, 3, 4]


def test_files_that_overlap_by_their_names_are_refused_before_anything_is_written(
    restore: Restore, folder: Path
) -> None:
    for path in list(folder.iterdir()):
        path.unlink()
    (folder / "t+0+0000000000+0000000009.json").write_bytes(b'{"n":0}\n')
    (folder / "t+0+0000000009+0000000012.json").write_bytes(b'{"n":9}\n')
    error = failure(restore)
    assert error["code"] == "restore.overlap" and "t-0@9 is in more than one file" in error["message"]
    assert restore.target not in all_names(admin_client({"bootstrap.servers": restore.bootstrap}))


def test_texts_that_contain_separators_are_told(restore: Restore, folder: Path) -> None:
    for path in list(folder.iterdir()):
        path.rename(path.with_suffix(".txt"))
    (folder / "t+0+0000000000.txt").write_bytes(b"a\nb\nc\nd\ne\nf\n")
    report = restore.run(**{"format.class": "StringFormat", "value.converter": STRING})
    assert report.records == 16
    assert [note for note in report.notes if note.endswith("were divided, or records are in both files.")]


def test_file_of_a_backup_without_a_record_is_an_error(restore: Restore, folder: Path) -> None:
    (folder / "t+0+0000000005.json").write_bytes(b"")
    assert "t+0+0000000005.json" in failure(restore)["message"]
    assert numbers(restore) == [0, 1, 2, 3, 4]
    report = restore.run(**{"behavior.on.error": "log"})
    assert [note for note in report.notes if "t+0+0000000005.json" in note and "it holds no record" in note]
    assert numbers(restore) == [0, 1, 2, 3, 4, 10, 11, 12, 13, 14]


def test_directory_that_is_a_link_is_told(restore: Restore, folder: Path, tmp_path: Path) -> None:
    (folder / "linked").symlink_to(tmp_path)
    report = restore.run()
    assert [note for note in report.notes if note.startswith("1 directory is a link, and not followed:")]


def test_offsets_that_no_file_holds_are_counted(restore: Restore, folder: Path) -> None:
    (folder / "t+0+0000000040.json").write_bytes(b'{"n":40}\n')
    (folder / "t+0+0000000005.json").unlink()
    report = restore.run(**{"run.max.records": "9"})
    assert "Offsets that no file of the backup holds, as transactions and compaction leave them: 5." in report.notes
    report = restore.run()
    assert "No file holds the offsets [15, 40) of t-0 of the backup." in report.notes
    assert numbers(restore) == [0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 40]


@pytest.mark.parametrize(("answer", "creates"), [("AccessDenied", False), ("InvalidObjectState", True)])
def test_files_that_may_not_be_read_create_no_topic(
    kafka: Any, s3: Any, make_topic: Any, produce: Any, make_sink: Any, answer: str, *, creates: bool
) -> None:
    topic = make_topic(1)
    produce(topic, [(0, None, plain(1), TIME_MS, [])])
    sink = make_sink(topic, **{"format.class": JSON_FORMAT, "flush.size": "4", **PLAIN_JSON})
    sink.run()

    def refuse(request: Seen, _: Callable[[], Answer]) -> Answer | None:
        return error(403, answer) if request.method == "GET" and request.path.endswith(".json") else None

    with S3Interceptor(refuse, upstream=s3.endpoint_url) as server:
        restore = restore_of(sink, f"{topic}-restored", **PLAIN_JSON, **LOST, **{"store.url": server.url})
        report = restore.try_run()
    assert report.status == "failed" and report.error is not None
    there = all_names(admin_client({"bootstrap.servers": kafka.bootstrap}))
    assert (f"{topic}-restored" in there) == creates, "an object in an archive leaves out its partition only"

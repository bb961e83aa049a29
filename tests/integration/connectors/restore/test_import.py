"""Files with any names into topics: `mode=GENERIC`."""

from __future__ import annotations

import gzip
import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_connect.runtime.driver.kinds import kind_of
from tests.support.copies.restore import LOCAL_SOURCE, S3_SOURCE, Restore, stored
from tests.support.servers.s3_interceptor import Answer, S3Interceptor, error

pytestmark = pytest.mark.integration

FORMAT = "io.confluent.connect.s3.format.{0}.{1}Format"
JSON = "org.apache.kafka.connect.json.JsonConverter"
PLAIN_JSON = {"value.converter": JSON, "value.converter.schemas.enable": "false"}


class Import(Restore):
    """A connector that imports files of a directory."""

    def spec(self, **overrides: str) -> Any:
        kept = super().spec(**overrides)
        for key in ("topics", "topic.rename"):
            kept.connector.pop(key)  # type: ignore[attr-defined]
        return kept


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "topics" / "inbox"
    path.mkdir(parents=True)
    return path


@pytest.fixture
def files(kafka: Any, make_topic: Any, folder: Path) -> Import:
    topic = make_topic(1)
    config = {
        "connector.class": LOCAL_SOURCE, "store.url": f"file://{folder.parents[1]}", "mode": "GENERIC",
        "format.class": FORMAT.format("json", "Json"), "topic.regex.list": rf"{topic}:topics/inbox/.*", **PLAIN_JSON,
    }  # fmt: skip
    return Import(kafka.bootstrap, topic, topic, config)


def values(files: Import) -> list[Any]:
    return [json.loads(one.value or b"null") for one in stored(files.bootstrap, files.target)]


def failure(files: Import, **overrides: str) -> str:
    report = files.try_run(**overrides)
    assert report.status == "failed" and report.error is not None
    return f"{report.error['message']} {report.error['suggestion']}"


@pytest.mark.parametrize("columnar", [True, False], ids=["columns", "records"])
def test_parquet_of_another_program_is_imported_once(files: Import, folder: Path, *, columnar: bool) -> None:
    files.config["format.class"] = FORMAT.format("parquet", "Parquet")
    for name, first in (("part one.parquet", 0), ("b/part-2.parquet", 100)):
        (folder / name).parent.mkdir(exist_ok=True)
        table = pa.table(
            {"id": range(first, first + 50), "name": ["ü", None] * 25, "at": pa.array([1] * 50, pa.timestamp("ms"))}
        )
        pq.write_table(table, folder / name, row_group_size=20)
    files.run(columnar=columnar, **{"run.max.records": "30"})
    files.run(columnar=columnar)
    expected = [
        {"id": n, "name": None if n % 2 else "ü", "at": 1} for first in (0, 100) for n in range(first, first + 50)
    ]
    assert sorted(values(files), key=lambda one: one["id"]) == expected
    assert files.try_run(columnar=columnar).status == "empty"
    table = pa.table({"id": [7_000], "name": ["new"], "at": pa.array([2], pa.timestamp("ms"))})
    pq.write_table(table, folder / "a-name-before-the-others.parquet")
    assert files.run(columnar=columnar).records == 1


@pytest.mark.parametrize("columnar", [True, False], ids=["columns", "records"])
def test_state_topics_of_the_worker_are_not_written_to(files: Import, folder: Path, *, columnar: bool) -> None:
    (folder / "a.json").write_bytes(b'{"n":1}')
    for topic in ("connect-offsets", "connect-runs", "connect-configs", "connect-status"):
        report = files.try_run(columnar=columnar, **{"topic.regex.list": f"{topic}:topics/inbox/.*"})
        assert report.error is not None and report.error["code"] == "source.state_topic", topic
        assert f"A record would go to {topic}, in which this worker keeps its own state." in report.error["message"]


def test_json_and_compressed_json(files: Import, folder: Path) -> None:
    (folder / "a.json").write_bytes(b'{"n":1}\n{"n":2}\n')
    (folder / "b.json.gz").write_bytes(gzip.compress(b'{"n":3}{"n":4}'))
    files.run()
    assert sorted(one["n"] for one in values(files)) == [1, 2, 3, 4]


def test_csv_with_names_in_its_first_row(files: Import, folder: Path) -> None:
    (folder / "a.csv").write_text('id,name\n1,"a, b"\n2,\n')
    csv = {"format.class": FORMAT.format("csv", "Csv"), "csv.first.row.as.header": "true"}
    files.run(**csv, **{"csv.null.field.indicator": "BOTH"})
    assert values(files) == [{"id": "1", "name": "a, b"}, {"id": "2", "name": None}]


def test_files_that_no_expression_matches_are_told(files: Import, folder: Path) -> None:
    (folder / "a.json").write_bytes(b'{"n":1}')
    (folder.parent / "other.json").write_bytes(b'{"n":2}')
    report = files.run()
    assert len(values(files)) == 1
    told = "No expression of topic.regex.list matches 1 file, and none is read:"
    assert [note for note in report.notes if note.startswith(told) and "other.json" in note]
    assert "holds no file that topic.regex.list matches" in failure(files, **{"topic.regex.list": "t:nothing"})


def test_folder_without_files_is_no_error(files: Import) -> None:
    report = files.try_run()
    assert report.status == "empty" and any(note.endswith("holds no file.") for note in report.notes)


def test_several_topics_by_the_first_expression_that_matches(files: Import, folder: Path, make_topic: Any) -> None:
    other = make_topic(1)
    (folder / "orders.json").write_bytes(b'{"n":1}')
    (folder / "rest.json").write_bytes(b'{"n":2}')
    files.run(**{"topic.regex.list": rf"{other}:.*/orders\.json,{files.target}:.*"})
    assert [len(stored(files.bootstrap, topic)) for topic in (other, files.target)] == [1, 1]
    assert values(files) == [{"n": 2}]


def test_changed_file_is_named_and_others_are_imported(files: Import, folder: Path) -> None:
    (folder / "a.json").write_bytes(b'{"n":1}')
    files.run()
    (folder / "a.json").write_bytes(b'{"n":1}\n{"n":2}')
    (folder / "b.json").write_bytes(b'{"n":3}')
    told = failure(files)
    assert "a.json has changed since 1 record of it were imported" in told and "delete its offset" in told
    assert [one["n"] for one in values(files)] == [1, 3]


def test_file_that_is_gone_before_its_end_is_named(files: Import, folder: Path) -> None:
    (folder / "a.json").write_bytes(b'{"n":1}\n{"n":2}')
    (folder / "b.json").write_bytes(b'{"n":3}')
    files.run(**{"run.max.records": "1", "tasks.max": "1"})
    (folder / "a.json").unlink()
    assert "a.json is not there any more, and 1 of its records were imported" in failure(files)
    assert [one["n"] for one in values(files)] == [1, 3]


def test_finished_file_may_be_deleted(files: Import, folder: Path) -> None:
    (folder / "a.json").write_bytes(b'{"n":1}')
    files.run()
    (folder / "a.json").unlink()
    (folder / "b.json").write_bytes(b'{"n":3}')
    assert files.run().records == 1


def test_headers_about_the_file(files: Import, folder: Path) -> None:
    path = folder / "a.json"
    path.write_bytes(b'{"n":1}')
    files.run(
        **{
            "file.metadata.headers.enable": "true",
            "header.converter": "org.apache.kafka.connect.storage.StringConverter",
        }
    )
    (one,) = stored(files.bootstrap, files.target)
    modified = str(path.stat().st_mtime_ns // 1_000_000).encode()
    assert one.headers == (
        (b"file.name", b"a.json"), (b"file.path", str(path).encode()), (b"file.last.modified", modified),
        (b"file.size", b"7"),
    )  # fmt: skip


def test_old_files_are_not_imported(files: Import, folder: Path) -> None:
    for name, seconds in (("old.json", 1_000), ("new.json", 3_000)):
        (folder / name).write_bytes(b'{"n":%d}' % seconds)
        os.utime(folder / name, (seconds, seconds))
    report = files.run(**{"file.discovery.starting.timestamp": "2000000"})
    assert [one["n"] for one in values(files)] == [3_000]
    assert "Not imported, because modified before file.discovery.starting.timestamp: 1 file." in report.notes


def test_damaged_file_does_not_keep_others_from_being_imported(files: Import, folder: Path) -> None:
    (folder / "a.json").write_bytes(b'{"n":1}\n{"n"\n')
    (folder / "b.json").write_bytes(b'{"n":3}')
    assert f"{folder}/a.json from record 1 on" in failure(files, **{"tasks.max": "1"})
    assert [one["n"] for one in values(files)] == [1, 3]
    assert f"{folder}/a.json from record 1 on" in failure(files)
    report = files.run(**{"behavior.on.error": "log"})
    assert "Files of which the rest was left out (behavior.on.error): 1." in report.notes


def test_transformations_make_keys_and_timestamps(files: Import, folder: Path) -> None:
    (folder / "a.json").write_bytes(b'{"n":1,"id":"x"}')
    chain = {
        "transforms": "key,part", "transforms.key.type": "org.apache.kafka.connect.transforms.ValueToKey",
        "transforms.key.fields": "id", "transforms.part.type": "org.apache.kafka.connect.transforms.ExtractField$Key",
        "transforms.part.field": "id", "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    }  # fmt: skip
    files.run(**chain)
    assert [one.key for one in stored(files.bootstrap, files.target)] == [b"x"]


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"topic.regex.list": ""}, "mode=GENERIC needs topic.regex.list"),
        ({"topic.regex.list": "t"}, "t is not topic:regular expression"),
        ({"topic.regex.list": "t:("}, "is not a valid regular expression"),
        ({"topics": "t"}, "topics is not for mode=GENERIC"),
        ({"restore.until.timestamp": "9"}, "restore.until.timestamp is not for mode=GENERIC"),
        ({"mode": "RESTORE_BACKUP"}, "topic.regex.list is for mode=GENERIC"),
        ({"store.kafka.records": "true"}, "are not for mode=GENERIC"),
        ({"csv.strict.quotes": "true"}, "csv.strict.quotes"),
    ],
)
def test_keys_that_do_not_fit_are_refused(files: Import, folder: Path, keys: dict[str, str], told: str) -> None:
    (folder / "a.json").write_bytes(b'{"n":1}')
    spec = files.spec()
    config = {**spec.connector, **keys}
    findings = kind_of(type(spec)(config, spec.worker)).findings()
    assert told in json.dumps(findings)


def test_plan_of_an_import(files: Import, folder: Path) -> None:
    (folder / "a.json").write_bytes(b'{"n":1}')
    assert "To copy: 1 file, 7 bytes: inbox/a.json." in kind_of(files.spec()).plan().notes
    files.run()
    assert "To copy: 0 files, 0 bytes." in kind_of(files.spec()).plan().notes


def test_import_from_a_bucket(files: Import, s3: Any, bucket: str) -> None:
    client = s3.client()
    client.put_object(Bucket=bucket, Key="topics/inbox/a b.json", Body=b'{"n":1}\n{"n":2}')
    files.config |= {
        "connector.class": S3_SOURCE, "s3.bucket.name": bucket, "s3.region": s3.region, "store.url": s3.endpoint_url,
        "aws.access.key.id": s3.access_key, "aws.secret.access.key": s3.secret_key,
    }  # fmt: skip
    files.run()
    assert [one["n"] for one in values(files)] == [1, 2]
    client.put_object(Bucket=bucket, Key="topics/inbox/a b.json", Body=b'{"n":1}\n{"n":2}')
    assert files.try_run().status == "empty", "the same bytes have the same ETag"


def test_objects_whose_keys_end_with_a_slash_are_files_if_they_have_content(
    files: Import, s3: Any, bucket: Any
) -> None:
    client = s3.client()
    for key, body in (("~", b""), ("inbox/~", b""), ("inbox/a~", b'{"n":1}'), ("other~", b'{"n":2}')):
        client.put_object(Bucket=bucket, Key=f"topics/{key}", Body=body)
    files.config |= {
        "connector.class": S3_SOURCE, "s3.bucket.name": bucket, "s3.region": s3.region,
        "aws.access.key.id": s3.access_key, "aws.secret.access.key": s3.secret_key,
    }  # fmt: skip

    # The server of the tests keeps no content under such keys.
    def with_slash(request: Any, ask: Any) -> Answer:
        if request.path.endswith("/inbox/a/"):
            return Answer(206, b'{"n":1}')
        found = ask()
        return replace(found, body=re.sub(rb"(~|%7E)</Key>", b"/</Key>", found.body))

    with S3Interceptor(with_slash, upstream=s3.endpoint_url) as server:
        notes = files.run(**{"store.url": server.url}).notes
    told = f"No expression of topic.regex.list matches 1 file, and none is read: s3://{bucket}/topics/other/."
    assert told in notes and not any("hold no record" in note for note in notes)
    assert [one["n"] for one in values(files)] == [1]


def test_files_without_a_record_are_counted(files: Import, folder: Path) -> None:
    (folder / "a.json").write_bytes(b"")
    (folder / "b.json").write_bytes(b'{"n":1}')
    assert "Files that hold no record: 1." in files.run().notes
    (folder / "a.json").write_bytes(b'{"n":2}')
    files.run()
    assert [one["n"] for one in values(files)] == [1, 2]


@pytest.mark.parametrize("name", ["a.json.gz", "a.json.zst"])
def test_compressed_file_without_a_byte_is_cut_off(files: Import, folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"")
    assert "its compressed stream is cut off before its first byte" in failure(files)


def test_names_that_a_listing_leaves_out_are_told(files: Import, folder: Path, tmp_path: Path) -> None:
    (folder / "a.json").write_bytes(b'{"n":1}')
    (folder / "dead.json").symlink_to("nowhere")
    (folder / "linked").symlink_to(tmp_path)
    report = files.run()
    assert [note for note in report.notes if note.startswith("1 directory is a link") and "linked" in note]
    assert [note for note in report.notes if "dead.json" in note and "nothing is read there" in note]


def test_half_imported_file_that_is_not_chosen_any_more_is_named(files: Import, folder: Path) -> None:
    (folder / "a.json").write_bytes(b'{"n":0}\n{"n":1}')
    files.run(**{"run.max.records": "1"})
    (folder / "b.txt").write_bytes(b'{"n":2}')
    told = failure(files, **{"topic.regex.list": f"{files.target}:.*txt"})
    assert "No expression matches" in told and "a.json any more, and 1 record of it were imported" in told


def test_files_are_known_when_the_import_begins_at_another_directory(files: Import, folder: Path) -> None:
    for name, n in (("a.json", 0), ("b.json", 2)):
        (folder / name).write_bytes(b'{"n":%d}\n{"n":%d}' % (n, n + 1))
    files.run(**{"run.max.records": "3", "tasks.max": "1"})
    files.run(**{"topics.dir": "topics/inbox"})
    assert [one["n"] for one in values(files)] == [0, 1, 2, 3]
    assert files.try_run().status == "empty"
    (folder / "b.json").unlink()
    assert files.try_run(**{"topics.dir": ""}).status == "empty"


@pytest.mark.parametrize("policy", ["fail", "ignore"])
def test_object_in_an_archive_does_not_keep_others_from_being_imported(
    files: Import, s3: Any, bucket: str, policy: str
) -> None:
    client = s3.client()
    client.put_object(Bucket=bucket, Key="topics/inbox/a.json", Body=b'{"n":1}' * 99)  # the largest one comes first
    client.put_object(Bucket=bucket, Key="topics/inbox/b.json", Body=b'{"n":2}')
    files.config |= {
        "connector.class": S3_SOURCE, "s3.bucket.name": bucket, "s3.region": s3.region, "tasks.max": "1",
        "aws.access.key.id": s3.access_key, "aws.secret.access.key": s3.secret_key, "behavior.on.error": policy,
    }  # fmt: skip
    with S3Interceptor(
        lambda request, _: error(403, "InvalidObjectState") if request.path.endswith("a.json") else None,
        upstream=s3.endpoint_url,
    ) as server:
        told = failure(files, **{"store.url": server.url})
    assert "a.json is in an archive" in told and "RestoreObject" in told
    assert [one["n"] for one in values(files)] == [2]

"""Large files of an import that are divided among tasks: `split.bytes`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_connect.runtime.driver.entry import reset_offsets
from airflow_connect.runtime.driver.kinds import kind_of
from airflow_connect.runtime.driver.source.configuration import SourceConfiguration
from airflow_connect.runtime.driver.source.kafka_session import SourceSession
from tests.integration.connectors.restore.test_import import FORMAT, PLAIN_JSON, Import, failure, values
from tests.support.copies.restore import LOCAL_SOURCE, S3_SOURCE
from tests.support.servers.s3_interceptor import Answer, S3Interceptor

pytestmark = pytest.mark.integration

SPLIT = {"split.bytes": "1000", "accept.loss": "order", "tasks.max": "3"}


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
        "format.class": FORMAT.format("parquet", "Parquet"), "topic.regex.list": rf"{topic}:topics/inbox/.*",
        **PLAIN_JSON, **SPLIT,
    }  # fmt: skip
    return Import(kafka.bootstrap, topic, topic, config)


def write(path: Path, first: int, size: int, group: int = 100) -> None:
    table = pa.table({"id": range(first, first + size), "text": [f"text {n}" for n in range(size)]})
    pq.write_table(table, path, row_group_size=group, compression="none", use_dictionary=False)


def ids(files: Import) -> list[int]:
    return [one["id"] for one in values(files)]


def offsets(files: Import) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    with SourceSession(SourceConfiguration.from_spec(files.spec())) as session:
        return [(dict(partition), dict(offset)) for partition, offset in session.read_offsets().items()]


def ranges(files: Import) -> dict[str, tuple[int, int]]:
    found = sorted(offsets(files), key=lambda one: int(str(one[0]["rows"]).partition("-")[0]))
    return {partition["rows"]: (offset["record"], offset["done"]) for partition, offset in found}


@pytest.mark.parametrize("columnar", [True, False], ids=["columns", "records"])
def test_divided_file_is_imported_once_by_several_tasks(files: Import, folder: Path, *, columnar: bool) -> None:
    write(folder / "large.parquet", 0, 1_000)
    write(folder / "small.parquet", 5_000, 20)
    plan = kind_of(files.spec()).plan().notes
    assert any(note.startswith("To copy: 2 files, ") and "inbox/large.parquet, rows 0-100, " in note for note in plan)
    assert offsets(files) == [], "a plan claims nothing"
    report = files.run(columnar=columnar)
    told = "Divided by split.bytes, so that only the rows of a range keep their order: 1 file, with 10 ranges left:"
    assert f"{told} inbox/large.parquet." in plan and f"{told} inbox/large.parquet." in report.notes
    assert report.tasks == 3 and report.records == 1_020
    assert sorted(ids(files)) == [*range(1_000), *range(5_000, 5_020)]
    at = {one: place for place, one in enumerate(ids(files))}
    for start in range(0, 1_000, 100):
        places = [at[one] for one in range(start, start + 100)]
        assert places == sorted(places), "a range keeps its order"
    kept = [(partition["file"], offset["record"], offset["done"]) for partition, offset in offsets(files)]
    assert sorted(kept) == [("inbox/large.parquet", 1_000, 1), ("inbox/small.parquet", 20, 1)]
    assert files.try_run(columnar=columnar).status == "empty"


@pytest.mark.parametrize("columnar", [True, False], ids=["columns", "records"])
def test_later_runs_go_on_with_the_ranges_that_are_left(files: Import, folder: Path, *, columnar: bool) -> None:
    write(folder / "large.parquet", 0, 1_000)
    files.run(columnar=columnar, **{"run.max.records": "450"})
    first = ranges(files)
    assert list(first) == [f"{start}-{start + 100}" for start in range(0, 1_000, 100)]
    assert 0 < sum(done for _, done in first.values()) < 10
    files.run(columnar=columnar, **{"run.max.records": "230", "tasks.max": "1"})
    assert list(ranges(files)) == list(first), "ranges stay what they are, however many tasks there are"
    again = {"split.bytes": "0", "accept.loss": "", "topics.dir": "topics/inbox", "tasks.max": "7"}
    report = files.run(columnar=columnar, **again)
    assert any(note.startswith("Divided by split.bytes") for note in report.notes)
    assert sorted(ids(files)) == list(range(1_000))
    assert [offset["record"] for _, offset in offsets(files)] == [1_000]


def test_file_that_changes_between_two_ranges_is_never_mixed(files: Import, folder: Path, s3: Any, bucket: str) -> None:
    client = s3.client()
    write(folder / "a.parquet", 0, 1_000)
    write(folder / "b.parquet", 50_000, 1_000)
    old, new = ((folder / name).read_bytes() for name in ("a.parquet", "b.parquet"))
    first = client.put_object(Bucket=bucket, Key="topics/inbox/a.parquet", Body=old)["ETag"].strip('"')
    files.config |= {
        "connector.class": S3_SOURCE, "s3.bucket.name": bucket, "s3.region": s3.region, "tasks.max": "2",
        "aws.access.key.id": s3.access_key, "aws.secret.access.key": s3.secret_key,
    }  # fmt: skip
    opened: list[str] = []
    listings: list[str] = []

    # A file of this size is fetched with one request: the driver's is the first, and each range has one.
    def change(request: Any, ask: Any) -> Answer:
        if request.method == "GET" and request.path.endswith("a.parquet"):
            opened.append(request.path)
            if len(opened) == 6:
                client.put_object(Bucket=bucket, Key="topics/inbox/a.parquet", Body=new)
        if request.query.endswith("prefix=topics%2F"):
            listings.append(request.query)
        answer: Answer = ask()
        return answer

    with S3Interceptor(change, upstream=s3.endpoint_url) as server:
        told = failure(files, **{"store.url": server.url})
    second = client.head_object(Bucket=bucket, Key="topics/inbox/a.parquet")["ETag"].strip('"')
    assert "restore.changed_meanwhile" not in told and f"ETag {first}" in told and f"ETag {second}" in told
    assert "other ranges of it" in told and told.count("a.parquet from record") == 2, "an error for each task"
    assert len(listings) == 1, "what comes meanwhile is for the next run"
    copied = ids(files)
    assert len(copied) == 400 and len(set(copied)) == 400 and max(copied) < 1_000
    told = failure(files, **{"store.url": s3.endpoint_url})
    assert f"has changed since 400 records of it were imported: it is {second}, and was {first}" in told
    assert ids(files) == copied
    client.put_object(Bucket=bucket, Key="topics/inbox/a.parquet", Body=old)
    files.run(**{"store.url": s3.endpoint_url})
    assert sorted(ids(files)) == list(range(1_000))


def test_claims_of_a_file_of_which_nothing_was_imported_go_with_it(files: Import, folder: Path) -> None:
    write(folder / "a.parquet", 0, 1_000)
    refused = {"topic.regex.list": r"connect-offsets:topics/inbox/.*"}
    assert files.try_run(**refused).status == "failed"
    assert len(offsets(files)) == 10
    write(folder / "a.parquet", 7_000, 500)
    assert files.try_run(**refused).status == "failed"
    assert len(offsets(files)) == 5
    (folder / "a.parquet").unlink()
    write(folder / "b.parquet", 0, 10)
    files.run()
    assert [partition["file"] for partition, _ in offsets(files)] == ["inbox/b.parquet"]


def test_offsets_that_do_not_fit_together_leave_a_file_out(files: Import, folder: Path) -> None:
    write(folder / "a.parquet", 0, 1_000)
    files.run(**{"run.max.records": "250"})
    write(folder / "b.parquet", 2_000, 10)
    spec = files.spec()
    gone = next(dict(partition) for partition, _ in offsets(files) if partition["rows"] == "300-400")
    reset_offsets(spec, [gone])
    told = failure(files)
    assert "a.parquet is divided into ranges of rows, and their offsets do not fit together" in told
    assert "the rows 300-400 have none" in told and "Delete all offsets of the file" in told
    assert set(range(2_000, 2_010)) <= set(ids(files))
    reset_offsets(spec, [dict(partition) for partition, _ in offsets(files) if partition["file"] == "inbox/a.parquet"])
    assert files.run().records == 1_000


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"accept.loss": ""}, "Add order to accept.loss, or remove split.bytes"),
        ({"format.class": "JsonFormat"}, "split.bytes is for mode=GENERIC and ParquetFormat"),
        ({"mode": "RESTORE_BACKUP", "topic.regex.list": ""}, "split.bytes is for mode=GENERIC and ParquetFormat"),
    ],
)
def test_split_bytes_that_has_no_effect_or_loses_order_is_refused(
    files: Import, keys: dict[str, str], told: str
) -> None:
    spec = files.spec()
    findings = kind_of(type(spec)({**spec.connector, **keys}, spec.worker)).findings()
    assert told in json.dumps(findings)


def test_what_cannot_be_divided_is_imported_by_one_task(files: Import, folder: Path) -> None:
    write(folder / "one-group.parquet", 0, 1_000, group=1_000)
    (folder / "damaged.parquet").write_bytes(b"PAR1" + bytes(9_000) + b"\x09\0\0\0PAR1")
    told = failure(files)
    assert "damaged.parquet from record 0 on" in told
    assert ids(files) == list(range(1_000))
    (folder / "damaged.parquet").unlink()
    write(folder / "two.parquet", 1_000, 1_000)
    files.run(**{"tasks.max": "1"})
    assert ids(files) == list(range(2_000)), "one task has no reason to divide"


def test_damaged_range_is_named_and_the_others_are_imported(files: Import, folder: Path) -> None:
    path = folder / "a.parquet"
    write(path, 0, 1_000)
    data = bytearray(path.read_bytes())
    column = pq.ParquetFile(path).metadata.row_group(4).column(0)
    data[column.data_page_offset : column.data_page_offset + 20] = b"\xff" * 20
    path.write_bytes(data)
    told = failure(files)
    assert f"{path} from record 400 on, to the end of the rows 400-500" in told
    assert sorted(ids(files)) == [*range(400), *range(500, 1_000)]
    report = files.run(**{"behavior.on.error": "log"})
    assert "Ranges of divided files of which the rest was left out (behavior.on.error): 1." in report.notes
    assert len(ids(files)) == 900

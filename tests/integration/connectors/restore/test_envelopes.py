"""Files of Lenses' and Aiven's sinks back into topics, with keys, headers, timestamps and partitions."""

from __future__ import annotations

import datetime as dt
import gzip
import itertools
import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.connectors.restore.values.reading import ValueFileReader
from airflow_connect.errors import UnavailableError
from airflow_connect.kafka.admin.topics import all_names
from airflow_connect.kafka.clients.short_lived import admin_client
from tests.integration.connectors.restore.test_values import JSON_FORMAT, PLAIN_JSON, STRING
from tests.support.copies.backups import TIME_MS
from tests.support.copies.restore import LOCAL_SOURCE, Restore, Stored, stored

pytestmark = pytest.mark.integration
DAY_MS = 86_400_000

Record = tuple[int, int, str | None, Any, int, list[tuple[str, Any]]]
"""Partition, offset, key, value, timestamp and headers."""
RECORDS: list[Record] = [
    (partition, offset, None if offset == 3 else f"k{offset}", None if offset == 11 else {"n": offset, "t": "ü"},
     TIME_MS + offset, [("a", "1"), ("b", f"x{offset}")] if offset % 2 else [])
    for partition in (0, 2)
    for offset in range(12)
]  # fmt: skip


def lenses(record: Record) -> dict[str, Any]:
    partition, offset, key, value, at, headers = record
    metadata = {"timestamp": at, "topic": "orders", "partition": partition, "offset": offset}
    return {"key": key, "value": value, "headers": dict(headers), "metadata": metadata}


def aiven(record: Record) -> dict[str, Any]:
    _, offset, key, value, at, headers = record
    stamp = dt.datetime.fromtimestamp(at / 1000, dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    pairs = [{"key": name, "value": text} for name, text in headers]
    return {"key": key, "value": value, "offset": offset, "timestamp": stamp, "headers": pairs}


def write_files(
    folder: Path, name_of: Callable[[int, int], str], envelope: Callable[[Record], Any], records: Iterable[Record]
) -> None:
    """Three records for each file, lines of JSON."""
    by_file: dict[str, list[bytes]] = {}
    for record in records:
        name = name_of(record[0], record[1] // 3 * 3 + 2)
        by_file.setdefault(name, []).append(json.dumps(envelope(record)).encode())
    for name, lines in by_file.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = b"".join(line + b"\n" for line in lines)
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)


def restore(kafka: Any, folder: Path, target: str, **config: str) -> Restore:
    given = {"connector.class": LOCAL_SOURCE, "store.url": f"file://{folder}", "topics.dir": "", **PLAIN_JSON, **config}
    return Restore(kafka.bootstrap, "orders", target, {"format.class": JSON_FORMAT, "key.converter": STRING, **given})


def expected(records: Iterable[Record]) -> list[Stored]:
    return [
        Stored(
            partition, None if key is None else key.encode(),
            None if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(), at,
            tuple((name.encode(), text.encode()) for name, text in headers),
        )
        for partition, _, key, value, at, headers in records
    ]  # fmt: skip


LAYOUTS = {
    "lenses": (lenses, lambda partition, offset: f"to/orders/{partition}/{offset}_1_2.json"),
    "aiven": (aiven, lambda partition, offset: f"day/orders-{partition}-{offset}.gz"),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_records_of_envelopes_come_back(kafka: Any, tmp_path: Path, unique_name: str, name: str) -> None:
    envelope, name_of = LAYOUTS[name]
    write_files(tmp_path, name_of, envelope, RECORDS)
    made = restore(kafka, tmp_path, unique_name, **{"record.envelope": name})

    refused = made.try_run()
    assert refused.error is not None and "header_types: the types of headers" in refused.error["message"]
    admin = admin_client({"bootstrap.servers": kafka.bootstrap})
    assert unique_name not in all_names(admin)

    made.config["accept.loss"] = "header_types"
    assert made.run(**{"run.max.records": "7"}).records < len(RECORDS)  # in the middle of a file
    made.run()
    assert stored(made.bootstrap, made.target) == expected(RECORDS)
    assert made.run().records == 0


def test_names_that_a_pattern_finds_without_an_envelope(kafka: Any, tmp_path: Path, unique_name: str) -> None:
    write_files(tmp_path, lambda partition, offset: f"{offset}.of.orders.{partition}", lambda one: one[3], RECORDS[:11])
    pattern = {"file.pattern": r"(?<offset>\d+)\.of\.(?<topic>\w+)\.(?<partition>\d+)"}
    made = restore(kafka, tmp_path, unique_name, **pattern, **{"accept.loss": "timestamp,key,headers"})
    made.run()
    found = stored(made.bootstrap, made.target)
    assert [json.loads(one.value or b"") for one in found] == [one[3] for one in RECORDS[:11]]


def test_imported_files_may_be_envelopes(kafka: Any, tmp_path: Path, unique_name: str) -> None:
    write_files(tmp_path, lambda partition, offset: f"{partition}/{offset}.json", lenses, RECORDS[:3])
    made = restore(kafka, tmp_path, unique_name, **{"record.envelope": "lenses", "mode": "GENERIC"})
    made.config |= {"topics": "", "topic.rename": "", "topic.regex.list": f"{unique_name}:.*"}
    made.config |= {"topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "1"}
    assert made.run(**{"topics": "", "topic.rename": ""}).records == 3
    assert [one._replace(partition=0) for one in stored(made.bootstrap, unique_name)] == expected(RECORDS[:3])


def test_record_of_another_partition_is_an_error_that_names_it(kafka: Any, tmp_path: Path, unique_name: str) -> None:
    wrong = [*RECORDS[:2], (1, *RECORDS[2][1:]), *RECORDS[3:6]]
    write_files(tmp_path, lambda _, offset: f"orders/0/{offset}.json", lenses, wrong)
    losses = {"accept.loss": "header_types"}
    made = restore(kafka, tmp_path, unique_name, **{"record.envelope": "lenses", **losses})
    report = made.try_run()
    assert report.status == "failed" and report.error is not None
    assert "orders/0/2.json" in report.error["message"] and "record 2: " in report.error["message"]
    assert "partition 1, and the name of the file says 0" in report.error["message"]
    # What comes before it is good.
    assert stored(made.bootstrap, made.target) == expected(RECORDS[:2])


COMPACTED = {"cleanup.policy": "compact"}


@pytest.mark.parametrize("policy", ["fail", "log"])
def test_record_without_a_key_leaves_its_partition_out_of_a_compacted_topic(
    kafka: Any, tmp_path: Path, make_topic: Any, policy: str
) -> None:
    envelope, name_of = LAYOUTS["lenses"]
    write_files(tmp_path, name_of, envelope, RECORDS)
    given = {"record.envelope": "lenses", "accept.loss": "header_types", "behavior.on.error": policy}
    made = restore(kafka, tmp_path, make_topic(3, COMPACTED), **given)
    report = made.try_run()
    assert report.status == "failed" and report.error is not None
    assert (
        "Record 0 of " in report.error["message"] and "5_1_2.json of the backup has no key" in report.error["message"]
    )
    written = [one for one in RECORDS if one[1] < 3]
    assert stored(made.bootstrap, made.target) == expected(written)


def test_lost_keys_are_no_records_of_a_compacted_topic_unless_a_transformation_makes_them(
    kafka: Any, tmp_path: Path, make_topic: Any
) -> None:
    write_files(tmp_path, lambda partition, offset: f"{offset}.of.orders.{partition}", lambda one: one[3], RECORDS[:3])
    pattern = {"file.pattern": r"(?<offset>\d+)\.of\.(?<topic>\w+)\.(?<partition>\d+)"}
    made = restore(kafka, tmp_path, make_topic(1, COMPACTED), **pattern, **{"accept.loss": "timestamp,key,headers"})
    report = made.try_run()
    assert report.error is not None and "of the backup has no key" in report.error["message"]
    keys = {"transforms": "k", "transforms.k.type": "org.apache.kafka.connect.transforms.ValueToKey",
            "transforms.k.fields": "n", "key.converter": PLAIN_JSON["value.converter"],
            "key.converter.schemas.enable": "false"}  # fmt: skip
    assert made.run(**keys).records == 3


def test_times_that_the_topic_does_not_take_or_keep(kafka: Any, tmp_path: Path, make_topic: Any) -> None:
    envelope, name_of = LAYOUTS["lenses"]
    now = round(time.time() * 1000)
    times = [now, now - 2 * DAY_MS, 0, now - 9 * DAY_MS, now, now]
    records = [(0, offset, "k", {"n": offset}, at, []) for offset, at in enumerate(times)]
    write_files(tmp_path, name_of, envelope, records)
    limits = {"retention.ms": str(DAY_MS), "message.timestamp.before.max.ms": str(7 * DAY_MS)}
    made = restore(kafka, tmp_path, make_topic(1, limits), **{"record.envelope": "lenses"})

    report = made.try_run(**{"accept.loss": "header_types"})
    assert report.status == "failed" and report.error is not None
    assert "Record 2 of " in report.error["message"] and "has the timestamp 0, which" in report.error["message"]
    assert any(note.startswith("Records that are older than their topic keeps them") for note in report.notes)

    report = made.run(**{"accept.loss": "header_types,timestamp"})
    told = "Records whose timestamp cannot be written, and which got the time of the run (accept.loss=timestamp): 2."
    assert (report.records, told in report.notes) == (4, True)
    found = [one.timestamp for one in stored(made.bootstrap, made.target)]
    assert [found[n] for n in (0, 1, 4, 5)] == [times[n] for n in (0, 1, 4, 5)]
    assert min(found[2:4]) >= now


def test_store_that_is_away_while_the_times_are_looked_at_fails_the_run(
    kafka: Any, tmp_path: Path, make_topic: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, asked = ValueFileReader.rows, itertools.count()

    def away_once(*args: Any) -> Any:
        if next(asked) == 0:
            raise UnavailableError("The store did not answer.")
        return rows(*args)

    envelope, name_of = LAYOUTS["lenses"]
    write_files(tmp_path, name_of, envelope, [(0, 0, "k", {"n": 0}, TIME_MS, [])])
    config = {"record.envelope": "lenses", "accept.loss": "header_types"}
    made = restore(kafka, tmp_path, make_topic(1, {"retention.ms": str(DAY_MS)}), **config)

    with monkeypatch.context() as patched:
        patched.setattr(ValueFileReader, "rows", away_once)
        report = made.try_run()
    assert report.error is not None and (report.status, report.error["retriable"]) == ("failed", True)

    report = made.try_run()
    assert report.error is not None and f"retention.ms={DAY_MS}" in report.error["message"]

"""Each directory has files of its own: as few as there can be, and the same on both paths."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_connect.api.record import KafkaRecord
from airflow_connect.config.resolved.loading import load_connector_config
from airflow_connect.errors import ConfigError
from tests.support.session.searching import examples
from tests.unit.connectors.files.shared import avro_messages
from tests.unit.connectors.files.shared.staging import JSON, NOW_MS, STRING, copy
from tests.unit.connectors.files.shared.test_columns import HOURLY, JSON_LINES

COMPACT = {"files.per.partition": "compact"}
HOUR_MS = 3_600_000
KEYS = {"store.kafka.keys": "true", "key.converter": STRING, "keys.format.class": JSON_LINES["format.class"]}


def record(n: int, hour: int, value: bytes | None = None, key: bytes | None = None) -> KafkaRecord:
    body = b'{"id":%d}' % n if value is None else value
    return KafkaRecord("t", 0, n, key, body or None, NOW_MS + hour * HOUR_MS, 1, ())


def in_batches(records: list[KafkaRecord], size: int) -> list[list[KafkaRecord]]:
    return [records[start : start + size] for start in range(0, len(records), size)]


def directory(key: str) -> str:
    return key.rpartition("/")[0]


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    hours=st.lists(st.integers(0, 9), min_size=1, max_size=300),
    flush_size=st.sampled_from([-1, 1, 2, 7, 50, 1000]),
    batch=st.sampled_from([1, 9, 64, 300]),
    interval=st.sampled_from(["-1", "60000"]),
    columnar=st.booleans(),
)
def test_every_directory_has_as_few_files_as_its_records_need(
    hours: list[int], flush_size: int, batch: int, interval: str, columnar: bool
) -> None:
    rotation = {
        "flush.size": str(flush_size), "rotate.interval.ms": interval, "partitioner.max.open.files": "2",
        "rotate.schedule.interval.ms": "1",
    }  # fmt: skip
    records = [record(n, hour) for n, hour in enumerate(hours)]

    outcome, _ = copy({**JSON_LINES, **HOURLY, **COMPACT, **rotation}, in_batches(records, batch), columnar=columnar)

    full = max(1, flush_size)
    sizes = sorted((directory(key), start, count) for key, start, _, count, _ in outcome.files)
    expected = sorted(-(-count // full) for count in Counter(hours).values())
    assert sorted(Counter(place for place, _, _ in sizes).values()) == expected
    # All but the last file of a directory are full, and none is lost or doubled.
    for (place, _, count), (after, _, _) in pairwise(sizes):
        assert count == full or place != after
    (report,) = outcome.reports
    assert (report.written, report.left, report.commit_offset) == (len(hours), 0, len(hours))
    assert sorted(row["id"] for _, _, _, _, body in outcome.files for row in map(json.loads, body.splitlines())) == [
        *range(len(hours))
    ]
    assert len({key for key, *_ in outcome.files}) == len(outcome.files)


VALUE: dict[str, Any] = {
    "id": 1, "name": None, "ok": True, "at": NOW_MS, "day": None, "ratio": 0.5, "small": 1, "price": None, "kind": "a",
    "inner": None,
}  # fmt: skip
VERSIONS = {1: avro_messages.message(1, VALUE), 2: avro_messages.message(2, {**VALUE, "note": "x"})}


@pytest.mark.parametrize("mode", ["NONE", "BACKWARD", "FORWARD", "FULL"])
@settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    given=st.lists(st.tuples(st.integers(0, 2), st.sampled_from([1, 2])), min_size=1, max_size=150),
    flush_size=st.sampled_from([1, 5, 1000]),
    batch=st.sampled_from([1, 70, 150]),
)
def test_every_schema_of_a_directory_has_as_few_files_as_its_records_need(
    mode: str, given: list[tuple[int, int]], flush_size: int, batch: int
) -> None:
    config = {
        **avro_messages.CONVERTER, "format.class": JSON_LINES["format.class"], **HOURLY,
        **COMPACT, "flush.size": str(flush_size), "schema.compatibility": mode,
    }  # fmt: skip
    records = in_batches([record(n, hour, VERSIONS[version]) for n, (hour, version) in enumerate(given)], batch)
    with avro_messages.known_schemas():
        reference, _ = copy(config, records, columnar=False)
        columnar, _ = copy(config, records, columnar=True)

    assert (columnar.error, columnar) == (reference.error, reference)
    # Which version the files have: the record's, or the first of the directory that it can be projected to.
    homes: Counter[tuple[int, int]] = Counter()
    best = min if mode == "FORWARD" else max
    for hour, version in given:
        before = [seen for place, seen in homes if place == hour]
        homes[hour, version if mode == "NONE" else best([version, *before])] += 1
    assert len(reference.files) == sum(-(-count // flush_size) for count in homes.values())
    assert Counter(b'"note"' in body for *_, body in reference.files) == Counter(
        version == 2 for (_, version), count in homes.items() for _ in range(-(-count // flush_size))
    )


def test_batch_of_two_versions_is_projected_as_its_records_are_one_by_one() -> None:
    """In one batch, so that nothing was written before of which columns could know."""
    records = [[record(n, 0, VERSIONS[version]) for n, version in enumerate([2] * 100 + [1] * 100)]]
    for layout in ({}, COMPACT):
        config = {
            **avro_messages.CONVERTER, "format.class": JSON_LINES["format.class"], **layout,
            "flush.size": "1000", "schema.compatibility": "BACKWARD",
        }  # fmt: skip
        with avro_messages.known_schemas():
            reference, _ = copy(config, records, columnar=False)
            columnar, in_columns = copy(config, records, columnar=True)
        assert (columnar.error, columnar) == (reference.error, reference)
        assert len(columnar.files) == 1 and 0 < in_columns < 200


def test_files_are_staged_in_the_order_in_which_they_end() -> None:
    hours = [0, 1, 0, 1, 1, 0, 2, 0, 1]
    for columnar in (False, True):
        outcome, in_columns = copy(
            {**JSON_LINES, **HOURLY, **COMPACT, "flush.size": "3"},
            [[record(n, hour) for n, hour in enumerate(hours)]],
            columnar=columnar,
        )
        # Hour 1 is full at 4, hour 0 at 5; what the run ends goes by its first record.
        assert [file[1:4] for file in outcome.files] == [(1, 5, 3), (0, 6, 3), (6, 7, 1), (7, 8, 1), (8, 9, 1)]
        assert in_columns == (9 if columnar else 0)


def test_companions_and_tombstones_have_files_of_their_directory() -> None:
    config = {
        **JSON_LINES, **HOURLY, **COMPACT, **KEYS, "behavior.on.null.values": "write", "flush.size": "2",
    }  # fmt: skip
    values = [b"{}", b"", b"{}", b"", b"{}", b""]
    outcome, _ = copy(config, [[record(n, n % 2, value, b"k%d" % n) for n, value in enumerate(values)]], columnar=False)

    found = sorted((key.removeprefix("topics/t/").partition("/t+0+"), count) for key, _, _, count, _ in outcome.files)
    hour, dead = "year=2023/month=11/day=14/hour=23", "tombstone"
    assert [(place, name, count) for (place, _, name), count in found] == [
        (dead, "0000000001.keys.json.gz", 2),
        (dead, "0000000005.keys.json.gz", 1),
        (hour, "0000000000.json.gz", 2),
        (hour, "0000000000.keys.json.gz", 2),
        (hour, "0000000004.json.gz", 1),
        (hour, "0000000004.keys.json.gz", 1),
    ]
    assert outcome.reports[0].written == 6


def test_record_that_fails_leaves_no_file_and_no_schema() -> None:
    """Without a key where keys are stored: its version is newer than the others'."""
    config = {
        **avro_messages.CONVERTER, "format.class": JSON_LINES["format.class"], **COMPACT, **KEYS,
        "flush.size": "10", "schema.compatibility": "BACKWARD", "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": "dead",
    }  # fmt: skip
    records = [[record(0, 0, VERSIONS[2]), record(1, 0, VERSIONS[1], b"k"), record(2, 0, VERSIONS[1], b"k")]]
    with avro_messages.known_schemas():
        outcome, _ = copy(config, records, columnar=False)

    assert outcome.error == ""
    assert [(file[1], file[2], file[3]) for file in outcome.files] == [(1, 3, 2), (1, 3, 2)]
    assert not any(b'"note"' in file[4] for file in outcome.files)
    assert (outcome.reports[0].read, outcome.reports[0].dead_lettered) == (3, 1)


def connector(**changes: str) -> dict[str, str]:
    return {
        "name": "c", "connector.class": "S3SinkConnector", "topics": "t", "s3.bucket.name": "b", "flush.size": "3",
        "s3.region": "eu-west-1", "storage.class": "io.confluent.connect.s3.storage.S3Storage",
        "format.class": JSON_LINES["format.class"], **changes,
    }  # fmt: skip


WORKER = {"bootstrap.servers": "x:1", "key.converter": STRING, "value.converter": JSON}


def test_leaving_records_for_the_next_run_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"left for the next run, as flush\.on\.end=false requires") as caught:
        load_connector_config(connector(**{"files.per.partition": "compact", "flush.on.end": "false"}), WORKER)
    assert caught.value.config_path == "files.per.partition"
    assert "Set flush.on.end=true" in caught.value.suggestion


def test_unknown_value_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ConfigError, match=r"files\.per\.partition.*classic, compact"):
        load_connector_config(connector(**{"files.per.partition": "few"}), WORKER)


def test_keys_that_cut_no_file_are_named_as_ignored() -> None:
    cutting = {
        "rotate.interval.ms": "600000", "rotate.schedule.interval.ms": "600000", "timezone": "UTC",
        "rotate.file.on.partition.change": "true", "partitioner.max.open.files": "3",
    }  # fmt: skip
    for mode, expected in (("compact", set(cutting) - {"timezone"}), ("classic", set())):
        resolved = load_connector_config(connector(**cutting, **{"files.per.partition": mode}), WORKER)
        assert {name for name, _ in resolved.connector.ignored} == expected
        assert all("only flush.size and the end of the run" in reason for _, reason in resolved.connector.ignored)

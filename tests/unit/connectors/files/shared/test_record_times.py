"""Times of records and late ones: whatever the records and the configuration, both paths find the same."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_connect.api.record import KafkaRecord
from airflow_connect.connectors.files.s3.config import S3SinkConfig
from airflow_connect.connectors.files.shared.publishing.state_document import times_of
from airflow_connect.connectors.files.shared.writing.opening import open_layout
from airflow_connect.runtime.dead_letter_codec import raw_bytes
from tests.support.session.searching import examples
from tests.unit.connectors.files.shared.staging import NOW_MS, copy
from tests.unit.connectors.files.shared.test_columns import HOURLY, JSON_LINES, ODD

HOUR_MS = 3_600_000
COMPLETE = {**JSON_LINES, **HOURLY, "complete.directories": "true"}
QUEUE = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dlq"}
LATE = st.sampled_from(
    [
        {},
        {"late.records": "append", **QUEUE},
        {"late.records": "directory"},
        {"late.records": "directory", "late.records.directory": "_after", **QUEUE},
        {"late.records": "dlq", **QUEUE},
    ]
)
CONFIGS = st.fixed_dictionaries(
    {"flush.size": st.sampled_from(["1", "3", "10", "1000"])},
    optional={
        "rotate.interval.ms": st.sampled_from(["600000", "3600000"]),
        "files.per.partition": st.just("compact"),
        "transforms": st.just("r"),
    },
)
ROUTED = {
    "transforms.r.type": "org.apache.kafka.connect.transforms.RegexRouter",
    "transforms.r.regex": "t",
    "transforms.r.replacement": "u",
}


@st.composite
def batches(draw: st.DrawFn) -> list[list[KafkaRecord]]:
    """Consecutive batches whose times go up and down around the boundary and the run's clock."""
    found: list[list[KafkaRecord]] = []
    offset = draw(st.integers(0, 3))
    odd = draw(st.sampled_from([5, 10**6]))
    for size in draw(st.lists(st.integers(1, 30), min_size=1, max_size=5)):
        records = []
        for _ in range(size):
            stamp = NOW_MS + draw(st.sampled_from([0, 1, -1, 60_000, -6, -3, -2])) * draw(st.integers(0, HOUR_MS))
            value = draw(ODD) if draw(st.integers(0, odd)) == odd else b'{"id":%d}' % offset
            records.append(KafkaRecord("t", 0, offset, None, value, stamp, 1, ()))
            offset += draw(st.sampled_from([1, 1, 2]))
        found.append(records)
    return found


@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_both_paths_find_the_same_times_and_the_same_late_records(data: st.DataObject) -> None:
    config = {**COMPLETE, **data.draw(CONFIGS), **data.draw(LATE)}
    config |= ROUTED if "transforms" in config else {}
    records = data.draw(batches())
    flush_on_end = "files.per.partition" in config or data.draw(st.booleans())
    late_before = {"t": NOW_MS - data.draw(st.integers(0, 4 * HOUR_MS))} if data.draw(st.booleans()) else {}
    how: dict[str, Any] = {"flush_on_end": flush_on_end, "late_before": late_before}
    reference, _ = copy(config, records, columnar=False, **how)
    columnar, _ = copy(config, records, columnar=True, **how)
    assert (columnar.error, columnar) == (reference.error, reference)


def records_of(*minutes: float) -> list[list[KafkaRecord]]:
    """One batch with times in minutes from the full hour before the run's clock, from offset 0."""
    hour = NOW_MS // HOUR_MS * HOUR_MS
    values = [json.dumps({"minute": minute}).encode() for minute in minutes]
    stamps = [round(hour + minute * 60_000) for minute in minutes]
    return [[KafkaRecord("t", 0, n, None, v, t) for n, (v, t) in enumerate(zip(values, stamps, strict=True))]]


PAST = NOW_MS // HOUR_MS * HOUR_MS


@pytest.mark.parametrize("columnar", [False, True])
def test_times_of_what_is_left_for_the_next_run_are_told_apart(columnar: bool) -> None:
    records = records_of(-200, -100, -150, -120, -90)
    config = {**COMPLETE, "flush.size": "3"}
    outcome, _ = copy(config, records, columnar=columnar, flush_on_end=False)
    times = times_of(outcome.reports[0].details)
    assert times is not None
    assert times.highest_ms == PAST - 100 * 60_000
    assert times.left_from_ms == PAST - 120 * 60_000
    assert len(times.directories) == 3


@pytest.mark.parametrize("columnar", [False, True])
def test_late_records_go_below_a_directory_of_their_own(columnar: bool) -> None:
    config = {**COMPLETE, "late.records": "directory", "flush.size": "100"}
    outcome, in_columns = copy(
        config, records_of(-130, -61, -1, -121), columnar=columnar, late_before={"t": PAST - HOUR_MS}
    )
    late = [file for file in outcome.files if "/t/_late/year=" in file[0]]
    assert (len(late), sum(file[3] for file in late)) == (2, 3)
    assert sum(file[3] for file in outcome.files) == 4
    assert outcome.reports[0].details["times"]["late"] == 3
    assert in_columns == (4 if columnar else 0)


@pytest.mark.parametrize("columnar", [False, True])
def test_late_records_become_dead_letters_that_say_why(columnar: bool) -> None:
    config = {
        **COMPLETE,
        **QUEUE,
        "late.records": "dlq",
        "flush.size": "100",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    outcome, _ = copy(config, records_of(-61, -1), columnar=columnar, late_before={"t": PAST - HOUR_MS})
    (letter,) = outcome.dead_letters
    assert letter["origin"] == ["t", 0, 0]
    (report,) = outcome.reports
    assert (report.written, report.dead_lettered) == (1, 1)
    assert report.details["times"]["late"] == 1
    reasons = {name: raw_bytes(value) for name, value in letter["headers"]}
    assert b"is late: its time is 2023-11-14T" in reasons["__connect.errors.exception.message"]


def test_sweep_knows_the_directory_of_late_records() -> None:
    raw = {
        "name": "c",
        "connector.class": "io.confluent.connect.s3.S3SinkConnector",
        "topics": "t",
        "s3.bucket.name": "bucket",
        "s3.region": "eu-west-1",
        "storage.class": "io.confluent.connect.s3.storage.S3Storage",
        "flush.size": "1",
        **COMPLETE,
        "late.records": "directory",
        "behavior.on.null.values": "write",
        "store.kafka.keys": "true",
    }
    regex = open_layout(S3SinkConfig.from_config(raw), raw).partitioner.directory_regex()
    hour = "year=2023/month=11/day=14/hour=22"
    for directory in (hour, f"_late/{hour}", "tombstone"):
        assert re.fullmatch(regex, directory), directory
    for directory in ("_late", f"_late/_late/{hour}", f"late/{hour}", "_late/tombstone"):
        assert re.fullmatch(regex, directory) is None, directory

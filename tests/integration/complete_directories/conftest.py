"""Fixtures of tests about complete directories, on the real broker and the real S3 server."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.copies.s3 import Sink
from tests.support.steps import Steps

HOUR_MS = 3_600_000
T13 = 1_772_629_200_000  # 2026-03-04T13:00:00Z
HOURLY = {
    "partitioner.class": "io.confluent.connect.storage.partitioner.HourlyPartitioner",
    "locale": "en",
    "timezone": "UTC",
    "timestamp.extractor": "Record",
    "complete.marker": "_SUCCESS",
}


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """Actions at the named steps of the runs of this test."""
    return Steps(monkeypatch)


@pytest.fixture
def hourly(make_topic: Callable[..., str], make_sink: Callable[..., Sink]) -> Callable[..., Sink]:
    """A sink with directories of hours: `hourly(partitions, **config)`; `_` in a key stands for `.`."""

    def make(partitions: int = 1, **config: str) -> Sink:
        sink = make_sink(make_topic(partitions=partitions))
        changes = {key.replace("_", "."): value for key, value in config.items()}
        sink.config = {**HOURLY, **changes}
        return sink

    return make


@pytest.fixture
def write(produce: Callable[..., Any]) -> Callable[..., None]:
    """`write(sink, partition, minutes...)`: records with times in minutes after 13:00 as values and timestamps."""

    def put(sink: Sink, partition: int, *minutes: float, topic: str = "") -> None:
        rows = [(partition, None, json.dumps({"minute": minute}), round(T13 + minute * 60_000)) for minute in minutes]
        produce(topic or sink.topic, rows)

    return put


def hour(sink: Sink, number: int, topic: str = "") -> str:
    """Directory of an hour of that day."""
    return f"topics/{topic or sink.topic}/year=2026/month=03/day=04/hour={number:02d}"


def markers(sink: Sink) -> list[str]:
    """Directories with a marker, sorted."""
    keys = sink.keys()
    return [key.removesuffix("/_SUCCESS") for key in keys if key.endswith("/_SUCCESS")]


def files_below(sink: Sink, prefix: str) -> list[str]:
    """Keys of files of records below a prefix."""
    keys = sink.keys()
    return [key for key in keys if key.startswith(prefix) and not key.endswith("/_SUCCESS")]


def minutes_below(sink: Sink, prefix: str) -> list[float]:
    """Minutes of all records in files below a prefix, sorted."""
    files = files_below(sink, prefix)
    return sorted(json.loads(line)["minute"] for key in files for line in sink.body(key).splitlines())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder need the servers."""
    for item in items:
        if "tests/integration/complete_directories" in str(item.path):
            item.add_marker(pytest.mark.integration)

"""Rows of the file source: log lines into one partition of a topic, each line counted back there.

Every line has a number of its own, which is what is looked for in the topic, by a consumer that sees committed records.
"""

from __future__ import annotations

import gzip
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from confluent_kafka import Consumer, KafkaError, Message
from confluent_kafka import TopicPartition as Place
from numpy.typing import NDArray

from tests.bench.file_lines import LINE, REGEX

_LINES_AT_ONCE = 100_000
_NUMBER = re.compile(rb"/page/(\d+)")
_QUIET_S, _WAIT_S = 30.0, 0.5
_STRINGS = "org.apache.kafka.connect.storage.StringConverter"
PLAIN = {"value.converter": _STRINGS}
FIELDS = {
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
    "pattern.regex": REGEX,
    "pattern.types": "status:int32,size:long",
}
BY_TIME = {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "1000"}
BY_BATCH = {"transaction.boundary": "poll"}
NO_TRANSACTIONS = {"delivery.guarantee": "at_least_once"}


@dataclass(frozen=True, slots=True)
class LogLines:
    """A file of an access log with `records` lines of some 95 bytes."""

    records: int
    is_gzip: bool = False

    @property
    def name(self) -> str:
        """Of the file."""
        return f"access-{self.records}.log" + (".gz" if self.is_gzip else "")

    def write(self, folder: Path, show: Callable[[int], None]) -> None:
        """Write the file; `show` hears how many lines are written."""
        path = folder / self.name
        folder.mkdir(exist_ok=True)
        with gzip.open(path, "wb", compresslevel=1) if self.is_gzip else path.open("wb") as out:
            for start in range(0, self.records, _LINES_AT_ONCE):
                numbers = range(start, min(start + _LINES_AT_ONCE, self.records))
                out.write("".join(LINE.format(n % 256, n // 256 % 256, n, n % 9999) for n in numbers).encode())
                show(start)


def connector(name: str, folder: Path, lines: LogLines, config: Mapping[str, str]) -> dict[str, str]:
    """A connector that copies the file into the topic `name`."""
    return {
        "name": name,
        "tasks.max": "1",
        "connector.class": "FileStreamSource",
        "topic": name,
        "file": str(folder / lines.name),
        **config,
    }


def line_numbers(values: Sequence[bytes]) -> NDArray[np.int64]:
    """The numbers of lines."""
    return np.array([int(number) for number in _NUMBER.findall(b"\n".join(values))], np.int64)


def consumed(consumer: Consumer) -> list[Message]:
    """Some messages, [] if none has come for half a minute.

    The client waits until it has as many as were asked for: with a long wait, each end of a topic would take that long.
    """
    deadline = time.monotonic() + _QUIET_S
    while time.monotonic() < deadline:
        if messages := consumer.consume(10_000, _WAIT_S):
            return list(messages)
    return []


def check_topic(
    bootstrap: str, topic: str, records: int, numbers_of: Callable[[Sequence[bytes]], NDArray[np.int64]] = line_numbers
) -> tuple[int, str]:
    """Bytes of the values in partition 0, and what is wrong: records 0 to `records - 1` must be there exactly once."""
    found, size = np.zeros(records + 1, np.int64), 0
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench-counts",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    try:
        consumer.assign([Place(topic, 0, 0)])
        while True:
            messages = consumed(consumer)
            if not messages:
                return size, f"no end of {topic} after {int(found.sum())} records"
            values = [message.value() or b"" for message in messages if message.error() is None]
            size += sum(map(len, values))
            numbers = numbers_of(values)
            np.add.at(found, np.minimum(numbers, records), 1)
            errors = [error.code() for message in messages if (error := message.error()) is not None]
            if KafkaError._PARTITION_EOF in errors:
                break
            if errors:
                return size, f"{topic} cannot be read: error {errors[0]}"
    finally:
        consumer.close()
    counts = found[:records]
    missing, doubled = int((counts == 0).sum()), int((counts > 1).sum())
    if missing or doubled or found[records]:
        return size, f"{missing} records are missing, {doubled} doubled, {int(found[records])} unknown"
    return size, ""

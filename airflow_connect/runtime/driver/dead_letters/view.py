"""Finds dead letters and shows them as a table, with a safe preview of their values."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow_connect.kafka.clients.short_lived import admin_client
from airflow_connect.kafka.reading import dead_letters
from airflow_connect.kafka.reading.dead_letters import DeadLetter, LetterFilter
from airflow_connect.runtime.driver.dead_letters.replay import queue_of, queue_reader_settings
from airflow_connect.runtime.reporting.texts import Table, format_bytes

if TYPE_CHECKING:
    from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration

PREVIEW_CHARACTERS = 40
MESSAGE_CHARACTERS = 100


@dataclass(frozen=True, slots=True)
class FoundLetters:
    """Letters of a queue.

    Attributes:
        queue: the topic.
        matching: how many there are.
        letters: some of them, in order of offsets.
    """

    queue: str
    matching: int
    letters: Sequence[DeadLetter]


def find_letters(
    configuration: SinkConfiguration, wanted: LetterFilter, limit: int, *, oldest: bool = False
) -> FoundLetters:
    """Dead letters of a connector's queue; joins no group and commits nothing.

    Args:
        configuration: the connector's.
        wanted: which letters.
        limit: at most this many, the newest unless `oldest`.
        oldest: begin with the first one.

    Raises:
        ConfigError: the connector has no queue.
        UnavailableError, AccessError: Kafka.
    """
    queue = queue_of(configuration)
    admin = admin_client(configuration.admin.settings)
    ranges = dead_letters.find_ranges(admin, queue)
    matching = 0
    kept: deque[DeadLetter] = deque(maxlen=limit)
    for letter in dead_letters.read_letters(queue_reader_settings(configuration), ranges):
        if wanted.accepts(letter):
            matching += 1
            if not oldest or matching <= limit:
                kept.append(letter)
    return FoundLetters(queue, matching, list(kept))


def describe(letter: DeadLetter) -> dict[str, Any]:
    """A letter as plain JSON."""
    origin, context = letter.origin, letter.context
    return {
        "at": letter.record.where,
        "from": "{}-{}@{}".format(*origin) if origin else None,
        "connector": letter.connector or None,
        "stage": context.get("stage"),
        "class": context.get("class.name"),
        "error": context.get("exception.class.name"),
        "message": context.get("exception.message"),
        "timestamp": letter.record.timestamp,
        "size_bytes": letter.size_bytes,
        "headers": [name for name, _ in letter.own_headers],
        "key": preview(letter.record.key),
        "value": preview(letter.record.value),
    }


def letter_table(letters: Sequence[DeadLetter], indent: int = 0) -> Table:
    """A line for each letter."""
    header = ["OFFSET", "FROM", "STAGE", "CLASS", "CONNECTOR", "TIME", "SIZE", "VALUE", "MESSAGE"]
    rows = []
    for letter in letters:
        told, record = describe(letter), letter.record
        rows.append(
            [
                f"{record.partition}@{record.offset}",
                told["from"] or "?",
                told["stage"] or "?",
                (told["class"] or "?").rpartition(".")[2],
                told["connector"] or "?",
                _time(record.timestamp),
                format_bytes(letter.size_bytes),
                told["value"],
                shown_text(told["message"] or "?", MESSAGE_CHARACTERS),
            ]
        )
    return Table(header, rows, "<<<<<<><<", indent)


def preview(data: bytes | None) -> str:
    """The beginning of a key or value, as text or else as bytes, without control characters for a terminal."""
    if data is None:
        return "null"
    head = data[: 4 * PREVIEW_CHARACTERS + 4]
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        is_cut = len(head) < len(data) and error.start >= len(head) - 3
        if not is_cut:
            return _dots("0x" + data[: PREVIEW_CHARACTERS // 2].hex(), len(data) > PREVIEW_CHARACTERS // 2)
        text = head[: error.start].decode()
    return shown_text(text, PREVIEW_CHARACTERS, is_cut=len(head) < len(data))


def shown_text(text: str, limit: int, *, is_cut: bool = False) -> str:
    """One line of at most `limit` characters, then three dots; unprintable characters are escaped."""
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[: limit + 1])
    return _dots(shown[:limit], is_cut or len(shown) > limit)


def _dots(text: str, is_cut: bool) -> str:
    return f"{text}..." if is_cut else text


def _time(timestamp_ms: int | None) -> str:
    if timestamp_ms is None:
        return "?"
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):  # outside the years that Python supports
        return str(timestamp_ms)

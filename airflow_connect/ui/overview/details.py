"""A closer look at one connector: one run in full, and its newest dead letters. Reads only, joins no group."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from airflow_connect.control.settings import ControlSettings
from airflow_connect.documents.run_detail import RunDetail
from airflow_connect.exactly_once.kafka_journal import RUN
from airflow_connect.kafka.clients.short_lived import admin_client
from airflow_connect.kafka.reading.dead_letters import LetterFilter, find_ranges, read_letters
from airflow_connect.kafka.state import runs_topic
from airflow_connect.runtime.driver.dead_letters.view import describe
from airflow_connect.ui.overview.model import Run, run_of

MOST_READ = 5_000
"""Letters that are read from the end of each partition of a queue."""
MOST_SHOWN = 20


@dataclass(frozen=True, slots=True)
class FullRun:
    """A run of the history.

    Attributes:
        run: None: the history does not have it (any more).
        report: its whole entry.
        detail: None: it had no tasks, or an earlier release wrote the entry.
    """

    run: Run | None
    report: Mapping[str, Any]
    detail: RunDetail | None


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """The newest letters of a connector.

    Attributes:
        queue: the topic.
        reasons: stage and class of the exception, and how many of the letters that were read have it.
        letters: the newest ones, as `describe` gives them, the newest first.
        is_cut: whether older letters were not read.
    """

    queue: str
    reasons: tuple[tuple[str, str, int], ...] = ()
    letters: tuple[Mapping[str, Any], ...] = ()
    is_cut: bool = False

    @property
    def total(self) -> int:
        """Letters that were read."""
        return sum(count for _, _, count in self.reasons)


def full_run(settings: ControlSettings, connector: str, run_id: str) -> FullRun:
    """A run with its tasks, partitions and files.

    Raises:
        StateError: the entry is damaged, or a newer release wrote it.
        UnavailableError, AccessError: Kafka.
    """
    admin = admin_client(settings.admin)
    topic = runs_topic.find(admin, settings.worker.runs_topic)
    records = {} if topic is None else runs_topic.read(admin, settings.reader, topic, connector)
    report = runs_topic.decode_document(RUN, connector, records, run_id)
    if report is None:
        return FullRun(None, {}, None)
    detail = report.get("detail")
    return FullRun(run_of(report), report, RunDetail.from_json(detail) if detail else None)


def newest_letters(settings: ControlSettings, connector: str, queue: str) -> DeadLetters:
    """The newest dead letters of a sink, read as the worker reads Kafka.

    Raises:
        UnavailableError, AccessError: Kafka.
    """
    ranges = find_ranges(admin_client(settings.admin), queue)
    short = [replace(r, start=max(r.start, r.end - MOST_READ)) for r in ranges]
    wanted, reasons = LetterFilter(connector), Counter[tuple[str, str]]()
    kept: deque[Mapping[str, Any]] = deque(maxlen=MOST_SHOWN)
    for letter in read_letters(settings.reader, short):
        if letter.connector and not wanted.accepts(letter):
            continue
        context = letter.context
        reasons[context.get("stage", "?"), context.get("exception.class.name", "?")] += 1
        kept.append(describe(letter))
    newest = sorted(kept, key=lambda told: told["timestamp"] or 0, reverse=True)
    counted = tuple((stage, error, count) for (stage, error), count in reasons.most_common())
    return DeadLetters(queue, counted, tuple(newest), is_cut=short != ranges)

"""What `make bench` says: what it has measured, a table on the terminal, and a CSV file of every run."""

from __future__ import annotations

import csv
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from tests.bench import last_release
from tests.bench.last_release import ROOT, Figure
from tests.bench.rows import Row


@dataclass(frozen=True, slots=True)
class Measured:
    """One run of one row. Rates count from the start of the copy (warm rows) or of the process (cold rows)."""

    row: str
    records: int
    seconds: float
    copy_seconds: float
    records_per_s: int
    copy_records_per_s: int
    cpu_s_per_million: float
    kafka_cpu_s_per_million: float
    store_cpu_s_per_million: float
    peak_memory_mb: int
    objects: int
    mb_per_million: float
    load_average: float
    problem: str = ""


COLUMNS: list[tuple[str, Any]] = [
    ("row", lambda m: m.row),
    ("copy rec/s", lambda m: f"{m.copy_records_per_s:,}"),
    ("run rec/s", lambda m: f"{m.records_per_s:,}"),
    ("run s", lambda m: f"{m.seconds:.1f}"),
    ("CPU s/M", lambda m: f"{m.cpu_s_per_million:.2f}"),
    ("Kafka", lambda m: f"{m.kafka_cpu_s_per_million:.2f}"),
    ("store", lambda m: f"{m.store_cpu_s_per_million:.2f}"),
    ("peak MB", lambda m: str(m.peak_memory_mb)),
    ("objects", lambda m: str(m.objects)),
    ("MB/M", lambda m: f"{m.mb_per_million:.1f}"),
    ("load", lambda m: f"{m.load_average:.1f}"),
]


class Progress:
    """A line on standard error that is written over; silent where that is not a terminal."""

    def __init__(self, about: str, total: int) -> None:
        self._about, self._total = about, total

    def __call__(self, done: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{self._about}: {done:,} of {self._total:,} ", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Leave the line."""
        print(f"\r{self._about}: {self._total:,}{' ' * 20}", file=sys.stderr, flush=True)


def figure_of(row: Row, found: Measured) -> Figure:
    """What is kept of a row."""
    return Figure(
        row=row.name,
        about=row.about,
        records=found.records,
        copy_rate=found.copy_records_per_s,
        run_rate=found.records_per_s,
        cpu=found.cpu_s_per_million,
        kafka_cpu=found.kafka_cpu_s_per_million,
        store_cpu=found.store_cpu_s_per_million,
        peak_mb=found.peak_memory_mb,
        objects=found.objects,
        mb_per_million=found.mb_per_million,
        load=found.load_average,
        **last_release.place(),
    )


def line(cells: list[str]) -> str:
    """A line of the table."""
    return cells[0].ljust(20) + "".join(cell.rjust(12) for cell in cells[1:-1]) + cells[-1].rjust(18)


def median(runs: list[Measured]) -> Measured:
    """The run in the middle, by CPU time."""
    ordered = sorted(runs, key=lambda run: run.cpu_s_per_million)
    middle = statistics.median_low(range(len(ordered)))
    return ordered[middle]


def write_runs(results: Sequence[Any], suffix: str = "") -> None:
    """Write a CSV file with a line for each of `results`, dataclasses of one kind, and say where it is."""
    folder = ROOT / "bench-results"
    folder.mkdir(exist_ok=True)
    path = folder / time.strftime(f"%Y%m%dT%H%M%S{suffix}.csv")
    with path.open("w", newline="") as file:
        if results:
            writer = csv.DictWriter(file, [field.name for field in fields(results[0])])
            writer.writeheader()
            writer.writerows(asdict(run) for run in results)
    print(f"Every run: {path.relative_to(ROOT)}")

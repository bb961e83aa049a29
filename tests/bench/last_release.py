"""The figures of the last release, which the page shows and each run of `make bench` is compared with.

`docs/benchmarks.csv` has a line for each row: the median run, with the commit, date and machine it was measured on.
`make bench ARGS=--keep` replaces the lines of the rows that it measured, and writes the tables of docs/benchmarks.md
from them, between two comments of each section.
"""

from __future__ import annotations

import csv
import platform
import re
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ROOT / "docs" / "benchmarks.csv"
PAGE = ROOT / "docs" / "benchmarks.md"
SLOWER = 0.67
"""A rate below this part of the last release's is said in words: machines differ by less from one run to the next."""
_SECTION = re.compile(r"(<!-- rows: (?P<rows>[^>]+) -->\n).*?(<!-- end -->)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Figure:
    """What a row was measured with. Rates are per second, CPU in seconds per million records.

    Attributes:
        about: what is copied, for people.
        copy_rate, run_rate: records a second of the copy phase, of the whole run.
        cpu, kafka_cpu, store_cpu: of our processes, the broker's, the other server's.
    """

    row: str
    about: str
    records: int
    copy_rate: int
    run_rate: int
    cpu: float
    kafka_cpu: float
    store_cpu: float
    peak_mb: int
    objects: int
    mb_per_million: float
    load: float
    commit: str
    date: str
    machine: str


def read(path: Path = FIGURES) -> dict[str, Figure]:
    """The kept figures by row, {} if there are none."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {line["row"]: _figure(line) for line in csv.DictReader(file)}


def keep(figures: Iterable[Figure], path: Path = FIGURES, page: Path = PAGE) -> None:
    """Replace the lines of these rows, and the tables of the page."""
    kept = {**read(path), **{figure.row: figure for figure in figures}}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Figure)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(figure) for figure in kept.values())
    page.write_text(with_tables(page.read_text("utf-8"), kept), "utf-8")


def with_tables(text: str, figures: Mapping[str, Figure]) -> str:
    """The text of the page with the table of each section that begins with `<!-- rows: NAME, NAME -->`."""

    def section(found: re.Match[str]) -> str:
        rows = [figures[name] for name in found["rows"].replace(",", " ").split() if name in figures]
        return f"{found[1]}{_table(rows)}{found[3]}"

    return _SECTION.sub(section, text)


def compared(row: str, records: int, copy_rate: int, cpu: float, last: Mapping[str, Figure]) -> str:
    """`0.98, CPU 1.03`: rate and CPU of a run divided by those of the last release; "-" if it has no such row."""
    before = last.get(row)
    if before is None or before.records != records or not before.copy_rate or not before.cpu:
        return "-"
    return f"{copy_rate / before.copy_rate:.2f}, CPU {cpu / before.cpu:.2f}"


def is_slower(row: str, records: int, copy_rate: int, last: Mapping[str, Figure]) -> bool:
    """Whether a row has lost a third of its rate since the last release."""
    before = last.get(row)
    return before is not None and before.records == records and copy_rate < SLOWER * before.copy_rate


def place() -> dict[str, str]:
    """Commit, date and machine of what is measured now."""
    asked = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=10"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return {
        "commit": asked.stdout.strip() or "unknown",
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{_processor()}, Python {platform.python_version()}",
    }


def _processor() -> str:
    text = Path("/proc/cpuinfo").read_text("utf-8") if Path("/proc/cpuinfo").exists() else ""
    names = re.findall(r"^model name\s*: (.+)$", text, re.MULTILINE)
    return f"{len(names)} x {names[0].strip()}" if names else platform.machine()


def _figure(line: Mapping[str, str]) -> Figure:
    kinds = {"int": int, "float": float, "str": str}
    return Figure(**{field.name: kinds[str(field.type)](line[field.name]) for field in fields(Figure)})


def _table(figures: Sequence[Figure]) -> str:
    head = (
        "| row | records/s (copy) | records/s (run) | CPU s per million | Kafka's | other server's | peak MB |"
        " objects | MB per million |\n|---|---|---|---|---|---|---|---|---|\n"
    )
    lines = "".join(
        f"| `{f.row}`: {f.about} | {f.copy_rate:,} | {f.run_rate:,} | {f.cpu:.2f} | {f.kafka_cpu:.2f}"
        f" | {f.store_cpu:.2f} | {f.peak_mb:,} | {f.objects:,} | {f.mb_per_million:.1f} |\n"
        for f in figures
    )
    return f"{head}{lines}\n{_measured(figures)}"


def _measured(figures: Sequence[Figure]) -> str:
    """Where the figures of a table are from: one sentence for each commit, day and machine."""
    groups: dict[tuple[str, str, str], list[Figure]] = {}
    for figure in figures:
        groups.setdefault((figure.commit, figure.date, figure.machine), []).append(figure)
    sentences = []
    for (commit, date, machine), members in groups.items():
        counts = sorted({member.records for member in members})
        records = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
        loads = [member.load for member in members]
        load = f"load average {min(loads):.1f} to {max(loads):.1f}"
        names = "" if len(groups) == 1 else f" ({', '.join(f'`{member.row}`' for member in members)})"
        sentences.append(f"Commit {commit}, {date}, {machine}{names}: {records} records, {load}.\n")
    return "\n".join(sentences)

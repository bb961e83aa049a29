"""The figures of `make bench ARGS=--peers`: two lines for each row, ours and the peer's, and what divides them.

`docs/side-by-side.csv` has the kept ones, and docs/benchmarks.md the table that is made from them.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from tests.bench.last_release import PAGE, ROOT

FIGURES = ROOT / "docs" / "side-by-side.csv"
OURS = "airflow_connect"
HEAD = ("row", "who copies", "records/s (copy)", "records/s (run)", "CPU s per million", "peak MB", "MB per million")
RATIO = "ours / theirs"
NONE_KEPT = "No figures are kept yet.\n"
_SECTION = re.compile(r"(<!-- peers -->\n).*?(<!-- end -->)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Side:
    """What one of both needed for a row: the median run. Rates are per second, CPU in seconds per million records.

    Attributes:
        who: OURS, or the peer with its version.
        about: what is copied, for people.
        copy_rate, run_rate: records a second of the copy alone, of the whole run.
        versions: of all programs of the row.
        problem: what is wrong with the copy, "" if nothing.
    """

    row: str
    who: str
    about: str
    records: int
    copy_rate: int
    run_rate: int
    cpu: float
    peak_mb: int
    mb_per_million: float
    load: float
    commit: str
    date: str
    machine: str
    versions: str
    problem: str = ""


Pair = tuple[Side, Side]
"""Ours and the peer's."""


def cells(pair: Pair) -> list[list[str]]:
    """Three lines for a row of the table, with the columns of HEAD: ours, the peer's, ours divided by the peer's."""
    ours, theirs = pair
    ratios = [
        f"{ours_one / theirs_one:.2f}" if theirs_one else "-"
        for ours_one, theirs_one in zip(_figures(ours), _figures(theirs), strict=True)
    ]
    return [[ours.row, *_line(ours)], ["", *_line(theirs)], ["", RATIO, *ratios]]


def read(path: Path = FIGURES) -> dict[str, Pair]:
    """The kept pairs by row, {} if there are none."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        sides = [_side(line) for line in csv.DictReader(file)]
    return {ours.row: (ours, theirs) for ours, theirs in zip(sides[::2], sides[1::2], strict=True)}


def keep(pairs: Iterable[Pair], path: Path = FIGURES, page: Path = PAGE) -> None:
    """Replace the lines of these rows, and the table of the page."""
    kept = {**read(path), **{ours.row: (ours, theirs) for ours, theirs in pairs}}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Side)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(side) for pair in kept.values() for side in pair)
    page.write_text(with_table(page.read_text("utf-8"), kept), "utf-8")


def with_table(text: str, pairs: Mapping[str, Pair]) -> str:
    """The text of the page with the table between `<!-- peers -->` and `<!-- end -->`."""
    table = _table(list(pairs.values())) if pairs else NONE_KEPT
    return _SECTION.sub(lambda found: f"{found[1]}{table}{found[2]}", text)


def _figures(side: Side) -> Sequence[float]:
    return side.copy_rate, side.run_rate, side.cpu, side.peak_mb, side.mb_per_million


def _line(side: Side) -> list[str]:
    rates = f"{side.copy_rate:,}", f"{side.run_rate:,}"
    return [side.who, *rates, f"{side.cpu:.2f}", f"{side.peak_mb:,}", f"{side.mb_per_million:.1f}"]


def _side(line: Mapping[str, str]) -> Side:
    kinds = {"int": int, "float": float, "str": str}
    return Side(**{field.name: kinds[str(field.type)](line[field.name]) for field in fields(Side)})


def _table(pairs: Sequence[Pair]) -> str:
    lines = [" | ".join(HEAD), "|".join(["---"] * len(HEAD))]
    for pair in pairs:
        ours, theirs, ratios = cells(pair)
        named = [f"`{ours[0]}`: {pair[0].about}", *ours[1:]]
        lines += [" | ".join(named), " | ".join(theirs), " | ".join(f"**{cell}**" if cell else "" for cell in ratios)]
    table = "".join(f"| {line} |\n" for line in lines).replace("| ---|", "|---|").replace("--- |", "---|")
    return f"{table}\n{_measured(pairs)}"


def _measured(pairs: Sequence[Pair]) -> str:
    """Where the figures are from: one sentence for each commit, day, machine and set of versions."""
    groups: dict[tuple[str, ...], list[Side]] = {}
    for ours, _ in pairs:
        groups.setdefault((ours.commit, ours.date, ours.machine, ours.versions), []).append(ours)
    sentences = []
    for (commit, date, machine, versions), members in groups.items():
        counts = sorted({member.records for member in members})
        records = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
        loads = [member.load for member in members]
        load = f"load average {min(loads):.1f} to {max(loads):.1f}"
        names = "" if len(groups) == 1 else f" ({', '.join(f'`{member.row}`' for member in members)})"
        sentences.append(f"Commit {commit}, {date}, {machine}, {versions}{names}: {records} records, {load}.\n")
    return "\n".join(sentences)

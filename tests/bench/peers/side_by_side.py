"""`make bench ARGS=--peers`: rows beside other programs that copy the same, in the same run, and how they compare.

For each row: ours, then the peer, which is started for it, and both again for `--repeat`. Both have copied a smaller
load before, so both are warm. The table has the medians by CPU time. Every record of every copy is counted back.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Protocol

import pyspark

import airflow_connect
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.jvm.java import find_java
from tests.bench import last_release
from tests.bench.output import Measured, write_runs
from tests.bench.peers import figures
from tests.bench.peers.figures import OURS, Pair, Side
from tests.bench.peers.pairs import PEERS, Copy, Places
from tests.bench.peers.watching import PeerRun
from tests.bench.rows import Row

WARM_RECORDS = 500_000
"""Java compiles what it has run often enough: after this many, nearly all that a copy needs."""
_WIDTHS = (18, 52, 18, 17, 19, 9, 16)


class Bench(Protocol):
    """What measures our side."""

    @property
    def places(self) -> Places:
        """Where both copy from and to."""

    def warm_up(self, rows: Sequence[Row]) -> None:
        """Start a session and let it copy a little."""

    def measure(self, row: Row) -> Measured:
        """Run a row once, count what arrived, and remove it."""


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where and with what the rows of this run are measured."""

    place: dict[str, str]
    versions: str

    def side(self, row: Row, who: str, run: Measured | PeerRun) -> Side:
        """The figures of one copy."""
        if isinstance(run, PeerRun):
            run = _measured(row, run)
        return Side(
            row=row.name,
            who=who,
            about=row.about,
            records=run.records,
            copy_rate=run.copy_records_per_s,
            run_rate=run.records_per_s,
            cpu=run.cpu_s_per_million,
            peak_mb=run.peak_memory_mb,
            mb_per_million=run.mb_per_million,
            load=run.load_average,
            **self.place,
            versions=self.versions,
            problem=run.problem,
        )


def measure_pairs(bench: Bench, rows: Sequence[Row], repeat: int, *, keep: bool) -> int:
    """Print the table, write every run, keep the medians if asked; 1 if a record was lost or doubled by anybody."""
    bench.warm_up(rows)
    origin = _Origin(last_release.place(), _versions())
    print(_line(figures.HEAD), flush=True)
    every: list[Side] = []
    pairs: list[Pair] = []
    try:
        for row in rows:
            ours, theirs = _both(bench, row, repeat, origin)
            every += [*ours, *theirs]
            pair = _median(ours), _median(theirs)
            for cells in figures.cells(pair):
                print(_line(cells), flush=True)
            problems = [f"{side.row}, {side.who}: {side.problem}" for side in (*ours, *theirs) if side.problem]
            for problem in problems:
                print(f"  FAILED {problem}", flush=True)
            pairs += [] if problems else [pair]
    finally:
        write_runs(every, "-peers")
        if keep:
            figures.keep(pairs)
    print(f"{origin.place['machine']}, {origin.versions}")
    return int(any(side.problem for side in every))


def _both(bench: Bench, row: Row, repeat: int, origin: _Origin) -> tuple[list[Side], list[Side]]:
    """Every run of ours and of the peer, in turn. The peer is started after our first run, and ended after its last."""
    warm = replace(row, load=replace(row.load, records=min(WARM_RECORDS, row.load.records)))
    if problem := bench.measure(warm).problem:
        raise RuntimeError(f"The warm-up of {row.name} failed: {problem}")
    ours: list[Side] = []
    theirs: list[Side] = []
    peer = PEERS[row.name]
    copy: Copy | None = None
    with ExitStack() as stack:
        for _ in range(repeat):
            ours.append(origin.side(row, OURS, bench.measure(row)))
            if copy is None:
                copy = stack.enter_context(peer.start(bench.places))
                if problem := copy(warm).problem:
                    raise RuntimeError(f"The warm-up of {peer.name} failed: {problem}")
            theirs.append(origin.side(row, peer.name, copy(row)))
    return ours, theirs


def _measured(row: Row, run: PeerRun) -> Measured:
    """A run of a peer in the units of ours."""
    records, millions = row.load.records, row.load.records / 1e6
    return Measured(
        row=row.name,
        records=records,
        seconds=round(run.run_s, 2),
        copy_seconds=round(run.copy_s, 2),
        records_per_s=round(records / run.run_s),
        copy_records_per_s=round(records / run.copy_s) if run.copy_s else 0,
        cpu_s_per_million=round(run.cpu_s / millions, 2),
        kafka_cpu_s_per_million=0.0,
        store_cpu_s_per_million=0.0,
        peak_memory_mb=run.peak_bytes >> 20,
        objects=0,
        mb_per_million=round(run.size_bytes / 1e6 / millions, 1),
        load_average=round(os.getloadavg()[0], 1),
        problem=run.problem,
    )


def _median(sides: Sequence[Side]) -> Side:
    ordered = sorted(sides, key=lambda side: side.cpu)
    return ordered[statistics.median_low(range(len(ordered)))]


def _versions() -> str:
    ours = f"{OURS} {airflow_connect.__version__}"
    return f"{ours}, Spark {pyspark.__version__}, broker {KafkaBroker.name}, Java {find_java().version}"


def _line(cells: Sequence[str]) -> str:
    texts, numbers = zip(cells[:2], _WIDTHS[:2], strict=True), zip(cells[2:], _WIDTHS[2:], strict=True)
    return "".join([cell.ljust(width) for cell, width in texts] + [cell.rjust(width) for cell, width in numbers])

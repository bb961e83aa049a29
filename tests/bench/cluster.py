"""A run on a cluster, calculated: the real planner divides and packs the ranges, and executors take the tasks in turn.

`python -m tests.bench.cluster` writes the tables of docs/how-to/size-a-cluster.md. No Spark and no Kafka: they follow
from the kept figures of `make bench`, from the planner, and from how fast each core is.
"""

from __future__ import annotations

import heapq
import itertools
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from airflow_connect.api.offsets import OffsetRange
from airflow_connect.api.sink import Splitting
from airflow_connect.planning.limits import RunLimits
from airflow_connect.planning.packing import cost_by_bytes, pack
from airflow_connect.planning.splitting import SplitRules, divide
from tests.bench import last_release
from tests.bench.last_release import Figure
from tests.bench.rows import Row, all_rows
from tests.bench.topics import Load

PAGE = last_release.ROOT / "docs" / "how-to" / "size-a-cluster.md"
COUNTED = (
    "raw-gzip",
    "raw-gzip-2k",
    "json-hourly",
    "json-hourly-2k",
    "json-hourly-records",
    "parquet",
    "parquet-2k",
    "parquet-3",
    "avro-parquet",
)
"""Rows of the first table."""
PARTITIONS, CORES, TASKS = 1_000, 100, (100, 200, 400, 1_000)
BACKLOG = 5_000_000_000
"""Records of 200 bytes: 1 TB."""
S_PER_RECORD = 3e-6
"""CPU time of a record, about that of `json-hourly` in docs/benchmarks.md."""
TASK_S = 0.5
"""What a task takes besides its records: its start, its Kafka client, its last requests."""
MIN_RECORDS = 1_000_000
FILE_RECORDS = 100_000
_SEED = 20
_SECTION = re.compile(r"(<!-- table: (?P<table>\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

Shape = Callable[[], list[float]]


def even() -> list[float]:
    """Every partition has as many records as the others."""
    return [1.0] * PARTITIONS


def zipf(exponent: float) -> Shape:
    """Partition number n has `n ** -exponent` times as many records as the first."""
    return lambda: [(n + 1) ** -exponent for n in range(PARTITIONS)]


def one_large(share: float) -> Shape:
    """One partition has `share` of all records."""
    return lambda: [share * (PARTITIONS - 1) / (1 - share), *[1.0] * (PARTITIONS - 1)]


SKEWS: dict[str, Shape] = {
    "every partition the same": even,
    "Zipf with exponent 0.5: the largest has 1.6 %": zipf(0.5),
    "Zipf with exponent 1: the largest has 13 %": zipf(1.0),
    "one partition has 10 %": one_large(0.1),
}


def same_speed() -> list[float]:
    """All cores are alike."""
    return [1.0] * CORES


def some_slow() -> list[float]:
    """Five of the cores are half as fast."""
    return [0.5] * 5 + [1.0] * (CORES - 5)


def uneven() -> list[float]:
    """Each core has between 0.7 and 1.3 times the speed of the average; the same ones in every run."""
    chance = random.Random(_SEED)
    return [chance.uniform(0.7, 1.3) for _ in range(CORES)]


SPEEDS: dict[str, Shape] = {
    "all alike": same_speed,
    "five at half the speed": some_slow,
    "0.7 to 1.3 times the speed": uneven,
}


@dataclass(frozen=True, slots=True)
class Result:
    """Of a run that was calculated.

    Attributes:
        tasks: how many the planner made.
        seconds: from the first task's start to the last one's end.
        ideal_s: if all cores were busy with records all the time.
    """

    tasks: int
    seconds: float
    ideal_s: float

    @property
    def times_ideal(self) -> float:
        """1: nothing is lost to skew, stragglers and starts of tasks."""
        return self.seconds / self.ideal_s


def ranges_of(shape: Shape) -> list[OffsetRange]:
    """One range for each partition, `BACKLOG` records together but for rounding."""
    weights = shape()
    total = sum(weights)
    return [OffsetRange("events", n, 0, int(BACKLOG * weight / total)) for n, weight in enumerate(weights)]


def planned(ranges: Sequence[OffsetRange], tasks_max: int, *, may_split: bool) -> list[int]:
    """Records of each task, in the order in which Spark starts them."""
    measured = {"events": 200.0}
    if may_split:
        rules = SplitRules(lambda: Splitting(multiple_of=FILE_RECORDS), MIN_RECORDS)
        ranges = divide(ranges, tasks_max, cost_by_bytes(measured), measured, rules).ranges
    return [sum(len(r) for r in task.ranges) for task in pack(ranges, tasks_max, measured, RunLimits())]


def run(records: Sequence[int], speeds: Sequence[float]) -> Result:
    """Each core takes the next task as soon as it is free, as Spark's executors do."""
    free = [(0.0, number) for number in range(len(speeds))]
    heapq.heapify(free)
    for count in records:
        since, core = free[0]
        heapq.heapreplace(free, (since + TASK_S + count * S_PER_RECORD / speeds[core], core))
    ideal_s = sum(records) * S_PER_RECORD / sum(speeds)
    busy = {core: end for end, core in free}
    return Result(len(records), max(busy.values()), ideal_s)


def record_bytes(row: Row) -> float:
    """Average size of a value in the row's topic, of the first thousand."""
    load = row.load
    if not isinstance(load, Load):
        raise TypeError(f"The row {row.name} does not copy a topic.")
    values = [value for _, value, _ in itertools.islice(load.rows(), 1000)]
    return sum(map(len, values)) / len(values)


def cores(figures: Mapping[str, Figure]) -> Iterator[str]:
    """How many cores copy 1 TB of values in an hour, from the CPU time that each row has needed."""
    rows = {row.name: row for row in all_rows(4_000_000)}
    yield "| row | bytes of a value | CPU s per million | MB/s of a core | cores for 1 TB an hour | Kafka's cores |"
    yield "|---|---|---|---|---|---|"
    for name in COUNTED:
        figure, size = figures[name], record_bytes(rows[name])
        per_hour = 1e12 / size / 1e6
        yield (
            f"| `{name}`: {figure.about} | {size:,.0f} | {figure.cpu:.2f} | {size / figure.cpu:,.0f}"
            f" | {per_hour * figure.cpu / 3600:.1f} | {per_hour * figure.kafka_cpu / 3600:.1f} |"
        )


def skew() -> Iterator[str]:
    """Partitions of different sizes, on cores that are alike."""
    yield "| records | `tasks.max` | `split.partitions=false` | `split.partitions=true` |"
    yield "|---|---|---|---|"
    for name, shape in SKEWS.items():
        ranges = ranges_of(shape)
        for tasks_max in (CORES, 4 * CORES):
            one, shared = (
                run(planned(ranges, tasks_max, may_split=may_split), same_speed()) for may_split in (False, True)
            )
            yield f"| {name} | {tasks_max} | {_cell(one)} | {_cell(shared)} |"


def stragglers() -> Iterator[str]:
    """Partitions of the same size, on cores that are not alike."""
    yield f"| {CORES} cores | " + " | ".join(f"`tasks.max={tasks}`" for tasks in TASKS) + " |"
    yield "|---|" + "---|" * len(TASKS)
    ranges = ranges_of(even)
    for name, speeds in SPEEDS.items():
        results = [run(planned(ranges, tasks_max, may_split=True), speeds()) for tasks_max in TASKS]
        yield f"| {name} | " + " | ".join(map(_cell, results)) + " |"


def with_tables(text: str, figures: Mapping[str, Figure]) -> str:
    """The text of the page with the tables between its comments."""
    tables = {"cores": lambda: cores(figures), "skew": skew, "stragglers": stragglers}
    return _SECTION.sub(lambda found: f"{found[1]}{chr(10).join(tables[found['table']]())}\n{found[3]}", text)


def _cell(result: Result) -> str:
    return f"{result.seconds:.0f} s, {result.times_ideal:.2f}"


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text("utf-8"), last_release.read()), "utf-8")

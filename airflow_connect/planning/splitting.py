"""Divides large partitions among tasks: which ranges are cut, and at which offsets.

A cut is worth it only if the largest task becomes smaller by it. It is allowed only where it is like the end of a run:
files end there anyway (`flush.on.end=true`), and nothing but offsets passes from one record to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.sink import Splitting
from airflow_connect.planning.packing import Cost, largest_load

BYTES_OF_A_RANGE = 256 << 20
"""Encoded bytes, as the last run wrote them, that make a range worth a task, however few records they are."""

EVEN_ENOUGH = 1.1
"""The largest task may have so many times the work of the average one before partitions are divided further."""
_NAMED = 3


@dataclass(frozen=True, slots=True)
class SplitRules:
    """What may be cut.

    Attributes:
        splitting: what the run allows; asked only if a cut is worth it.
        min_records: smallest number of offsets in a range.
    """

    splitting: Callable[[], Splitting]
    min_records: int


@dataclass(frozen=True, slots=True)
class Divided:
    """Ranges to pack, and sentences about partitions that were divided, or could not be."""

    ranges: tuple[OffsetRange, ...]
    notes: tuple[str, ...] = ()


def divide(
    ranges: Sequence[OffsetRange], tasks_max: int, cost: Cost, bytes_per_record: Mapping[str, float], rules: SplitRules
) -> Divided:
    """Cut ranges so that at most `tasks_max` tasks have about the same work, if that is allowed.

    Ranges of a partition cover it exactly and in order, and there are at most `tasks_max` of them. The result depends
    on the arguments only.

    Args:
        ranges: at most one per partition.
        tasks_max: number of tasks.
        cost: work of a range, proportional to its number of offsets.
        bytes_per_record: encoded bytes by topic, as the last run measured them.
        rules: what may be cut.
    """
    whole = tuple(ranges)
    fair = sum(map(cost, whole)) / tasks_max

    def least(r: OffsetRange) -> int:
        measured = bytes_per_record.get(r.topic, 0.0)
        return min(rules.min_records, max(1, int(BYTES_OF_A_RANGE / measured))) if measured > 0 else rules.min_records

    if largest_load(whole, tasks_max, cost) <= EVEN_ENOUGH * fair:
        return Divided(whole)
    wanted = [r for r in whole if len(r) >= 2 * least(r) and cost(r) * 2 > fair]
    if not wanted:
        return Divided(whole)
    allowed = rules.splitting()
    if allowed.refused:
        return Divided(whole, _told(_too_large(wanted, cost, fair), tasks_max, allowed.refused))
    multiple = max(1, allowed.multiple_of)
    best = whole
    for finer in (1, 2, 4):
        found = tuple(
            part for r in whole for part in cut(r, _parts(cost(r) * finer, fair, tasks_max), least(r), multiple)
        )
        if largest_load(found, tasks_max, cost) * EVEN_ENOUGH < largest_load(best, tasks_max, cost):
            best = found
        if largest_load(best, tasks_max, cost) <= EVEN_ENOUGH * fair:
            break
    uncut = {r for r in _too_large(wanted, cost, fair) if r in best}
    too_long = [r for r in wanted if r in uncut and len(r) < 2 * multiple]
    why = f"ranges have multiples of {multiple} offsets (flush.size of sinks that write files), and two do not fit"
    return Divided(best, (*_split_notes(best), *_told(too_long, tasks_max, why)))


def cut(r: OffsetRange, parts: int, least: int, multiple: int) -> tuple[OffsetRange, ...]:
    """Cut a range into at most `parts`, of about the same length and each of at least `least` offsets.

    Every part but the last has a multiple of `multiple` offsets.
    """
    shortest = -(-max(1, least) // multiple) * multiple
    count = max(1, min(parts, len(r) // shortest))
    starts = [r.start + len(r) * number // (count * multiple) * multiple for number in range(count)]
    return tuple(replace(r, start=start, end=end) for start, end in zip(starts, [*starts[1:], r.end], strict=True))


def _parts(work: float, fair: float, tasks_max: int) -> int:
    return min(tasks_max, -int(-work // fair)) if fair > 0 else 1


def _too_large(ranges: Sequence[OffsetRange], cost: Cost, fair: float) -> list[OffsetRange]:
    """Those that keep a task busy for longer than the average."""
    return [r for r in ranges if cost(r) > EVEN_ENOUGH * fair]


def _told(ranges: Sequence[OffsetRange], tasks_max: int, why: str) -> tuple[str, ...]:
    if not ranges:
        return ()
    return (f"tasks.max={tasks_max}, but one task copies {_names([r.topic_partition for r in ranges])}: {why}.",)


def _split_notes(ranges: Sequence[OffsetRange]) -> tuple[str, ...]:
    numbers: dict[TopicPartition, int] = {}
    for r in ranges:
        numbers[r.topic_partition] = numbers.get(r.topic_partition, 0) + 1
    divided = [f"{tp} into {number} ranges" for tp, number in sorted(numbers.items()) if number > 1]
    return (f"Several tasks share a partition: {_few(divided)}.",) if divided else ()


def _names(partitions: Sequence[TopicPartition]) -> str:
    every = [str(tp) for tp in sorted(partitions)]
    return f"all of {every[0]}" if len(every) == 1 else f"each of {_few(every)}"


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more

"""Topics against lag and retention, and workers."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from airflow_connect.airflow.pages.calls import Call
from airflow_connect.airflow.pages.rendering import render
from airflow_connect.control.overview.model import Connector, Overview


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic that sinks read.

    Attributes:
        records: offsets that the log holds.
        readers: connectors with their lag in this topic, the longest first.
        share: how much of the log the slowest of them has not copied, from 0 to 1.
        lost: connectors whose next record the log has deleted already, with the number of offsets.
    """

    topic: str
    partitions: int
    records: int
    readers: tuple[tuple[Connector, int], ...]
    share: float
    lost: tuple[tuple[str, int], ...]


def topics_of(overview: Overview) -> list[TopicRow]:
    """Topics, those that may lose data first."""
    places: dict[str, dict[int, int]] = defaultdict(dict)
    lags: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    lost: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    shares: dict[str, float] = defaultdict(float)
    for connector in overview.connectors.values():
        for position in connector.positions:
            size = position.end - position.beginning
            places[position.topic][position.partition] = size
            lags[position.topic][connector.name] += position.lag
            shares[position.topic] = max(shares[position.topic], min(1.0, position.lag / size) if size > 0 else 0.0)
            if position.committed is not None and position.committed < position.beginning:
                lost[position.topic][connector.name] += position.beginning - position.committed
    rows = []
    for topic, held in places.items():
        readers = sorted(lags[topic].items(), key=lambda reader: (-reader[1], reader[0]))
        known = tuple((overview.connectors[name], lag) for name, lag in readers)
        row = TopicRow(topic, len(held), sum(held.values()), known, shares[topic], tuple(lost[topic].items()))
        rows.append(row)
    return sorted(rows, key=lambda row: (not row.lost, -row.share, row.topic))


def page(call: Call) -> str:
    """The page."""
    seen = call.seen()
    overview = seen.value
    return render(
        "cluster.html",
        **call.shell("Cluster", "cluster", seen),
        topics=topics_of(overview) if overview else [],
        workers=overview.workers if overview else {},
    )

"""Topics against lag and retention, and workers."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass

from airflow_connect.ui.overview.model import Connector, Overview
from airflow_connect.ui.overview.retention import Deadline
from airflow_connect.ui.pages.calls import Call
from airflow_connect.ui.pages.rendering import render, span_of


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


@dataclass(frozen=True, slots=True)
class Risk:
    """When a topic loses data, as text, and how bad that is."""

    text: str
    kind: str


def risk_of(deadline: Deadline) -> Risk:
    """What the page says about a topic with lag."""
    left_s = deadline.at_ms / 1000 - time.time()
    retention = span_of(deadline.retention_ms / 1000)
    kept = f"{deadline.connector} is at a record of {deadline.place} that Kafka keeps for {retention}"
    if left_s <= 0:
        return Risk(f"✗ This topic may lose data now: {kept}.", "bad")
    kind = deadline.urgency(time.time() * 1000)
    sign = {"bad": "✗ ", "warn": "! "}.get(kind, "")
    return Risk(f"{sign}This topic loses data in {span_of(left_s)}: {kept}.", kind)


def page(call: Call) -> str:
    """The page."""
    seen = call.seen()
    overview = seen.value
    known = call.console.deadlines(call.conn_id) if overview else None
    return render(
        "cluster.html",
        **call.shell("Cluster", "cluster", seen),
        topics=topics_of(overview) if overview else [],
        unknown=sorted(name for name, c in overview.connectors.items() if c.lag_problem) if overview else [],
        risks={topic: risk_of(found) for topic, found in ((known.value if known else None) or {}).items()},
        risks_problem=known.problem if known else "",
        is_waiting=known is not None and known.value is None and not known.problem,
        workers=overview.workers if overview else {},
    )

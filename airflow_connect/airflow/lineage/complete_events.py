"""An asset event for each complete time directory, so that a DAG can be scheduled when an hour is complete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, AssetAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_connect.documents.run import RunReport

MOST_EVENTS = 100
"""Maximum number of events of one run: a first run over years would otherwise fill Airflow's database. The directories
that end last get events."""

_IN_EVENTS = {"size_bytes": "bytes"}
"""Members of a document that have another name in events."""


def alias_of(asset: Asset) -> AssetAlias:
    """The outlet through which events for `asset` are emitted.

    An asset that is itself an outlet of a task gets one event for every run, with or without a complete directory.
    """
    return AssetAlias(f"complete:{asset.name}"[:1500], group="airflow_connect")


def emit(outlet_events: Any, asset: Asset, report: RunReport) -> int:
    """Emit an event of `asset` for each complete directory, in the order of their ends; returns how many there are."""
    accessor = outlet_events[alias_of(asset)]
    for directory in report.complete[-MOST_EVENTS:]:
        accessor.add(asset, extra=extra_of(directory, report))
    return min(len(report.complete), MOST_EVENTS)


def extra_of(complete: Mapping[str, Any], report: RunReport) -> Mapping[str, Any]:
    """An event: the directory, its time, its counts, and the offsets up to which its topic was copied."""
    prefix = f"{complete.get('origin', '')}-"
    offsets = {
        name: offset
        for name, offset in report.committed.items()
        if name.startswith(prefix) and name.removeprefix(prefix).isdigit()
    }
    return {
        **{_IN_EVENTS.get(name, name): value for name, value in complete.items() if name != "origin"},
        "offsets": offsets,
        "connector": report.connector,
        "run_id": report.run_id,
    }

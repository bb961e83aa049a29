"""Documents of releases whose protocol knew time directories and schemas of files, which only storage sinks have.

The connector's documents have these members since then, unchanged: `kept` has `time` and `value_schemas`, the document
for tasks has `late_before` and `schemas_before`. So a state record is read by moving them. In an earlier manifest, what
the commit keeps is only complete together with the state; `completed` adds that. Nothing else here may know the names.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_connect.api.sink_state import StateAfter

if TYPE_CHECKING:
    from airflow_connect.exactly_once.manifest import Manifest
    from airflow_connect.exactly_once.state import ConnectorState

_TIME, _SCHEMAS, _SCHEMAS_BEFORE, _LATE_BEFORE = "time", "value_schemas", "schemas_before", "late_before"
_TIMES, _SCHEMA = "times", "value_schema"
"""Members of a report of a partition: since then they are members of its `details`, as they were."""


def kept(data: Mapping[str, Any]) -> dict[str, Any]:
    """What a state record of an earlier release kept for the connector."""
    found = {name: data[name] for name in (_TIME, _SCHEMAS) if data.get(name)}
    if not any(found.get(_TIME, {}).values()):
        found.pop(_TIME, None)  # Earlier releases wrote an empty one for each connector.
    return found


def has_members(data: Mapping[str, Any]) -> bool:
    """Whether a manifest is of such a release: all of them wrote this member, even if it was empty."""
    return _LATE_BEFORE in data


def manifest(data: Mapping[str, Any]) -> dict[str, Any]:
    """The members of such a manifest as this release has them; `after` is not complete yet, see `completed`."""
    time = data.get(_TIME)
    found = {
        **data,
        "for_tasks": {name: data[name] for name in (_LATE_BEFORE, _SCHEMAS_BEFORE) if data.get(name)},
        "after": {"kept": {_TIME: time["progress"]}, **time} if time else None,
        "is_earlier": True,
    }
    if "partitions" in data:
        found["partitions"] = [_partition(report) for report in data["partitions"]]
    return found


def _partition(report: Mapping[str, Any]) -> dict[str, Any]:
    details = {name: report[name] for name in (_TIMES, _SCHEMA) if report.get(name)}
    return {"details": details, **{name: value for name, value in report.items() if name not in (_TIMES, _SCHEMA)}}


def completed(manifest: Manifest, state: ConnectorState) -> Manifest:
    """The manifest with everything that its commit keeps; itself if this release wrote it.

    Args:
        manifest: an open one.
        state: the state that was found with it.
    """
    if not manifest.is_earlier:
        return manifest
    gone = state.recreated(manifest.topic_ids)
    schemas = _schemas_after(manifest, state, gone)
    known = {name: value for name, value in state.kept.items() if name != _SCHEMAS}
    if gone and _TIME in known:
        watermarks = [entry for entry in known[_TIME]["watermarks"] if entry[0] not in gone]
        known[_TIME] = {**known[_TIME], "watermarks": watermarks}
    of_time = manifest.after or StateAfter()
    document = {**known, **of_time.kept, **({_SCHEMAS: schemas} if schemas else {})}
    if manifest.after is None and document == state.kept:
        return replace(manifest, is_earlier=False)
    return replace(manifest, after=replace(of_time, kept=document), is_earlier=False)


def _schemas_after(manifest: Manifest, state: ConnectorState, gone: Collection[str]) -> list[list[Any]]:
    """`[[schema, [[topic, partition], ...]], ...]`: what was known, what the run began with, what its files have."""
    found = {place: text for place, text in _by_place(state.kept).items() if place[0] not in gone}
    found.update(_by_place({_SCHEMAS: manifest.for_tasks.get(_SCHEMAS_BEFORE, ())}))
    for report in sorted(manifest.partitions, key=lambda report: report.range.end):
        place = (report.range.topic, report.range.partition)
        text = report.details.get(_SCHEMA, "")
        if text:
            found[place] = text
        elif report.written:
            found.pop(place, None)
    texts: dict[str, list[list[Any]]] = {}
    for place, text in sorted(found.items()):
        texts.setdefault(text, []).append(list(place))
    return [[text, places] for text, places in texts.items()]


def _by_place(document: Mapping[str, Any]) -> dict[tuple[str, int], str]:
    return {(topic, partition): text for text, places in document.get(_SCHEMAS, ()) for topic, partition in places}

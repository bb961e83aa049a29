"""Topics whose offsets do not compare with the versions of documents that earlier runs have written by key.

If a topic gets more partitions, a key may move to another one, and an index holds offsets of both. If a topic was
deleted and created again, an index that stays holds offsets of the old one. The server then refuses a newer record with
the same answer as a repeated one. So the connector keeps, from run to run and besides what `filled.py` and `indices.py`
keep: `{"partitions": {topic: number}, "grown": [topic], "recreated": {topic: {target: [index id, ...]}}}`.

A topic that has grown stays one, also in a new index: its earlier records are copied into it, too. A topic that was
created again has nothing of the old one in a new index.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from airflow_connect.api.sink_state import PlannedState
from airflow_connect.connectors.search.filled import topics_of_targets
from airflow_connect.connectors.search.indices import BEHIND, INDICES, indices_of_targets, uuid_of

if TYPE_CHECKING:
    from airflow_connect.api.sink_state import CopiedRun, PlannedRun

_VERSION, _PARTITIONS, _GROWN, _RECREATED = 1, "partitions", "grown", "recreated"
_MEMBERS = (_PARTITIONS, _GROWN, _RECREATED)
_Recreated = dict[str, dict[str, list[str]]]


def at_plan(run: PlannedRun) -> PlannedState:
    """What tasks are to know, and the document with the changes of topics since the last run."""
    filled = topics_of_targets(run.kept)
    by_key = {topic for topics in filled.values() for topic in topics}
    partitions, grown, recreated = _of_earlier_runs(run.kept)
    if not (by_key or partitions):
        return PlannedState(for_tasks=_for_tasks(run.kept))
    now, gone = Counter(one.topic for one in run.partitions), run.gone | run.forgotten
    ids = {name: sorted(found.values()) for name, found in indices_of_targets(run.kept).items()}
    for topic in sorted(by_key & gone):
        recreated[topic] = {name: ids.get(name, []) for name, topics in filled.items() if topic in topics}
    # Also those that the connector does not copy now: it may copy them again later, into the same index.
    known = by_key | partitions.keys()
    grown = {t for t in grown | known if t not in gone and (t in grown or now[t] > partitions.get(t, now[t]))}
    partitions = {
        topic: now[topic] or partitions[topic] for topic in known if now[topic] or topic in partitions.keys() - gone
    }
    others = {name: found for name, found in run.kept.items() if name not in _MEMBERS}
    kept = {**others, **_document(partitions, grown, recreated)}
    return PlannedState(for_tasks=_for_tasks(kept), kept=None if kept == run.kept else kept)


def state_after(run: CopiedRun, filled: Mapping[str, Any]) -> dict[str, Any]:
    """The members of the document after a run; `filled`: those that `filled.py` keeps."""
    partitions, grown, recreated = _of_earlier_runs(run.planned.kept)
    now = Counter(one.topic for one in run.planned.partitions)
    by_key = {topic for topics in topics_of_targets(filled).values() for topic in topics}
    partitions |= {topic: now[topic] for topic in by_key if now[topic]}
    for report in run.reports:
        seen = {name: [index] for name, index in report.details.get(INDICES, {}).items()}
        seen |= {name: list(found.values()) for name, found in report.details.get(BEHIND, {}).items()}
        for targets in recreated.values():
            for name in seen.keys() & targets.keys():
                if not _are_same(targets[name], seen[name]):
                    del targets[name]
    return _document(partitions, grown, {topic: targets for topic, targets in recreated.items() if targets})


def are_mixed(state: Mapping[str, Any], topic: str, target: str, ids: Collection[str]) -> bool:
    """Whether versions in a target may be offsets of another partition, or of an earlier topic.

    Args:
        state: `PlannedState.for_tasks`.
        topic: in Kafka.
        target: where its documents are.
        ids: of the indices that the target has now; empty if they cannot be seen.
    """
    _, grown, recreated = _of_earlier_runs(state)
    before = recreated.get(topic, {}).get(target)
    return topic in grown or (before is not None and _are_same(before, ids))


def _are_same(before: Collection[str], now: Collection[str]) -> bool:
    """Whether a target has an index that it had; also if that is not known."""
    return not before or not now or bool({*map(uuid_of, before)} & {*map(uuid_of, now)})


def _of_earlier_runs(kept: Mapping[str, Any]) -> tuple[dict[str, int], set[str], _Recreated]:
    """Nothing for the document of another class."""
    if kept.get("v") != _VERSION:
        return {}, set(), {}
    recreated = {topic: dict(targets) for topic, targets in kept.get(_RECREATED, {}).items()}
    return dict(kept.get(_PARTITIONS, {})), set(kept.get(_GROWN, ())), recreated


def _for_tasks(kept: Mapping[str, Any]) -> dict[str, Any]:
    _, grown, recreated = _of_earlier_runs(kept)
    return _document({}, grown, recreated)


def _document(partitions: Mapping[str, int], grown: Collection[str], recreated: _Recreated) -> dict[str, Any]:
    members = {_PARTITIONS: dict(sorted(partitions.items())), _GROWN: sorted(grown), _RECREATED: recreated}
    found: dict[str, Any] = {name: member for name, member in members.items() if member}
    return {"v": _VERSION, **found} if found else {}

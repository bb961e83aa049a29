"""What runs have written to each target: of which topics, with which ids and versions of documents.

A server compares versions as numbers: one that was an offset has nothing to do with one that a header has, or with one
that the server counts. And a document whose id is the offset of its record stays beside one whose id is the key. So
after a change of `external.version.header`, `write.method` or `key.ignore`, records are refused, or documents are
there twice, in an index that stays the same. The connector keeps, from run to run and besides what `filled.py`,
`indices.py` and `mixed.py` keep: `{"known": {target: {"topics": [topic], "forms": [form], "ids": [index id]}}}`.

It also tells a topic whose target was changed from one whose records go to many, such as one for each day.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_connect.connectors.search import keys
from airflow_connect.connectors.search.conflicts import Versions
from airflow_connect.connectors.search.filled import FILLED
from airflow_connect.connectors.search.indices import BEHIND, CREATED, INDICES, are_same

if TYPE_CHECKING:
    from airflow_connect.api.sink_state import CopiedRun
    from airflow_connect.connectors.search.config import DocumentConfig

FORMS = "forms"
"""Member of what a task returns for a partition: target -> the forms of the documents that it has written there."""
KNOWN = "known"
_TOPICS, _IDS = "topics", "ids"
_VERSION = 1
MOST_TARGETS = 500
"""Targets that are kept; of those that a run has not written, the ones whose names come last: they may end in dates."""
_COUNTED, _FIRST, _OFFSETS, _HEADER = "counted", "first", "offsets", "header "
_BY_KEY = f"{keys.BY_KEY}, "
_WORDS = {
    keys.BY_OFFSET: "ids of topic, partition and offset",
    keys.BY_SERVER: "ids that the server chooses",
    _BY_KEY + _COUNTED: "keys as ids, and versions that the server counts (write.method=upsert)",
    _BY_KEY + _FIRST: "keys as ids in a data stream",
    _BY_KEY + _OFFSETS: "keys as ids, and offsets as versions",
}


@dataclass(slots=True)
class Known:
    """What runs have written to a target.

    Attributes:
        topics: in Kafka.
        forms: of the documents; see `form_of`.
        ids: of the indices that the target had; empty if they could not be seen.
    """

    topics: set[str] = field(default_factory=set)
    forms: set[str] = field(default_factory=set)
    ids: list[str] = field(default_factory=list)


def form_of(config: DocumentConfig, topic: str) -> str:
    """What the documents of a topic (after transformations) have as ids and as versions, in a word for the state."""
    ids = config.ids_of(topic)
    if ids != keys.BY_KEY:
        return ids
    versions = config.versions_of(topic)
    if versions is Versions.FIRST:
        return _BY_KEY + _FIRST
    if config.upserts:
        return _BY_KEY + _COUNTED
    return _BY_KEY + (f"{_HEADER}{config.version_header}" if versions is Versions.HEADER else _OFFSETS)


def known_targets(kept: Mapping[str, Any]) -> dict[str, Known]:
    """What a document has; {} for that of another class."""
    found = kept.get(KNOWN)
    if kept.get("v") != _VERSION or not isinstance(found, Mapping):
        return {}
    return {
        target: Known(set(one.get(_TOPICS, ())), set(one.get(FORMS, ())), list(one.get(_IDS, ())))
        for target, one in found.items()
    }


def for_tasks(kept: Mapping[str, Any]) -> dict[str, Any]:
    """The member of the document that tasks get."""
    return {KNOWN: kept[KNOWN]} if known_targets(kept) else {}


def has_other_versions(known: Mapping[str, Known], target: str, form: str, ids: Collection[str]) -> bool:
    """Whether a target has documents by key whose versions are of another kind.

    Args:
        known: of earlier runs.
        target: where documents are written.
        form: of them.
        ids: of the indices that the target has now; empty if they cannot be seen.
    """
    before = known.get(target)
    if before is None or not form.startswith(_BY_KEY) or not are_same(before.ids, ids):
        return False
    return any(one.startswith(_BY_KEY) for one in before.forms - {form})


def is_one_of_many(known: Mapping[str, Known], target: str, topics: Collection[str]) -> bool:
    """Whether a target is new, and the records of its topics go to several: a new one is no surprise."""
    return target not in known and any(len(_targets_of(known, topic)) > 1 for topic in topics)


def state_after(run: CopiedRun) -> tuple[dict[str, Any], list[str]]:
    """The member of the document after a run, and notes about targets whose documents are of several forms."""
    before, now = known_targets(run.planned.kept), _written(run)
    notes = [*_notes_on_forms(before, now), *_notes_on_targets(before, now, run)]
    for target, found in now.items():
        earlier = before.get(target, Known())
        if are_same(earlier.ids, found.ids):
            found.topics |= earlier.topics
            found.forms |= earlier.forms
            found.ids = found.ids or earlier.ids
    known = before | now
    members = {
        target: {_TOPICS: sorted(one.topics), FORMS: sorted(one.forms), **({_IDS: one.ids} if one.ids else {})}
        for target, one in sorted(known.items())
    }
    return ({KNOWN: members} if members else {}), notes


def bounded(kept: dict[str, Any], run: CopiedRun) -> dict[str, Any]:
    """The whole document, without the targets beyond `MOST_TARGETS`."""
    members = [member for member in (KNOWN, FILLED, INDICES, BEHIND) if member in kept]
    targets = {target for member in members for target in kept[member]}
    if len(targets) <= MOST_TARGETS:
        return kept
    written = targets & _written(run).keys()
    others = sorted(targets - written)
    stay = {*written, *others[len(others) - max(0, MOST_TARGETS - len(written)) :]}
    return kept | {member: {t: found for t, found in kept[member].items() if t in stay} for member in members}


def _written(run: CopiedRun) -> dict[str, Known]:
    found: dict[str, Known] = {}
    ids: dict[str, list[str]] = {}
    for report in run.reports:
        for target, forms in report.details.get(FORMS, {}).items():
            one = found.setdefault(target, Known())
            one.topics.add(report.range.topic)
            one.forms.update(forms)
        ids |= {target: [index] for target, index in report.details.get(INDICES, {}).items()}
        ids |= {target: sorted(own.values()) for target, own in report.details.get(BEHIND, {}).items()}
    for target, one in found.items():
        one.ids = ids.get(target, [])
    return found


def _targets_of(known: Mapping[str, Known], topic: str) -> list[str]:
    return sorted(target for target, one in known.items() if topic in one.topics)


def _notes_on_forms(before: Mapping[str, Known], now: Mapping[str, Known]) -> Iterator[str]:
    for target, found in sorted(now.items()):
        earlier = before.get(target)
        if earlier is None or not are_same(earlier.ids, found.ids):
            continue
        new = found.forms - earlier.forms
        if not new or not earlier.forms:
            continue
        by_key = [form for form in (*earlier.forms, *new) if form.startswith(_BY_KEY)]
        means = []
        if len(by_key) < len(earlier.forms) + len(new):
            means.append("A record that was written before, or another one of its key, is a second document.")
        if len(by_key) > 1:
            means.append(
                "Versions of different kinds do not compare: the server may refuse newer records of a key, or replace"
                " a newer document by an older one."
            )
        yield (
            f"{target} has documents of earlier runs with {_listed(earlier.forms)}; this run has written some with"
            f" {_listed(new)}: key.ignore, external.version.header, write.method or key.ignore.id.strategy was changed."
            f" {' '.join(means)} If that is not meant, delete {target}, or use another one, and set the offsets of the"
            " connector back, to write all records again."
        )


def _notes_on_targets(before: Mapping[str, Known], now: Mapping[str, Known], run: CopiedRun) -> Iterator[str]:
    created = {name for report in run.reports for name in report.details.get(CREATED, ())}
    starts: dict[str, str] = {}
    for report in run.reports:
        if report.range.start:
            starts.setdefault(report.range.topic, f"{report.range.topic_partition} from offset {report.range.start}")
    for topic, first in sorted(starts.items()):
        earlier, written = _targets_of(before, topic), _targets_of(now, topic)
        new = [target for target in written if target not in before and target not in created]
        if len(earlier) == 1 and earlier[0] not in written and new:
            yield (
                f"The records of {topic} go to {', '.join(new)} now, and went to {earlier[0]} before. This run writes"
                f" {first} on: those before are in {earlier[0]} only, unless they were copied in another way. Set the"
                " offsets of the connector back, to write them again."
            )


def _listed(forms: Collection[str]) -> str:
    return "; ".join(_words(form) for form in sorted(forms))


def _words(form: str) -> str:
    name = form.removeprefix(_BY_KEY + _HEADER)
    return f"keys as ids, and the header {name} as versions" if name != form else _WORDS.get(form, form)

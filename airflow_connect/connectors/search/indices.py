"""The indices behind a target: whether they stay the same, and what they do to documents without an error.

A server creates an index again when a document comes for one that was deleted, and says nothing. The id of an index
(`index.uuid`) tells. One that was closed and restored from a snapshot keeps it, and gets an `index.history.uuid`, which
follows it here after a `+`. The connector keeps both from run to run, `{"v": 1, "indices": {target: id}}`, so that an
index that was deleted between two runs is named also if a run that failed has created it. Of an alias or a data stream,
it keeps `{"behind": {target: {index: id}}}`: an alias is moved to another index after a reindexing, which has copied
what the index had when it began.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_connect.api.sink_state import StateAfter
from airflow_connect.connectors.search import keys
from airflow_connect.connectors.search.keys import SearchKeys as Keys
from airflow_connect.errors import SearchError

if TYPE_CHECKING:
    from airflow_connect.api.sink_state import CopiedRun
    from airflow_connect.connectors.search.client import Answer

INDICES = "indices"
"""Member of what a task returns for its first partition: the id of each index that is a target itself."""
BEHIND = "behind"
"""Member of the same: of each alias and data stream its newest indices, with their ids."""
CREATED = "created"
"""Member of the same: targets that the task has created, and named."""
WRITTEN = "written"
"""Member of the same: of each alias the indices that have got documents of the task, with their ids."""
LOOK = (
    "?filter_path=error,status,*.settings.index.uuid,*.settings.index.history.uuid"
    ",*.settings.index.mapping.ignore_malformed,*.settings.index.translog.durability,*.mappings"
    ",*.aliases.*.is_write_index"
)
"""Options of a request that shows a target, of whose answer `Indices` is made."""
UNSEEN = "So the run cannot see whether it is deleted meanwhile, nor whether its mapping ignores values."
UNSEEN_UPSERTS = (
    f"{UNSEEN} If the mapping has _source.excludes or _source.includes, an update loses fields that _source does not"
    " keep."
)
_VERSION = 1
_SHOWN = 3
_MOST_KEPT = 20
_EARLIER = 3
_HISTORY = "+"
_IGNORES = "ignore_malformed"
_GENERATION = re.compile(r"\.ds-.*-(\d+)")


@dataclass(frozen=True, slots=True)
class Indices:
    """The indices of a target.

    Attributes:
        ids: of each index, by its name.
        ignoring: what of each index ignores values that do not fit, by its name.
        lacking: what of each index leaves fields out of `_source`, by its name.
        written: alias -> the index to which it writes, where it says so.
        late: those whose documents are on a disk only some time after the server has answered.
    """

    ids: Mapping[str, str]
    ignoring: Mapping[str, list[str]]
    lacking: Mapping[str, list[str]]
    written: Mapping[str, str]
    late: Sequence[str]

    @classmethod
    def of(cls, answer: Answer) -> Indices:
        """From the answer to a request with `LOOK`."""
        found = answer.body if answer.is_success and isinstance(answer.body, dict) else {}
        ids, ignoring, lacking = {}, {}, {}
        written: dict[str, str] = {}
        late: list[str] = []
        for name, index in sorted(found.items()):
            settings = index.get("settings", {}).get("index", {})
            parts_of_id = (settings.get("uuid"), settings.get("history", {}).get("uuid"))
            ids[name] = _HISTORY.join(str(part) for part in parts_of_id if part)
            written |= {alias: name for alias, own in index.get("aliases", {}).items() if own.get("is_write_index")}
            if str(settings.get("translog", {}).get("durability")).lower() == "async":
                late.append(name)
            whole = [f"index.mapping.{_IGNORES}"] if _is_set(settings.get("mapping", {}).get(_IGNORES)) else []
            if ignores := [*whole, *_ignoring_fields(index.get("mappings", {}), "")]:
                ignoring[name] = ignores
            source = index.get("mappings", {}).get("_source", {})
            parts = [f"_source.{key} ({', '.join(source[key])})" for key in ("excludes", "includes") if source.get(key)]
            if parts:
                lacking[name] = parts
        return cls(ids, ignoring, lacking, written, late)

    def earlier(self, target: str) -> list[str]:
        """The indices of an alias or a data stream to which it no longer writes, the newest ones; [] for an index."""
        names = sorted(self.ids)  # Their names end with a number that grows, or a date.
        if target in self.ids or len(names) < 2:
            return []
        now = self.written.get(target, names[-1])
        return [name for name in names if name != now][-_EARLIER:]

    def is_gone(self, now: Indices) -> bool:
        """Whether none of the indices is there any more."""
        return bool(self.ids) and not set(self.ids.values()) & set(now.ids.values())

    def notes(self, target: str, *, has_keys: bool, upserts: bool) -> Iterator[str]:
        """Sentences for the report.

        Args:
            target: whose indices these are.
            has_keys: whether ids of documents are keys.
            upserts: whether documents are made of records and of what the index keeps.
        """
        for index, parts in self.lacking.items() if upserts else ():
            yield (
                f"The mapping of {index} has {' and '.join(parts)}. With {Keys.upserts}={keys.UPSERT}, the server"
                " makes the new document of what _source keeps and of the record: a field that it does not keep is"
                " lost from the index with each record that does not have it. Keep the whole _source, or send all"
                " fields with each record."
            )
        if has_keys and len(self.ids) > 1:
            yield (
                f"{target} has {len(self.ids)} indices, and the server writes to one of them only. It does not know"
                " which keys the others have: a record whose key is there becomes a second document, and a deletion"
                " leaves the one that is there. Write keys to an index instead, or remove older documents yourself."
            )
        if self.late:
            yield (
                f"index.translog.durability is async for {_few(self.late)}: the server answers before documents are on"
                " a disk. If it crashes, the last ones are lost (those of index.translog.sync_interval, 5 s by"
                " default), although they count as written. Set it to request, or set the offsets of the connector"
                " back after a crash, to write them again."
            )
        for index, ignoring in self.ignoring.items():
            yield (
                f"The index {index} has {_IGNORES} ({_few(ignoring)}): a document with a value that does not fit counts"
                " as written, but no search finds it by this value. The field _ignored of the document names it."
            )


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if names[_SHOWN:] else "")


def is_of_stream(name: str) -> bool:
    """Whether an index is one of a data stream, which a policy may delete when it is no longer written to."""
    return _generation(name) >= 0


def _generation(name: str) -> int:
    """The number of an index of a data stream; -1: it is none."""
    found = _GENERATION.fullmatch(name)
    return int(found[1]) if found else -1


def _is_set(value: Any) -> bool:
    return str(value).lower() == "true"


def _ignoring_fields(mapping: Any, place: str) -> Iterator[str]:
    """Names of fields, and of dynamic templates, that ignore values that do not fit."""
    if not isinstance(mapping, dict):
        return
    if _is_set(mapping.get(_IGNORES)) and place:
        yield place
    for part in ("properties", "fields"):
        for name, inner in mapping.get(part, {}).items():
            yield from _ignoring_fields(inner, f"{place}.{name}" if place else name)
    for template in mapping.get("dynamic_templates", ()):
        for name, inner in template.items():
            if _is_set(inner.get("mapping", {}).get(_IGNORES)):
                yield f"dynamic template {name}"


def state_after(run: CopiedRun) -> StateAfter:
    """The ids of the indices that were written, and notes about those that are others than before.

    Raises:
        SearchError: tasks of the run have written to different indices of one name: no task has seen both.
    """
    known = indices_of_targets(run.planned.kept)
    now: dict[str, dict[str, str]] = {}
    created: set[str] = set()
    for report in run.reports:
        seen = {name: {name: index} for name, index in report.details.get(INDICES, {}).items()}
        seen |= report.details.get(BEHIND, {})
        for name, found in seen.items():
            before = now.get(name, found)
            if _are_others(before, found) and _are_others(found, before):
                raise gone_meanwhile(name, "this run")
        now |= seen
        created.update(report.details.get(CREATED, ()))
    later = next((f"{r.range.topic_partition} from offset {r.range.start}" for r in run.reports if r.range.start), "")
    notes = [
        note
        for name, found in sorted(now.items())
        if later and name not in created and name in known
        if (note := _note_on_changes(name, known[name], found, later))
    ]
    known |= now
    plain = {name: found[name] for name, found in known.items() if name in found}
    behind = {name: found for name, found in known.items() if name not in found}
    parts = {INDICES: plain, BEHIND: behind}
    return StateAfter(
        kept={"v": _VERSION, **{part: found for part, found in parts.items() if found}} if known else {}, notes=notes
    )


def written_by_tasks(run: CopiedRun) -> dict[str, dict[str, set[str]]]:
    """Of each alias the indices that have got documents of a run, with the ids that tasks have seen."""
    found: dict[str, dict[str, set[str]]] = {}
    for report in run.reports:
        for name, indices in report.details.get(WRITTEN, {}).items():
            for index, own in indices.items():
                found.setdefault(name, {}).setdefault(index, set()).add(own)
    return found


def check_written(name: str, written: Mapping[str, Collection[str]], now: Indices) -> None:
    """Make sure that the indices of an alias that tasks have written are there when the last one has ended.

    Raises:
        SearchError: one of them is not, or is another one: its task had ended before, and could not see it.
    """
    if any(set(ids) != {now.ids.get(index)} for index, ids in written.items()):
        raise gone_meanwhile(name, "this run")


def gone_meanwhile(name: str, who: str) -> SearchError:
    """The error about a target that was deleted, or moved, while `who` wrote to it."""
    return SearchError(
        f"{name} was deleted while {who} wrote to it, or leads to other indices now: documents that were written before"
        " are not there.",
        code="search.deleted",
        suggestion="Run again: the next run writes the records of this one again.",
    )


def newest(ids: Mapping[str, str]) -> dict[str, str]:
    """The indices to keep of an alias or a data stream: names end with a number that grows, or a date."""
    return dict(sorted(ids.items())[-_MOST_KEPT:])


def indices_of_targets(kept: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Target -> its indices, with their ids, when a run committed last; {} for the document of another class."""
    plain, behind = kept.get(INDICES, {}), kept.get(BEHIND, {})
    if kept.get("v") != _VERSION or not isinstance(plain, Mapping) or not isinstance(behind, Mapping):
        return {}
    return {name: {name: index} for name, index in plain.items()} | {
        name: dict(found) for name, found in behind.items()
    }


def _are_others(before: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Whether a target does not have any index that it had.

    Old indices of a data stream may all have been deleted by a policy: the numbers of later ones are higher.
    """
    if set(before.values()) & set(now.values()):
        return False
    last = max(map(_generation, before))
    return last < 0 or max(map(_generation, now)) <= last


def uuid_of(index: str) -> str:
    """What stays of the id of an index when it is restored from a snapshot."""
    return index.partition(_HISTORY)[0]


def _restored(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Indices that were closed, and restored from a snapshot."""
    return [
        name
        for name, index in sorted(now.items())
        if name in before and before[name] != index and uuid_of(before[name]) == uuid_of(index)
    ]


def _lost(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Indices of an alias that are gone, or others, although older ones are there: a policy deletes the oldest first.

    Of a data stream, the one that is written cannot be deleted alone.
    """
    stay = [name for name, index in before.items() if now.get(name) == index]
    return [
        name
        for name, index in sorted(before.items())
        if stay and not is_of_stream(name)
        if (name in now and uuid_of(now[name]) != uuid_of(index)) or (name not in now and name > min(stay))
    ]


def _note_on_changes(name: str, before: Mapping[str, str], now: Mapping[str, str], later: str) -> str:
    """What is said about a target that has other indices than at the last run; "": nothing."""
    if restored := _restored(before, now):
        return _note_on_restored(name, restored, later)
    if _are_others(before, now):
        return _note_on_others(name, now, later)
    lost = _lost(before, now)
    return _note_on_lost(name, lost, later) if lost else ""


def _note_on_lost(name: str, lost: Sequence[str], later: str) -> str:
    return (
        f"{name} had {_few(lost)} at the last run, which was deleted, created again or removed from it since, although"
        f" older indices of it are there. This run writes {later} on. Unless they were put there in another way, the"
        f" documents that runs have written into it are not in {name}: set the offsets of the connector back, to write"
        " them again."
    )


def _note_on_restored(name: str, restored: Sequence[str], later: str) -> str:
    of = "" if name in restored else f", of {name},"
    return (
        f"{_few(restored)}{of} was restored from a snapshot since the last run. This run writes {later} on. Documents"
        " that runs have written after the snapshot are not in it: set the offsets of the connector back to before it,"
        " to write them again."
    )


def _note_on_others(name: str, now: Mapping[str, str], later: str) -> str:
    what = (
        f"{name} is another index than the one that the last run has written: it was deleted and created again."
        if name in now
        else f"{name} has no index any more that it had at the last run ({_few(sorted(now))} now): it was moved, or"
        " deleted and created again."
    )
    return (
        f"{what} This run writes {later} on. Unless they were put there in another way, such as from a snapshot or by a"
        " reindexing that began after the last run, the records before are not in it: set the offsets of the connector"
        " back, to write them again."
    )

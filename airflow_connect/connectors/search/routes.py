"""To which targets the records of a topic go, and which ids and versions their documents have.

The server does not tell of which kind the versions of its documents are, nor that a target lacks what another one has
got. So the connector keeps, from run to run and besides what `filled.py`, `indices.py` and `mixed.py` keep:
`{"routes": {topic: {"by": hash of the configuration that chooses targets, "targets": [[name, form, ...], ...]}}}`. The
target, and the form, that a run has written last is the last one of its list.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_connect.api.config import plugins
from airflow_connect.config.keys.transform_classes import PREDICATE_KIND, TRANSFORMATION_KIND
from airflow_connect.connectors.search import keys
from airflow_connect.connectors.search.conflicts import Versions
from airflow_connect.connectors.search.indices import BEHIND, CREATED, INDICES, indices_of_targets, uuid_of
from airflow_connect.errors import ConfigError

if TYPE_CHECKING:
    from airflow_connect.api.sink_state import CopiedRun
    from airflow_connect.connectors.search.config import DocumentConfig

ROUTES = "routes"
"""Member of what a task returns for a partition: [topic after transformations, target, form] of its records."""
MOST_TARGETS = 500
"""Of a topic: those that were written longest ago are forgotten, unless one run writes more."""
_BY, _TARGETS, _SAME, _IDS = "by", "targets", "same", "ids"
_UPSERTS = "upserts"
_HEADER = f"{keys.BY_KEY}+{Versions.HEADER.value}:"
_WORDS = {
    keys.BY_OFFSET: "topic, partition and offset as ids",
    keys.BY_SERVER: "ids that the server chooses",
    f"{keys.BY_KEY}+{Versions.OFFSETS.value}": "keys as ids, and offsets as versions",
    f"{keys.BY_KEY}+{_UPSERTS}": "keys as ids, and versions that count the upserts",
    f"{keys.BY_KEY}+{Versions.FIRST.value}": "keys as ids",
}
_ROUTING = re.compile(r"(transforms|predicates)(\..*)?|data\.stream\..*|topic\.to\.external\..*|external\.resource\..*")
_SECRET = re.compile("password|secret|token|credential", re.IGNORECASE)
_MAKERS = "#"
"""Before the hash of what makes keys, in a form."""
_KEY_CONVERTER = ("key.converter", "key.converter.converter.encoding", "key.converter.schemas.enable")
_Targets = dict[str, list[str]]


def form_of(documents: DocumentConfig, topic: str, makers: str = "") -> str:
    """What the ids of a topic's documents are, and their versions if ids are keys.

    Args:
        documents: the configuration.
        topic: after transformations.
        makers: see `makers_of`.
    """
    ids = documents.ids_of(topic)
    if ids != keys.BY_KEY:
        return ids
    versions, found = documents.versions_of(topic), f"{ids}+{_UPSERTS}"
    if not documents.upserts or documents.is_stream:
        is_header = versions is Versions.HEADER
        found = f"{_HEADER}{documents.version_header}" if is_header else f"{ids}+{versions.value}"
    return f"{found}{_MAKERS}{makers}" if makers else found


def makers_of(config: Mapping[str, str]) -> str:
    """A hash of what makes keys: the connector's converter, and the transformations that may change keys."""
    kind = TRANSFORMATION_KIND
    aliases = [alias for alias in kind.aliases(config) if _may_make_keys(config.get(kind.prefix(alias) + "type", ""))]
    predicates = [config.get(kind.prefix(alias) + "predicate", "") for alias in aliases]
    prefixes = [*map(kind.prefix, aliases), *(PREDICATE_KIND.prefix(name) for name in predicates if name)]
    found = {key: config.get(key, "") for key in _KEY_CONVERTER} | {kind.list_key: ",".join(aliases)}
    found |= {key: value for key, value in config.items() if key.startswith(tuple(prefixes)) and prefixes}
    return _hash(found)


def _may_make_keys(name: str) -> bool:
    """Whether a transformation of this class may change keys: any that is not one of this package may."""
    try:
        name = plugins.resolve(TRANSFORMATION_KIND.plugin_kind, name.strip()).name
    except ConfigError:
        return True  # A class of a plugin that runs its chain itself.
    return name.endswith("Key") or name not in plugins.built_in(TRANSFORMATION_KIND.plugin_kind)


def _plain(form: str) -> str:
    """A form without what makes the keys."""
    return form.partition(_MAKERS)[0]


def _is_versioned(form: str) -> bool:
    """Whether documents have versions that a server compares."""
    return form.startswith((_HEADER, f"{keys.BY_KEY}+{Versions.OFFSETS.value}", f"{keys.BY_KEY}+{_UPSERTS}"))


def _words(form: str) -> str:
    form = _plain(form)
    header = form.removeprefix(_HEADER)
    return f"keys as ids, and the header {header} as versions" if header != form else _WORDS.get(form, form)


def for_tasks(kept: Mapping[str, Any], config: Mapping[str, str]) -> dict[str, Any]:
    """What tasks are to know of earlier runs; {}: nothing is known."""
    by, ids = _hash_of(config), indices_of_targets(kept)
    found = {}
    for topic, (before, targets) in _of_earlier_runs(kept).items():
        own = {
            name: sorted(ids[name].values())
            for name in targets
            if name in ids and any(map(_is_versioned, targets[name]))
        }
        found[topic] = {_SAME: before == by, _TARGETS: _listed(targets), _IDS: own}
    return {ROUTES: found} if found else {}


def are_changed(state: Mapping[str, Any], place: tuple[str, str], form: str, ids: Collection[str]) -> bool:
    """Whether versions in a target may be of another kind than those of the records.

    Args:
        state: `PlannedState.for_tasks`.
        place: a topic in Kafka, and the target of its records.
        form: of the records.
        ids: of the indices that the target has now; empty if they cannot be seen.
    """
    topic, target = place
    known = state.get(ROUTES, {}).get(topic, {})
    forms = {_plain(one) for one in (*_targets_in(known).get(target, ()), form) if _is_versioned(one)}
    before = known.get(_IDS, {}).get(target, ())
    return _is_versioned(form) and not _plain(form).endswith(_UPSERTS) and len(forms) > 1 and _are_same(before, ids)


def is_expected(state: Mapping[str, Any], topic: str, target: str) -> bool:
    """Whether a target is new because of the records, as after TimestampRouter: the configuration has not changed."""
    known = state.get(ROUTES, {}).get(topic, {})
    return bool(known.get(_SAME)) and target not in _targets_in(known)


class RoutesAfter:
    """What a run has written, besides what earlier ones have.

    Attributes:
        kept: the member of the document.
        forgotten: targets of which nothing is kept any more.
        notes: sentences for the report.
    """

    def __init__(self, run: CopiedRun, config: Mapping[str, str]) -> None:
        """From the reports of all tasks."""
        self.notes: list[str] = []
        self.forgotten: set[str] = set()
        self._before = indices_of_targets(run.planned.kept)
        self._now, self._created = _seen(run)
        by, consumed = _hash_of(config), {one.topic for one in run.planned.partitions}
        routes = {t: found for t, found in _of_earlier_runs(run.planned.kept).items() if t in consumed}
        written, later = _written(run)
        for topic, found in sorted(written.items()):
            before, targets = routes.get(topic, ("", {}))
            if before not in ("", by):
                self._name_new(topic, targets, [t for t in sorted(found) if t not in targets], later.get(topic, {}))
            for target, forms in sorted(found.items()):
                self._add(topic, target, targets, sorted(forms))
            for name in list(targets)[: -max(MOST_TARGETS, len(found))]:
                self.forgotten.add(name)
                del targets[name]
            routes[topic] = (by, targets)
        self.forgotten -= {name for _, targets in routes.values() for name in targets}
        parts = {topic: {_BY: before, _TARGETS: _listed(targets)} for topic, (before, targets) in routes.items()}
        self.kept: dict[str, Any] = {"v": 1, ROUTES: parts} if parts else {}

    def _add(self, topic: str, target: str, targets: _Targets, forms: Sequence[str]) -> None:
        """Keep what a run has written, as the last one, and name another form than that of before."""
        earlier = targets.pop(target, []) if self._is_same_index(target) else []
        targets.pop(target, None)
        if earlier and earlier[-1] not in forms:
            self.notes += _notes_on_form(topic, target, earlier[-1], forms[-1])
        targets[target] = [*(form for form in earlier if form not in forms), *forms]

    def _is_same_index(self, target: str) -> bool:
        return target not in self._created and _are_same(
            self._before.get(target, {}).values(), self._now.get(target, {}).values()
        )

    def _name_new(self, topic: str, earlier: _Targets, new: Sequence[str], later: Mapping[str, str]) -> None:
        """Name targets that are there already, and that lack what earlier runs have written elsewhere."""
        known = {uuid_of(one) for name in earlier for one in self._before.get(name, {}).values()}
        for target in new:
            own = {uuid_of(one) for one in self._now.get(target, {}).values()}
            if target not in later or target in self._created or own & known:
                continue
            last = list(earlier)[-1] if earlier else "another one"
            self.notes.append(
                f"Records of {topic} go to {target}, which earlier runs have not written: they went to {last}. The"
                f" configuration that chooses targets has changed. This run writes {later[target]} on. Unless the"
                f" records before were put into {target} in another way, they are not in it: set the offsets of the"
                " connector back, to write them again."
            )


def _notes_on_form(topic: str, target: str, before: str, now: str) -> Iterator[str]:
    if _plain(before) == _plain(now):
        if _MAKERS in before and _MAKERS in now:  # Earlier releases did not keep it.
            yield (
                f"What makes the ids of the documents of {topic} in {target} was changed since the last run:"
                " key.converter, or a transformation of keys. If the id of a key is another one now, its document of"
                " before stays beside the new one, and is not updated or deleted any more. Use another index, or delete"
                " this one, and set the offsets of the connector back."
            )
        return
    before, now = _plain(before), _plain(now)
    if before.partition("+")[0] != now.partition("+")[0]:
        means = (
            "The documents of before keep their ids, so that records of one key, or a record that is copied again, may"
            " be there twice, and deletions do not find them all."
        )
    elif _is_versioned(before) and _is_versioned(now) and not now.endswith(_UPSERTS):
        means = (
            "The server compares both as numbers, and refuses a newer record whose version is not higher than that of"
            " its document: such records are counted as filtered, with a note, by this run and by later ones."
        )
    else:
        return
    yield (
        f"Documents of {topic} in {target} had {_words(before)} at the last run, and have"
        f" {_words(now)} now. {means} Use another index, or delete this one, and set the offsets of the"
        " connector back."
    )


def _seen(run: CopiedRun) -> tuple[dict[str, dict[str, str]], set[str]]:
    """The indices of each target, with their ids, and the targets that the run has created."""
    now: dict[str, dict[str, str]] = {}
    created: set[str] = set()
    for report in run.reports:
        now |= {name: {name: index} for name, index in report.details.get(INDICES, {}).items()}
        now |= report.details.get(BEHIND, {})
        created.update(report.details.get(CREATED, ()))
    return now, created


def _written(run: CopiedRun) -> tuple[dict[str, dict[str, set[str]]], dict[str, dict[str, str]]]:
    """Of each topic the targets with their forms, and those that get a partition from its middle on."""
    written: dict[str, dict[str, set[str]]] = {}
    later: dict[str, dict[str, str]] = {}
    for report in run.reports:
        topic = report.range.topic
        for _, target, form in report.details.get(ROUTES, ()):
            written.setdefault(topic, {}).setdefault(target, set()).add(form)
            if report.range.start:
                place = f"{report.range.topic_partition} from offset {report.range.start}"
                later.setdefault(topic, {}).setdefault(target, place)
    return written, later


def _of_earlier_runs(kept: Mapping[str, Any]) -> dict[str, tuple[str, _Targets]]:
    """Topic -> the hash, and its targets; {} for the document of another class, or of an earlier version."""
    routes = kept.get(ROUTES)
    if kept.get("v") != 1 or not isinstance(routes, Mapping):
        return {}
    return {topic: (str(found.get(_BY, "")), _targets_in(found)) for topic, found in routes.items()}


def _targets_in(found: Mapping[str, Any]) -> _Targets:
    return {name: list(forms) for name, *forms in found.get(_TARGETS, ())}


def _listed(targets: _Targets) -> list[list[str]]:
    return [[name, *forms] for name, forms in targets.items()]


def _are_same(before: Collection[str], now: Collection[str]) -> bool:
    """Whether a target has an index that it had; also if that is not known."""
    return not before or not now or bool({*map(uuid_of, before)} & {*map(uuid_of, now)})


def _hash_of(config: Mapping[str, str]) -> str:
    """Of what decides to which targets records go."""
    return _hash({key: value for key, value in config.items() if _ROUTING.fullmatch(key)})


def _hash(config: Mapping[str, str]) -> str:
    """Of a part of the configuration, without secrets."""
    used = {key: str(value).strip() for key, value in config.items()}
    text = "\n".join(f"{key}={value}" for key, value in sorted(used.items()) if not _SECRET.search(key))
    return hashlib.sha256(text.encode()).hexdigest()[:16]

"""Transformations that send records to topics, or drop them, and that are not those of the last run.

A source continues after the last record that it copied, so topics that it fills since then lack what was copied before.
A hash of each of their keys is kept with the state of the connector, as it was written: references to config providers
stay references, and keys of secrets are left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from typing import Any

from airflow_connect.api.config import plugins
from airflow_connect.config.keys.transform_classes import PREDICATE_KIND, TRANSFORMATION_KIND, ChainKind
from airflow_connect.config.keys.transforms import PLUGIN_VERSION, PREDICATE, TYPE
from airflow_connect.counting import names, plural
from airflow_connect.errors import ConfigError

_ROUTING = ("Filter", "RegexRouter", "TimestampRouter")
"""Of the classes of this package; any other class may do so, too."""
_SHOWN = 10


def routes_of(config: Mapping[str, Any], secrets: Collection[str]) -> dict[str, str]:
    """A hash for each key that counts; never empty, so that it can be told from what is not known.

    Args:
        config: of the connector, as it was written.
        secrets: names of keys whose values are secrets.
    """
    kind = TRANSFORMATION_KIND
    aliases = [alias for alias in kind.aliases(config) if _may_route(_class_of(kind, alias, config))]
    predicates = [str(config.get(kind.prefix(alias) + PREDICATE, "")).strip() for alias in aliases]
    found = {kind.list_key: ",".join(aliases)}
    for of_kind, chosen in ((kind, aliases), (PREDICATE_KIND, predicates)):
        for alias in filter(None, chosen):
            prefix = of_kind.prefix(alias)
            found |= {key: str(value).strip() for key, value in config.items() if key.startswith(prefix)}
            found[prefix + TYPE] = _class_of(of_kind, alias, config)
            found.pop(prefix + PLUGIN_VERSION, None)
    return {key: _hash(key, value) for key, value in sorted(found.items()) if key not in secrets}


def note_of_changed_routes(before: Mapping[str, str], now: Mapping[str, str], partitions: int) -> list[str]:
    """A sentence about what has changed; [] if nothing has, or if it is of no interest.

    Args:
        before: of the last run; {}: unknown.
        now: of this run; {}: the source needs no sentence.
        partitions: how many source partitions have an offset: without one, everything is copied again.
    """
    changed = sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))
    if not (before and now and changed and partitions):
        return []
    offsets = plural(partitions, "source partition")
    note = (
        "Transformations that choose the topics of records, or drop some, were changed since the last run"
        f" ({names(changed, _SHOWN)}). The connector continues at its offsets ({offsets}), so what was read before is"
        " NOT sent again: other topics lack it, and so do all topics what was dropped. To send it again, delete these"
        " offsets, or set them back."
    )
    return [note]


def _class_of(kind: ChainKind, alias: str, config: Mapping[str, Any]) -> str:
    name = str(config.get(kind.prefix(alias) + TYPE, "")).strip()
    try:
        return plugins.resolve(kind.plugin_kind, name).name
    except ConfigError:  # A class of a plugin that runs its chain itself.
        return name


def _may_route(name: str) -> bool:
    return name not in plugins.built_in(TRANSFORMATION_KIND.plugin_kind) or name.endswith(_ROUTING)


def _hash(key: str, value: str) -> str:
    return hashlib.sha256(f"{key}={value}".encode()).hexdigest()[:16]

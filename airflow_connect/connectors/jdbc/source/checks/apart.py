"""Under what a table was last read that the runs since have not read, because it was not selected or was left out.

The settings of a connector are those of its last run. A table that this run did not read must be compared with those
under which it was read: `{"apart": {"read": [{"settings", "server", "database"}, ...], "of": {name: place}}}`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

APART = "apart"
_READ, _OF = "read", "of"
Read = Mapping[str, Any]
"""`settings`, `server` and `database` of a run."""


def read_apart(kept: Mapping[str, Any]) -> dict[str, Read]:
    """Name of a table -> what the run had that has read it last."""
    found = kept.get(APART, {})
    return {name: found[_READ][place] for name, place in found.get(_OF, {}).items()}


def apart(names: Iterable[str], before: Mapping[str, Read], last: Read, now: Read) -> dict[str, Any]:
    """The member of the document for tables that this run has not read; {} if they need none.

    Args:
        names: of these tables.
        before: see `read_apart`.
        last: of the last run, which has read the others.
        now: of this run.
    """
    distinct: list[Read] = []
    of: dict[str, int] = {}
    for name in sorted(names):
        own = before.get(name, last)
        if own == now:
            continue
        if own not in distinct:
            distinct.append(own)
        of[name] = distinct.index(own)
    return {APART: {_READ: distinct, _OF: of}} if of else {}

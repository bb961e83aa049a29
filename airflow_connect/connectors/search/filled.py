"""Which topics fill an index by key: the offsets that are its versions do not compare between topics.

No answer of the server tells that two topics have the same keys: a record with a lower offset is an older version of
the document to it, and one with an equal offset is the document itself. So the connector keeps, from run to run,
`{"v": 1, "filled": {target: [topic]}}`, and names a target that has several topics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_connect.api.sink_state import StateAfter

if TYPE_CHECKING:
    from airflow_connect.api.sink_state import CopiedRun

TARGETS = "targets"
"""Member of what a task returns for a partition: the targets of its records with offsets as versions."""
FILLED = "filled"
"""Member of the document."""
_VERSION = 1
_SHOWN = 3


def state_after(run: CopiedRun) -> StateAfter:
    """The topics of each target, those of earlier runs included, and a note about targets of several topics."""
    consumed = {partition.topic for partition in run.planned.partitions}
    now = [(target, report.range.topic) for report in run.reports for target in report.details.get(TARGETS, ())]
    filled = {target: set(topics) & consumed for target, topics in topics_of_targets(run.planned.kept).items()}
    for target, topic in now:
        filled.setdefault(target, set()).add(topic)
    kept = {target: sorted(topics) for target, topics in sorted(filled.items()) if topics}
    notes = [_note(target, kept[target]) for target in sorted({target for target, _ in now}) if len(kept[target]) > 1]
    return StateAfter(kept={"v": _VERSION, FILLED: kept} if kept else {}, notes=notes)


def topics_of_targets(kept: Mapping[str, Any]) -> Mapping[str, Sequence[str]]:
    """The topics of each target when a run committed last; {} for the document of another class."""
    filled = kept.get(FILLED)
    return filled if kept.get("v") == _VERSION and isinstance(filled, Mapping) else {}


def _note(target: str, topics: Sequence[str]) -> str:
    shown = ", ".join(topics[:_SHOWN]) + (f" and {len(topics) - _SHOWN} more" if len(topics) > _SHOWN else "")
    return (
        f"{target} is filled from {len(topics)} topics ({shown}), and the ids of its documents are the keys of records."
        " Their versions are offsets, which do not compare between topics: if two topics have the same key, a record"
        " may not be written although it counts as written, or replace a newer one. If keys can be the same, use an"
        " index for each topic, or set key.ignore=true or external.version.header."
    )

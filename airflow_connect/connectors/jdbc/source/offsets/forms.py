"""The forms of a table's name in offsets that are set or deleted by hand: of several with an offset, one counts.

A connector that comes from Kafka Connect has offsets under older forms (`positions.known_partitions`). They stay when
the table gets one under its full name, and count again when that is deleted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from airflow_connect.api.source import OffsetChanges, SourceOffset, SourcePartition
from airflow_connect.connectors.jdbc.source.offsets.positions import PROTOCOL, TABLE, partition_of
from airflow_connect.errors import ConfigError

_FORMS = ({PROTOCOL, TABLE}, {TABLE})


def check_forms(changes: OffsetChanges, committed: Iterable[tuple[SourcePartition, SourceOffset]]) -> None:
    """Refuse an offset that a fuller form of the name hides, and a deletion that uncovers an older one.

    Forms that are set or deleted in the same request are meant so, such as all offsets of a connector that moves here.

    Raises:
        ConfigError: names the forms.
    """
    changes = [(partition, offset) for partition, offset in changes if set(partition) in _FORMS]
    before = {_key(partition) for partition, _ in committed if set(partition) in _FORMS}
    untouched = before.difference(_key(partition) for partition, _ in changes)
    hiding = {_key(older): fuller for fuller in sorted(untouched) for older in _older_forms(json.loads(fuller))}
    for partition, offset in changes:
        shown = _key(partition)
        if offset is not None and shown in hiding:
            raise ConfigError(
                f"An offset of {shown} would have no effect: that of {hiding[shown]} counts for the table.",
                code="offset.refused",
                suggestion=f"Set that of {hiding[shown]} instead.",
            )
        older = [_key(other) for other in _older_forms(partition) if _key(other) in untouched]
        if offset is None and shown in before and older:
            raise ConfigError(
                f"Without the offset of {shown}, the one under an older form of the table's name would count:"
                f" {older[0]}.",
                code="offset.refused",
                suggestion="To copy the table from its beginning, delete these in one request:"
                f" {', '.join((shown, *older))}. Or set an offset instead.",
            )


def _key(partition: SourcePartition) -> str:
    return json.dumps(partition, sort_keys=True)


def _older_forms(partition: SourcePartition) -> Sequence[SourcePartition]:
    """What a table with this source partition is called in older forms."""
    if PROTOCOL not in partition:
        return ()
    parts = str(partition[TABLE]).split(".")
    shorter = [partition_of(".".join(parts[1:]))] if len(parts) == 3 else []
    return [*shorter, {TABLE: parts[-1]}]

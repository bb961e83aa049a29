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
    before = [partition for partition, _ in committed if set(partition) in _FORMS]
    changed = [partition for partition, _ in changes]
    untouched = [partition for partition in before if partition not in changed]
    for partition, offset in changes:
        if offset is not None:
            fuller = [other for other in untouched if partition in _older_forms(other)]
            if fuller:
                raise ConfigError(
                    f"An offset of {json.dumps(partition)} would have no effect: that of {json.dumps(fuller[0])} counts"
                    " for the table.",
                    code="offset.refused",
                    suggestion=f"Set that of {json.dumps(fuller[0])} instead.",
                )
        elif partition in before:
            older = [other for other in _older_forms(partition) if other in untouched]
            if older:
                raise ConfigError(
                    f"Without the offset of {json.dumps(partition)}, the one under an older form of the table's name"
                    f" would count: {json.dumps(older[0])}.",
                    code="offset.refused",
                    suggestion="To copy the table from its beginning, delete these in one request:"
                    f" {', '.join(json.dumps(one) for one in (partition, *older))}. Or set an offset instead.",
                )


def _older_forms(partition: SourcePartition) -> Sequence[SourcePartition]:
    """What a table with this source partition is called in older forms."""
    if PROTOCOL not in partition:
        return ()
    parts = str(partition[TABLE]).split(".")
    shorter = [partition_of(".".join(parts[1:]))] if len(parts) == 3 else []
    return [*shorter, {TABLE: parts[-1]}]

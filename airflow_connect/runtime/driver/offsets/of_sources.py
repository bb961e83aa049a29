"""Alters the offsets of a source, in every offsets topic that it uses, and in its offsets file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_connect.api.source import SourceConnector
from airflow_connect.errors import ConfigError
from airflow_connect.exactly_once.journal import Commit
from airflow_connect.exactly_once.state import CLOSED, COPYING, ConnectorState
from airflow_connect.kafka.state.offsets.offsets_topic import SourceOffsets
from airflow_connect.runtime.driver.offsets.altered import MOST_SHOWN, AlteredOffsets
from airflow_connect.runtime.driver.reporting import now_ms
from airflow_connect.runtime.driver.source.kafka_session import SourceSession
from airflow_connect.runtime.driver.started import ConnectorRun, Started

if TYPE_CHECKING:
    from airflow_connect.api.source import SourceOffset, SourcePartition
    from airflow_connect.runtime.driver.source.configuration import SourceConfiguration

Changes = Sequence[tuple["SourcePartition", "SourceOffset | None"]]
"""New offsets by source partition; None deletes."""


def parse_offsets(given: Any, connector: Any) -> Changes:
    """Offsets in the form of Kafka Connect's REST API: `[{"partition": {...}, "offset": {...} or None}]`.

    Raises:
        ConfigError: they have another form; the message shows the entry.
    """
    entries = given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    changes = []
    for entry in entries:
        partition, offset = (entry.get("partition"), entry.get("offset")) if isinstance(entry, Mapping) else ("", "")
        if not isinstance(partition, Mapping) or not (offset is None or isinstance(offset, Mapping)):
            raise ConfigError(
                f"The offsets of source {connector} hold {entry!r}.",
                suggestion='Expected a list as in Kafka Connect\'s REST API: [{"partition": {...}, "offset": {...}}];'
                " an offset of null is deleted.",
                config_path="offsets",
            )
        for name, value in (*partition.items(), *(offset or {}).items()):
            if isinstance(value, (Mapping, list)):
                raise ConfigError(
                    f"The offsets of source {connector} hold an object or a list as {name!r}.",
                    suggestion="Partitions and offsets may only hold text, numbers, true, false and null, as in Kafka"
                    " Connect.",  # OffsetUtils.validateFormat
                    config_path="offsets",
                )
        changes.append((dict(partition), None if offset is None else dict(offset)))
    return changes


def alter(configuration: SourceConfiguration, changes: Changes | None) -> AlteredOffsets:
    """Change offsets; `changes` None: delete all.

    Raises:
        ConnectError: see `entry.set_offsets`.
    """
    with configuration.references.hiding_errors(), SourceSession(configuration) as kafka:
        kafka.ensure_group_empty(kafka.read_state())
        journal = kafka.open_writer()
        journal.fence()
        # The claim stops tasks of a run that is still copying, as a newer run would: see source/run.py.
        known = journal.read().state or ConnectorState(configuration.name, "", CLOSED, 0)
        claimed = replace(known, run_id=configuration.run_id, phase=COPYING, at_ms=now_ms())
        journal.begin(claimed)
        kafka.fence_tasks(kafka.read_state().task_count or 0)
        offsets = kafka.take_offsets()
        kafka.write_offsets(offsets, kafka.changes_in_file(offsets))  # A standalone worker may have run it last.
        if changes is None:
            changes = [(partition, None) for partition, _ in offsets.items()]
        before = _shown(offsets, changes)
        _ask(configuration, changes, offsets)
        altered = kafka.write_offsets(offsets, changes)
        kafka.copy_to_file(offsets)
        closed = replace(claimed, phase=CLOSED, source_partitions=len(offsets))
        journal.commit(Commit(offsets={}, state=closed))
    return AlteredOffsets(configuration.name, altered, before, _shown(offsets, changes))


def _ask(configuration: SourceConfiguration, changes: Changes, offsets: SourceOffsets) -> None:
    """Let the connector refuse them."""
    config = configuration.resolved.connector.raw
    by_partition = {tuple(sorted(partition.items())): offset for partition, offset in changes}
    run = ConnectorRun(config, configuration.run_id, dict(configuration.spec.aws))
    source = Started(configuration.connector_class, run)
    source.call_unstarted("alter_offsets", lambda connector: connector.alter_offsets(dict(config), by_partition))
    if issubclass(configuration.connector_class, SourceConnector):
        committed = list(offsets.items())
        source.call_unstarted("check_altered", lambda connector: connector.check_altered(changes, committed))


def _shown(offsets: SourceOffsets, changes: Changes) -> list[dict[str, Any]]:
    found = ((partition, offsets.get(partition)) for partition, _ in changes[:MOST_SHOWN])
    return [{"partition": dict(p), "offset": None if offset is None else dict(offset)} for p, offset in found]

"""The JDBC source as a connector class."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_connect.api.source import ExactlyOnceSupport, OffsetChanges, SourceConnector, SourceOffset, SourcePartition
from airflow_connect.connectors.jdbc.source.altered import check_offsets
from airflow_connect.connectors.jdbc.source.checks.computed_numbers import note_computed_numbers
from airflow_connect.connectors.jdbc.source.checks.late_rows import LateRows, named_before
from airflow_connect.connectors.jdbc.source.checks.look import look, name_left_out
from airflow_connect.connectors.jdbc.source.checks.origin import Origin
from airflow_connect.connectors.jdbc.source.checks.set_back import Look, check_clock, check_days, check_unfinished
from airflow_connect.connectors.jdbc.source.checks.unseen import note_late_rows, note_policies
from airflow_connect.connectors.jdbc.source.discovery import (
    all_tables,
    note_inherited,
    note_merged,
    note_patterns,
    note_renamed,
    note_row_security,
    note_vanished,
    selected,
)
from airflow_connect.connectors.jdbc.source.offsets.forms import check_forms
from airflow_connect.connectors.jdbc.source.offsets.positions import (
    PROTOCOL,
    QUERY_PARTITION,
    TABLE,
    Position,
    committed_position,
    known_partitions,
    tables_with_offsets,
)
from airflow_connect.connectors.jdbc.source.offsets.ranges import Load, Reconciled
from airflow_connect.connectors.jdbc.source.offsets.start import (
    check_mode,
    note_initial,
    note_later_tables,
    start_position,
)
from airflow_connect.connectors.jdbc.source.offsets.turns import Turns, note_left
from airflow_connect.connectors.jdbc.source.offsets.unfinished import note_unfinished
from airflow_connect.connectors.jdbc.source.read.bounds import bounds, state_of
from airflow_connect.connectors.jdbc.source.read.changed import ranges_partition
from airflow_connect.connectors.jdbc.source.read.gaps import (
    GAPS,
    gaps_of,
    gaps_partition,
    reconciled_gaps,
)
from airflow_connect.connectors.jdbc.source.read.reading import Reading
from airflow_connect.connectors.jdbc.source.read.sent_ranges import RANGES, sent_partition
from airflow_connect.connectors.jdbc.source.read.snapshot import ExportedSnapshot
from airflow_connect.connectors.jdbc.source.read.time_functions import note_time_functions
from airflow_connect.connectors.jdbc.source.read.time_limit import time_limit
from airflow_connect.connectors.jdbc.source.settings import names
from airflow_connect.connectors.jdbc.source.settings.config import JdbcSourceConfig
from airflow_connect.connectors.jdbc.source.settings.keys import JdbcSourceKeys
from airflow_connect.connectors.jdbc.source.split.plan import Division, division_now, is_current, note_key_changed
from airflow_connect.connectors.jdbc.source.task import JdbcSourceTask
from airflow_connect.connectors.jdbc.source.topics import chooses_topics, with_topics
from airflow_connect.connectors.jdbc.source.values.columns import know_columns
from airflow_connect.connectors.jdbc.source.work import Item, grouped, is_of_a_table, items_of, task_config
from airflow_connect.databases.connecting import Database, is_of_a_driver
from airflow_connect.databases.failures import Failure, kind_of
from airflow_connect.databases.read_timeout import ReadTimeout, socket_of
from airflow_connect.databases.reasons import reason_of
from airflow_connect.errors import ConnectError

if TYPE_CHECKING:
    from airflow_connect.databases.identifiers import TableId

_NOT_TOLD = (Failure.OTHER, Failure.MISSING_OBJECT, Failure.PERMISSION)
"""Of statements that servers which only speak the protocol of PostgreSQL do not know, or users may not execute."""
_TABLES_AT_ONCE = 200
"""What the catalog says of their columns is in memory while they are looked at, and PostgreSQL locks each of them, its
indexes and its sequence until the transaction ends: it has room for 6,400 locks by default."""


class JdbcSourceConnector(SourceConnector):
    """Tables, or the result of a query, to topics."""

    config_def = JdbcSourceConfig.config_def()
    task_class = JdbcSourceTask
    version = "1.0"
    check_altered = staticmethod(check_forms)
    _exported: ExportedSnapshot | None = None
    _origin: Origin | None = None
    _views: frozenset[TableId] = frozenset()

    def start(self, config: Mapping[str, str]) -> None:
        """See `Connector`."""
        super().start(config)
        self._typed = JdbcSourceConfig.from_config(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """The tables with new rows, and ranges of large ones, divided among tasks; a query is one task."""
        config = self._typed
        ignored = config.connection.address.ignored
        if ignored:
            self.context.note(f"Parameters of connection.url have no effect here: {', '.join(ignored)}.")
        found = self._reconciled(self.context.offset_reader.committed())
        with (
            Database(config.connection) as database,
            database.connected() as connection,
            closing(ReadTimeout(config.read_timeout_ms / 1000)) as timeout,
            time_limit(timeout, config.connection.address, "find what is new"),
        ):
            timeout.add(socket_of(connection.connection.driver_connection))
            with database.failures("read its clock and its tables"):
                clock_us, end_us = bounds(config, database, connection, self.context.note)
                reading = Reading(config, database, connection, end_us, self.context.note)
                reading.clock_us = clock_us
                reading.progressed = timeout.progressed
                items = [Item(None, QUERY_PARTITION)] if config.query else self._tables(reading)
            division = Division(reading, found.loads, max_tasks, now_ms())
            self._late = LateRows(self.context.kept)
            self._origin = self._compared(reading, [item.table for item in items if item.table is not None])
            several = len(items) > 1
            if several and not chooses_topics(self.config):
                items = with_topics(items, config.prefix, self.context)
            waiting = self._waiting(reading, items, division, found)
            self._name_unseen(reading, waiting)
            later = [str(item.table) for item in waiting if item.table and not self._has_begun(item, found=found)]
            if later and tables_with_offsets(self.context.offset_reader.committed()):
                note_later_tables(later, self.context.note)
            new = [item for item in waiting if division.load_of(item) or self._is_new(item, found)]
            turns = Turns(self.config, self.context.kept, self.context.offset_reader.committed())
            self._keep(waiting, turns)
            with database.failures("divide large tables"):
                division.add(waiting, new, several=several)
                for item, error in division.bad:
                    self.context.leave_out(item.name, error)
                    waiting.remove(item)
                if division.divided and not self.context.only_plans:
                    self._exported = ExportedSnapshot.export(
                        config.connection, connection, division.divided, self.context.note
                    )
                state = state_of(config, database, connection) if division.divided or config.uses_timestamps else ""
        groups = division.groups() if division.divided else grouped(waiting, max_tasks)
        groups = [sorted(sorted(g, key=turns.rank), key=partial(self._has_begun, found=found)) for g in groups]
        snapshot = self._exported.snapshot.to_json() if self._exported is not None else ""
        return [task_config(self.config, part, end_us, snapshot, several=several, state=state) for part in groups]

    def _keep(self, waiting: Sequence[Item], turns: Turns) -> None:
        """Give the next run what this one has seen; with that of rows that were named, it waits for the report."""
        with_offset = tables_with_offsets(self.context.offset_reader.committed())
        late = self._late.document(with_offset.union(str(item.partition[TABLE]) for item in waiting if item.table))
        of_turns = turns.document(waiting)
        if self._origin is not None:
            at_once = self._origin.is_urgent and not self._late.has_named
            self.context.keep({**self._origin.finish(with_offset), **late, **of_turns}, at_once=at_once)
        elif self._typed.mode != names.BULK:
            self.context.keep({**self._late.without_own(self.context.kept), **late, **of_turns})

    def reconcile_offsets(self, committed: Iterable[tuple[SourcePartition, SourceOffset]]) -> OffsetChanges:
        """Replace the ranges of a table that is loaded completely by one offset (`offsets/ranges.py`).

        Without `bulk.changed.only`, hashes of ranges are deleted: what they stand for is not the last that is sent.
        """
        committed = list(committed)
        stale = [] if self._typed.changed_only else [(p, None) for p, _ in committed if RANGES in p]
        if self._typed.mode != names.INCREMENTING:
            stale += [(p, None) for p, _ in committed if GAPS in p]
        found = self._reconciled(committed)
        for table in found.restarted:
            self.context.note(
                f"The interrupted load of the table {table} begins again, because the mode or its columns were changed,"
                " or in mode bulk because query.suffix or bulk.changed.only was set or complete ranges are older than a"
                " day."
            )
        if self.context.tasks_ended and self._typed.mode == names.BULK:
            note_unfinished(self.context.limits_reached, committed, found.loads, self.context.run_id, self.context.note)
        elif self.context.tasks_ended:
            for sentence in note_left(self.context.kept, committed, self.context.limits_reached):
                self.context.note(sentence)
        gaps: OffsetChanges = []
        if self._typed.mode == names.INCREMENTING:
            # After tasks, what is kept has rows that this run names: their gaps stay until its report is written.
            named = {} if self.context.tasks_ended else named_before(self.context.kept)
            gaps = reconciled_gaps(committed, found, named)
        return [*found.changes, *stale, *gaps, *self._ranges_of_other_keys(found.loads.values())]

    def stop(self) -> None:
        """End the snapshot, if tasks shared one."""
        exported, self._exported = self._exported, None
        if exported is not None:
            exported.close()

    def source_partitions(self, task_config: Mapping[str, str]) -> Iterable[SourcePartition]:
        """Every form of the names of the task's tables, or the ranges that it reads."""
        partitions = [partition for item in items_of(task_config) for partition in item.partitions]
        if task_config.get(JdbcSourceKeys.changed_only.name, "").strip().lower() == "true":
            partitions += [of(partition) for partition in partitions for of in (ranges_partition, sent_partition)]
        if task_config.get(JdbcSourceKeys.mode.name, "").strip().lower() == names.INCREMENTING:
            partitions += [gaps_partition(partition) for partition in partitions if PROTOCOL in partition]
        return partitions

    def names_changed_topics(self, config: Mapping[str, str]) -> bool:
        """Every mode except bulk, which copies all rows in each run, unless only those that have changed."""
        is_bulk = str(config.get(JdbcSourceKeys.mode.name, "")).strip().lower() == names.BULK
        return not is_bulk or str(config.get(JdbcSourceKeys.changed_only.name, "")).strip().lower() == "true"

    def names_changed_routes(self, config: Mapping[str, str]) -> bool:
        """Every mode except bulk, which sends all rows again then."""
        return str(config.get(JdbcSourceKeys.mode.name, "")).strip().lower() != names.BULK

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        """Every mode except bulk, which reads whole tables again."""
        is_bulk = str(config.get(JdbcSourceKeys.mode.name, "")).lower() == names.BULK
        return ExactlyOnceSupport.UNSUPPORTED if is_bulk else ExactlyOnceSupport.SUPPORTED

    def alter_offsets(
        self, config: Mapping[str, str], offsets: Mapping[tuple[tuple[str, Any], ...], SourceOffset | None]
    ) -> bool:
        """Check offsets that are being altered."""
        check_offsets(offsets)
        return True

    def _tables(self, reading: Reading) -> list[Item]:
        config, note = self._typed, self.context.note
        everything = all_tables(reading.name, reading.connection, config)
        note_patterns(reading.name, everything, config, note)
        chosen = selected(everything, config, reading.database.quoting.parse, note)
        self._views = frozenset(table for table in chosen if everything[table] == "VIEW")
        gone = note_vanished(tables_with_offsets(self.context.offset_reader.committed()), everything, config, note)
        if reading.name == "postgresql":
            note_row_security(reading.connection, chosen, note)
            note_inherited(reading.connection, chosen, note)
        elif reading.name == "mysql":
            note_merged(reading.connection, chosen, note)
        if not chosen:
            note("No table of the database is selected by the configuration, so there is nothing to copy.")
        found = [(table, committed_position(table, self.context.offset_reader)) for table in chosen]
        if gone and config.mode != names.BULK:
            note_renamed([table for table, (_, offset) in found if offset is None], gone, note)
        return [Item(table, partition) for table, (partition, _) in found]

    def _name_unseen(self, reading: Reading, items: Sequence[Item]) -> None:
        """Name what a database does not show: what depends on the time, and for PostgreSQL rows that no run finds.

        Those are rows that policies hide, and rows of transactions that are open.
        """
        if not items:
            return
        try:
            opaque = [item.table for item in items if item.table is None or item.table in self._views]
            note_time_functions(reading, opaque)
            note_computed_numbers(reading, opaque)
            if reading.name == "postgresql":
                for table in opaque:
                    note_policies(reading, table)
                note_late_rows(reading, [item.table for item in items], opaque)
        except Exception as error:
            if not is_of_a_driver(error) or kind_of(error) not in _NOT_TOLD:
                raise
            reading.connection.rollback()
            self.context.note(
                f"The database does not say which rows it hides ({reason_of(error).rstrip('.')}): those of open"
                " transactions, and those that policies keep from the user, are not named."
            )

    def _compared(self, reading: Reading, tables: Sequence[TableId]) -> Origin | None:
        """What tells whether the tables are those of the last run; None: mode bulk copies all rows in any case."""
        if self._typed.mode == names.BULK:
            return None
        try:
            return Origin(reading, self.context.kept, tables)
        except Exception as error:
            if not is_of_a_driver(error) or kind_of(error) not in _NOT_TOLD:
                raise
            reading.connection.rollback()
            self.context.note(
                f"The database does not say what its tables are ({reason_of(error).rstrip('.')}), so a table that is"
                " dropped and created again is not noticed: rows at or below its offset are not copied."
            )
            return None

    def _reconciled(self, committed: Iterable[tuple[SourcePartition, SourceOffset]]) -> Reconciled:
        # If this call only shows a plan, the offsets that the last run left may not be reconciled yet.
        return Reconciled(committed, partial(is_current, self._typed), now_ms())

    def _ranges_of_other_keys(self, loads: Collection[Load]) -> OffsetChanges:
        """Deletes the ranges of interrupted loads of mode bulk whose tables have another primary key by now."""
        config, changes = self._typed, []
        if not any(load.is_bulk for load in loads):
            return []
        timeout = ReadTimeout(config.read_timeout_ms / 1000)
        limit = time_limit(timeout, config.connection.address, "look for changed primary keys")
        with Database(config.connection) as database, database.connected() as connection, closing(timeout), limit:
            timeout.add(socket_of(connection.connection.driver_connection))
            reading = Reading(config, database, connection, 0, self.context.note)
            with database.failures("look for changed primary keys"):
                tables = all_tables(reading.name, connection, config)
            named = {str(p[TABLE]): table for table in tables for p in known_partitions(table) if PROTOCOL in p}
            for load in loads:
                table = named.get(load.table)
                if table is not None and self._has_other_key(reading, table, load):
                    note_key_changed(self.context.note, f"the table {table.full_name}")
                    changes += [(partition, None) for partition in load.partitions]
        return changes

    def _has_other_key(self, reading: Reading, table: TableId, load: Load) -> bool:
        try:
            with reading.database.failures(f"look at the primary key of the table {table.full_name}"):
                return division_now(reading, table) != load.by
        except ConnectError as error:
            if not is_of_a_table(error):
                raise
            reading.connection.rollback()
            return False  # the plan cannot read the table either, and names it

    def _is_new(self, item: Item, found: Reconciled) -> bool:
        """Whether a table is read from its beginning."""
        return self._typed.mode == names.BULK or (item.table is not None and self._offset(item, found) is None)

    def _has_begun(self, item: Item, *, found: Reconciled) -> bool:
        """False for a table that begins now, with `timestamp.initial=-1`, which its task notes before it reads others.

        A run that dies in another table, or that a limit ends there, would leave it to the next run, which is later.
        """
        begins_now = self._typed.uses_timestamps and self._typed.initial_ms == -1
        return not begins_now or item.part is not None or self._offset(item, found) is not None

    def _offset(self, item: Item, found: Reconciled) -> SourceOffset | None:
        reader = self.context.offset_reader
        if item.table is None:
            return reader.offset(QUERY_PARTITION)
        return found.offsets.get(str(item.partition[TABLE])) or committed_position(item.table, reader)[1]

    def _waiting(self, reading: Reading, items: Sequence[Item], division: Division, found: Reconciled) -> list[Item]:
        """The tables at which a task must look."""
        several = len(items) > 1
        waiting: list[Item] = []
        for start in range(0, len(items), _TABLES_AT_ONCE):
            part = items[start : start + _TABLES_AT_ONCE]
            if several:
                with reading.database.failures("read the catalog"):
                    know_columns(reading.name, reading.connection, [item.table for item in part if item.table])
            waiting += [item for item in part if self._waits(reading, item, division, found, several)]
            if start + _TABLES_AT_ONCE < len(items):
                reading.connection.rollback()
        know_columns(reading.name, reading.connection, ())
        return waiting

    def _waits(self, reading: Reading, item: Item, division: Division, found: Reconciled, several: bool) -> bool:
        """Whether a task must look at a table. Of several, one that cannot be read is left out."""
        try:
            if item.table is not None:
                table = item.table
                reading.database.quoting.check_is_found("table", table.full_name, (table.schema, table.table))
            load = division.load_of(item)
            if load is None:
                return self._has_rows(reading, item, found)
            if self._typed.uses_timestamps:
                check_clock(reading, item.name, load.latest_us)
                check_days(reading, item.table, load.positions, item.name)
            if load.largest is not None and self._typed.mode == names.INCREMENTING:
                with reading.database.failures(f"look at the numbers of {item.name}"):
                    check_unfinished(reading, item.table, load.largest)
            if self._origin is not None:
                self._origin.check(item.table, Position(), is_loading=True)
                self._origin.accept(item.table)
            return load.is_bulk or not self._is_empty(reading, item)
        except ConnectError as error:
            if not several or not is_of_a_table(error):
                raise
            reading.connection.rollback()
            self.context.leave_out(item.name, error)
            return False

    def _is_empty(self, reading: Reading, item: Item) -> bool:
        """Whether a table whose load is unfinished has no row: its ranges would be complete, and no row was sent.

        It may be truncated by a job that fills it again.
        """
        with reading.database.failures(f"look for rows in {item.name}"):
            try:
                return reading.execute(reading.source(item.table).any("1 = 1", {})).fetchone() is None
            except Exception as error:
                if kind_of(error) is not Failure.MISSING_OBJECT:
                    raise
                reading.connection.rollback()
                return False  # A task leaves its ranges to the next run.

    def _has_rows(self, reading: Reading, item: Item, found: Reconciled) -> bool:
        """Whether a task must look at a table. A table that has vanished since it was listed is left out."""
        offset = self._offset(item, found)
        check_mode(self._typed, offset, item.name, self.context.note)
        if self._typed.uses_timestamps:
            check_clock(reading, item.name, Position.of(offset, item.name).reached_us)
        position = start_position(self._typed, offset, item.name)
        if not offset:
            note_initial(self._typed, reading.clock_us, self.context.note)
        if position is None:
            if self._origin is not None:
                self._origin.check(item.table, Position())
                self._origin.accept(item.table)
            with reading.database.failures(f"look at {item.name}"):
                name_left_out(reading, item.table)
            return True
        with reading.database.failures(f"look for new rows in {item.name}"):
            try:
                if self._origin is not None:
                    self._origin.check(item.table, Position.of(offset, item.name))
                seen = look(reading, item.table, position, is_committed=offset is not None)
                if self._origin is not None:
                    self._origin.accept(item.table, has_rows=seen.has_rows)
                self._name_late(reading, item, position, seen)
                return seen.has_rows
            except Exception as error:
                if item.table is None or kind_of(error) is not Failure.MISSING_OBJECT:
                    raise
                reading.connection.rollback()
                if item.table in all_tables(reading.name, reading.connection, self._typed):
                    raise  # a view of a table that is gone, for example
                self.context.note(f"{item.name[0].upper()}{item.name[1:]} does not exist any more and is skipped.")
                return False

    def _name_late(self, reading: Reading, item: Item, position: Position, seen: Look) -> None:
        """Name rows of mode incrementing that came when larger numbers were already copied."""
        if self._typed.mode != names.INCREMENTING or item.table is None:
            return
        gaps = gaps_of(self.context.offset_reader.offset(gaps_partition(item.partition)), item.name)
        told = self._origin is not None and self._origin.has_named(item.table)
        self._late.look(reading, item, position.incrementing, seen, gaps, told=told)


def now_ms() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000

"""Where a file ends: the rotation rules of one topic-partition, as a state machine without I/O.

A rotation closes *all* open files of the topic-partition, in every directory. Before a record is written, in
this order:

1. null-schema switch: the directory has seen a schema and exactly one of that and the record's is missing;
2. time, only when something is open: record time (`rotate.interval.ms`, time-based partitioners only), change
   of the directory (`rotate.file.on.partition.change`, only together with the former), schedule
   (`rotate.schedule.interval.ms`);
3. schema: incompatible with the one of the directory's file, only when something is open;
4. open files: the record needs one more than `partitioner.max.open.files`.

After it is written: size (`flush.size`). In 1-4 the record opens the next file, with size it closes its own.
Source: Confluent S3 sink (TopicPartitionWriter). Its details are kept, because file boundaries depend on them: the base
timestamp belongs to the topic-partition and is set even by records that fail afterwards; the directory of the last
written record survives a rotation; only rotations of rule 2 restart the schedule.

Confluent's HDFS sink (its TopicPartitionWriter) has rules 2, without the directory, and 3 and the size only; with
`keeps_schema` these apply here. One schema applies to all directories of the topic-partition, also across files, until
an incompatible one replaces it; records with and without a schema cannot follow each other. That sink checks the size
before a record and after the last one, which produces the same files.

Use, for each record:

    reason = rotation.before_write(directory, timestamp_ms, value_schema, now_ms)
    if reason:                       # close all open files, then ask again: the answer is None now
        rotation.rotated()
        rotation.before_write(directory, timestamp_ms, value_schema, now_ms)
    ...                              # write it, projected to rotation.current_schema(directory)
    if rotation.written(directory):  # skipped for a record that failed; close all open files
        rotation.rotated()
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from airflow_connect.layout.names.object_names import without_topic
from airflow_connect.layout.schema_compatibility import StorageSchemaCompatibility
from airflow_connect.layout.time.time_zones import DAY_MS, Zone

if TYPE_CHECKING:
    from airflow_connect.api.schema import Schema

_UTC = Zone.of("UTC")


class Reason(Enum):
    """Why files were closed; the value is the word used in reports."""

    SIZE = "size"
    INTERVAL = "interval"
    DIRECTORY_CHANGE = "directory change"
    SCHEDULE = "schedule"
    SCHEMA = "schema"
    NULL_SCHEMA = "null schema"
    OPEN_FILES = "open files"
    END_OF_RUN = "end of run"


@dataclass(frozen=True)
class RotationSettings:
    """The configuration of file boundaries; the comments name the keys.

    Attributes:
        is_time_based: whether the partitioner is; otherwise `rotate_interval_ms` is ignored.
        tombstone_directory: `tombstone.encoded.partition` when `behavior.on.null.values=write`, else None.
        keeps_schema: whether one schema applies to the whole topic-partition and outlives its files; set
            `rotate_on_directory_change` to False and `max_open_files` to -1 with it.
        is_compact: whether each directory has its own files, which only `flush_size` ends (layout/compaction.py); no
            other rule then applies.
    """

    flush_size: int  # flush.size; below 1 closes a file after every record
    rotate_interval_ms: int = -1  # rotate.interval.ms; <= 0: never
    rotate_schedule_interval_ms: int = -1  # rotate.schedule.interval.ms; <= 0: never
    zone: Zone = _UTC  # timezone
    max_open_files: int = -1  # partitioner.max.open.files; <= 0: no limit
    rotate_on_directory_change: bool = True  # rotate.file.on.partition.change
    is_time_based: bool = False
    schema_compatibility: StorageSchemaCompatibility = StorageSchemaCompatibility.NONE
    tombstone_directory: str | None = None
    keeps_schema: bool = False
    is_compact: bool = False  # files.per.partition

    @property
    def follows_record_time(self) -> bool:
        """Whether record timestamps can end a file."""
        return self.is_time_based and self.rotate_interval_ms > 0


class Rotation:
    """Rotation of one topic-partition.

    Attributes:
        record_count: records in the open files of all directories.
        open_directories: directories with an open file, in the order in which they were opened.
        schemas: schema of the first record since the last rotation, by directory; with `keeps_schema` the one that
            counts now, under "".
        base_timestamp_ms: timestamp of the first record since the last rotation.
        last_timestamp_ms: timestamp of the last record, written or not.
        last_directory: directory of the last written record, also across rotations.
    """

    def __init__(self, settings: RotationSettings, opened_ms: int, schema: Schema | None = None) -> None:
        """Begin without open files.

        Args:
            settings: the rules.
            opened_ms: instant from which the schedule counts. A run's clock stands still, so a schedule only
                fires when this is earlier than the run: pass the clock of the run that left the records behind.
            schema: with `keeps_schema`: the one that counts, of a file that ended earlier; None: the first will.
        """
        self.settings = settings
        self.record_count = 0
        self.open_directories: dict[str, None] = {}
        self.base_timestamp_ms: int | None = None
        self.last_timestamp_ms: int | None = None
        self.last_directory: str | None = None
        self.schemas: dict[str, Schema | None] = {} if schema is None else {"": schema}
        self._next_schedule_ms = self._schedule_after(opened_ms)
        self._taken: tuple[str, Schema | None] | None = None  # directory of a new schema, and the schema before

    def observe(self, timestamp_ms: int | None) -> None:
        """Record the timestamp of a record that then gets no directory; `before_write` does this too."""
        self.last_timestamp_ms = timestamp_ms
        if self.base_timestamp_ms is None:
            self.base_timestamp_ms = timestamp_ms

    def before_write(
        self, directory: str, timestamp_ms: int | None, value_schema: Schema | None, now_ms: int
    ) -> Reason | None:
        """Whether the open files must be closed before this record is written.

        Args:
            directory: the partitioner's result.
            timestamp_ms: what the timestamp extractor returned; None without one.
            value_schema: schema of the record's value.
            now_ms: wall clock, for the schedule.

        Raises:
            SchemaError: the schema cannot be compared with the current one; the record is at fault.
        """
        self.observe(timestamp_ms)
        self._taken = None
        if self.settings.keeps_schema and self.record_count == 0:
            self.take_schema(value_schema)
        place = self._place(directory)
        if place not in self.schemas:
            self._taken = place, None
            self.schemas[place] = value_schema
        current = self.schemas[place]
        if (current is None) != (value_schema is None) and not self.settings.keeps_schema:
            return Reason.NULL_SCHEMA
        if self.record_count > 0:
            reason = self._time_reason(directory, timestamp_ms, now_ms)
            if reason is not None:
                self.restart_schedule(now_ms)
                return reason
        # Called even if nothing is open: it also detects schemas that cannot be compared.
        changed = self.settings.schema_compatibility.should_change_file(value_schema, current)
        if changed and self.record_count > 0:
            return Reason.SCHEMA
        limit = self.settings.max_open_files
        if 0 < limit == len(self.open_directories) and directory not in self.open_directories:
            return Reason.OPEN_FILES
        return None

    def current_schema(self, directory: str) -> Schema | None:
        """Schema to which the next record of `directory` is projected."""
        return self.schemas.get(self._place(directory))

    def note_schema(self, directory: str, schema: Schema | None) -> None:
        """Record the schema of a record that was written."""
        self.schemas.setdefault(self._place(directory), schema)
        self._taken = None

    def take_schema(self, schema: Schema | None) -> None:
        """With `keeps_schema` and nothing open: let `schema` count from now on, if the one that counts needs that.

        Raises:
            SchemaError: exactly one of the two is missing, or they cannot be compared.
        """
        current = self.schemas.get("")
        is_first = current is None and schema is not None
        if is_first or self.settings.schema_compatibility.should_change_file(schema, current):
            self._taken = "", current
            self.schemas[""] = schema

    def refused(self) -> None:
        """The record of the last `before_write` could not be written, so its schema does not count.

        Otherwise it would be the schema of the next files of its directory, and every record that fits them would be
        refused.
        """
        if self._taken is None:
            return
        place, before = self._taken
        self._taken = None
        if before is None:
            self.schemas.pop(place, None)
        else:
            self.schemas[place] = before

    def _place(self, directory: str) -> str:
        return "" if self.settings.keeps_schema else directory

    def written(self, directory: str) -> Reason | None:
        """Count a written record; returns whether the open files must be closed now."""
        self._taken = None
        self.record_count += 1
        self.open_directories[directory] = None
        self.last_directory = directory
        return Reason.SIZE if self.record_count >= self.settings.flush_size else None

    def rotated(self) -> None:
        """All open files were closed."""
        self.record_count = 0
        self.open_directories.clear()
        if not self.settings.keeps_schema:
            self.schemas.clear()
        self.base_timestamp_ms = None
        self._taken = None

    def idle(self, now_ms: int) -> Reason | None:
        """Whether the open files must be closed although no record is waiting.

        Record time does not pass without records, so this is the schedule (or a last record that failed after
        its timestamp was taken). With nothing open an expired schedule is only set again: there are no empty
        files.
        """
        if self.record_count == 0:
            if self.is_scheduled(now_ms):
                self.restart_schedule(now_ms)
            return None
        reason = self._time_reason(self.last_directory or "", self.last_timestamp_ms, now_ms)
        if reason is not None:
            self.restart_schedule(now_ms)
        return reason

    def _time_reason(self, directory: str, timestamp_ms: int | None, now_ms: int) -> Reason | None:
        settings = self.settings
        if settings.follows_record_time:
            base = self.base_timestamp_ms
            if timestamp_ms is not None and base is not None and timestamp_ms - base >= settings.rotate_interval_ms:
                return Reason.INTERVAL
            if settings.rotate_on_directory_change and self.is_other_directory(directory):
                return Reason.DIRECTORY_CHANGE
        return Reason.SCHEDULE if self.is_scheduled(now_ms) else None

    def is_other_directory(self, directory: str) -> bool:
        """Whether the directory changes; leaving or entering that of tombstones does not count."""
        if directory == self.last_directory:
            return False
        tombstone = self.settings.tombstone_directory
        return tombstone is None or not any(
            without_topic(place or "") == tombstone for place in (directory, self.last_directory)
        )

    def is_scheduled(self, now_ms: int) -> bool:
        """Whether the schedule is due."""
        return self._next_schedule_ms is not None and now_ms >= self._next_schedule_ms

    def restart_schedule(self, now_ms: int) -> None:
        """Set the schedule to its next instant."""
        self._next_schedule_ms = self._schedule_after(now_ms)

    def _schedule_after(self, now_ms: int) -> int | None:
        interval = self.settings.rotate_schedule_interval_ms
        return next_schedule(now_ms, interval, self.settings.zone) if interval > 0 else None


def next_schedule(now_ms: int, interval_ms: int, zone: Zone) -> int:
    """Next instant of the schedule after `now_ms`: start of the local day plus a multiple of `interval_ms`.

    Never later than one day after the start of the day, so that the grid starts again at every midnight; days
    of 23 and 25 hours have the right length. Source: Confluent storage-common
    (DateTimeUtils.getNextTimeAdjustedByDay).

    Args:
        now_ms: milliseconds since the epoch.
        interval_ms: > 0.
    """
    start = zone.start_of_day_ms(zone.local_ms(now_ms) // DAY_MS)
    # Joda's plusDays(1) keeps the wall clock of the start, which is not midnight on a day whose midnight is
    # skipped.
    next_local = zone.local_ms(start) + DAY_MS
    following = next_local - zone.offset_ms(start)
    if zone.offset_ms(following) != zone.offset_ms(start):
        following = zone.instant_ms(next_local)
    since_start = ((now_ms - start) // interval_ms + 1) * interval_ms
    return start + min(since_start, following - start)

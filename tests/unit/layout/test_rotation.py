from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.api import schema as s
from airflow_connect.api.schema import Schema
from airflow_connect.errors import SchemaError
from airflow_connect.layout.rotation import Reason, Rotation, RotationSettings
from airflow_connect.layout.schema_compatibility import StorageSchemaCompatibility

MINUTE, HOUR = 60_000, 3_600_000
TIME_BASED = RotationSettings(flush_size=1000, rotate_interval_ms=10 * MINUTE, is_time_based=True)
V1 = s.struct(("id", s.INT32), version=1)
V2 = s.struct(("id", s.INT32), ("note", s.OPTIONAL_STRING), version=2)


@dataclass(frozen=True)
class Incoming:
    """A record as rotation sees it; `fails` means that it reached the writer and could not be written."""

    directory: str = "a"
    timestamp_ms: int | None = 0
    schema: Schema | None = None
    fails: bool = False


Rotations = list[tuple[list[int], str]]


def rotations(settings: RotationSettings, records: list[Incoming], now_ms: int = 0, opened_ms: int = 0) -> Rotations:
    """Numbers of the records in each rotation with its reason; what stays open comes last, with reason ""."""
    rotation, done, open_records = Rotation(settings, opened_ms), [], []

    def close(reason: Reason) -> None:
        done.append((list(open_records), reason.value))
        open_records.clear()
        rotation.rotated()

    for number, record in enumerate(records):
        reason = rotation.before_write(record.directory, record.timestamp_ms, record.schema, now_ms)
        if reason is not None:
            close(reason)
            assert rotation.before_write(record.directory, record.timestamp_ms, record.schema, now_ms) is None
        if not record.fails:
            open_records.append(number)
            full = rotation.written(record.directory)
            if full is not None:
                close(full)
    assert rotation.record_count == len(open_records)
    return [*done, (open_records, "")]


def slow_model(settings: RotationSettings, records: list[Incoming]) -> Rotations:
    """The rules told from the history of records instead of counters; no schedule, schemas compared for equality."""
    done: Rotations = []
    since: list[int] = []  # seen since the last rotation, failed ones included

    def written(numbers: list[int]) -> list[int]:
        return [number for number in numbers if not records[number].fails]

    def reason_before(number: int) -> str:
        record, here = records[number], written(since)
        companions = [records[other] for other in since if records[other].directory == record.directory]
        schema = companions[0].schema if companions else record.schema
        if (schema is None) != (record.schema is None):
            return "null schema"
        if here and settings.is_time_based and settings.rotate_interval_ms > 0:
            if record.timestamp_ms - records[since[0]].timestamp_ms >= settings.rotate_interval_ms:
                return "interval"
            before = records[written(list(range(number)))[-1]].directory
            tombstone = settings.tombstone_directory in (before, record.directory)
            if settings.rotate_on_directory_change and before != record.directory and not tombstone:
                return "directory change"
        if here and schema != record.schema:
            return "schema"
        open_now = {records[other].directory for other in here}
        if settings.max_open_files > 0 and len(open_now | {record.directory}) > max(
            settings.max_open_files, len(open_now)
        ):
            return "open files"
        return ""

    for number in range(len(records)):
        reason = reason_before(number)
        if reason:
            done.append((written(since), reason))
            since = []
        since.append(number)
        if not records[number].fails and len(written(since)) >= settings.flush_size:
            done.append((written(since), "size"))
            since = []
    return [*done, (written(since), "")]


RECORDS = st.lists(
    st.builds(
        Incoming,
        directory=st.sampled_from(["a", "b", "c", "tombstone"]),
        timestamp_ms=st.integers(0, 40),
        schema=st.sampled_from([V1, V1, V1, V2, None]),
        fails=st.sampled_from([False, False, False, True]),
    ),
    max_size=30,
)
SETTINGS = st.builds(
    RotationSettings,
    flush_size=st.sampled_from([0, 1, 2, 5, 100]),
    rotate_interval_ms=st.sampled_from([-1, 0, 10, 30]),
    max_open_files=st.sampled_from([-1, 0, 1, 2]),
    rotate_on_directory_change=st.booleans(),
    is_time_based=st.booleans(),
    tombstone_directory=st.sampled_from([None, "tombstone"]),
)


@given(SETTINGS, RECORDS)
def test_rotation_equals_the_rules_told_slowly(settings, records):
    assert rotations(settings, records) == slow_model(settings, records)


def test_size_counts_all_directories_together():
    records = [Incoming(directory) for directory in "abcabc"]
    assert rotations(RotationSettings(flush_size=4), records) == [([0, 1, 2, 3], "size"), ([4, 5], "")]


def test_interval_is_ignored_without_a_time_based_partitioner():
    records = [Incoming(timestamp_ms=number * HOUR) for number in range(9)]
    settings = RotationSettings(flush_size=10, rotate_interval_ms=MINUTE)
    assert rotations(settings, records) == [(list(range(9)), "")]


def test_interval_is_measured_from_the_first_record_of_the_file():
    records = [Incoming(timestamp_ms=minutes * MINUTE) for minutes in (0, 5, 9, 10, 19, 20)]
    assert rotations(TIME_BASED, records) == [([0, 1, 2], "interval"), ([3, 4], "interval"), ([5], "")]


def test_late_records_never_rotate_but_a_late_first_record_makes_the_next_one_rotate():
    late_second = [Incoming(timestamp_ms=minutes * MINUTE) for minutes in (60, 0, 61)]
    late_first = [Incoming(timestamp_ms=minutes * MINUTE) for minutes in (0, 60, 61)]
    assert rotations(TIME_BASED, late_second) == [([0, 1, 2], "")]
    assert rotations(TIME_BASED, late_first) == [([0], "interval"), ([1, 2], "")]


def test_base_timestamp_belongs_to_the_topic_partition_not_to_the_directory():
    settings = replace(TIME_BASED, rotate_on_directory_change=False)
    records = [Incoming("a", 0), Incoming("b", 9 * MINUTE), Incoming("b", 11 * MINUTE)]
    assert rotations(settings, records) == [([0, 1], "interval"), ([2], "")]


def test_interleaved_directories_make_files_of_one_record():
    records = [Incoming(directory, number) for number, directory in enumerate("abab")]
    assert rotations(TIME_BASED, records) == [
        ([0], "directory change"),
        ([1], "directory change"),
        ([2], "directory change"),
        ([3], ""),
    ]
    assert rotations(replace(TIME_BASED, rotate_on_directory_change=False), records) == [([0, 1, 2, 3], "")]


def test_directory_change_counts_only_with_an_interval():
    records = [Incoming(directory) for directory in "abab"]
    assert rotations(replace(TIME_BASED, rotate_interval_ms=-1), records) == [([0, 1, 2, 3], "")]


def test_directory_of_the_last_written_record_survives_a_rotation():
    # "b" fails, so "a" stays the last directory although nothing of it is open; the next "a" is no change.
    settings = replace(TIME_BASED, flush_size=2)
    records = [Incoming("a"), Incoming("a"), Incoming("b", fails=True), Incoming("a"), Incoming("b")]
    assert rotations(settings, records) == [([0, 1], "size"), ([3], "directory change"), ([4], "")]


def test_tombstones_do_not_change_the_directory():
    settings = replace(TIME_BASED, tombstone_directory="tombstone")
    records = [Incoming("a"), Incoming("tombstone", None), Incoming("a")]
    assert rotations(settings, records) == [([0, 1, 2], "")]


def test_failed_record_sets_the_base_timestamp():
    records = [
        Incoming(timestamp_ms=0, fails=True),
        Incoming(timestamp_ms=9 * MINUTE),
        Incoming(timestamp_ms=10 * MINUTE),
    ]
    assert rotations(TIME_BASED, records) == [([1], "interval"), ([2], "")]


def test_record_without_a_directory_sets_the_base_timestamp_too():
    rotation = Rotation(TIME_BASED, 0)
    rotation.observe(0)
    assert rotation.before_write("a", 9 * MINUTE, None, 0) is None
    rotation.written("a")
    assert rotation.before_write("a", 10 * MINUTE, None, 0) is Reason.INTERVAL


def test_alternating_schemas_rotate_each_time_without_compatibility():
    records = [Incoming(schema=schema) for schema in (V1, V2, V2, V1)]
    settings = RotationSettings(flush_size=100)
    assert rotations(settings, records) == [([0], "schema"), ([1, 2], "schema"), ([3], "")]


def test_backward_compatibility_rotates_for_newer_schemas_only():
    records = [Incoming(schema=schema) for schema in (V1, V2, V1, V2, V1)]
    settings = RotationSettings(flush_size=100, schema_compatibility=StorageSchemaCompatibility.BACKWARD)
    assert rotations(settings, records) == [([0], "schema"), ([1, 2, 3, 4], "")]


def test_older_schema_opens_a_file_again_after_a_rotation():
    # Current schemas are forgotten at each rotation: a v1 that opens a file is followed by a rotation at the next v2.
    settings = RotationSettings(flush_size=2, schema_compatibility=StorageSchemaCompatibility.BACKWARD)
    records = [Incoming(schema=schema) for schema in (V2, V2, V1, V2)]
    assert rotations(settings, records) == [([0, 1], "size"), ([2], "schema"), ([3], "")]


def test_each_directory_has_its_own_schema():
    records = [Incoming("a", schema=V1), Incoming("b", schema=V2), Incoming("a", schema=V1), Incoming("b", schema=V2)]
    assert rotations(RotationSettings(flush_size=100), records) == [([0, 1, 2, 3], "")]


def test_current_schema_is_that_of_the_first_record_of_the_directory():
    rotation = Rotation(RotationSettings(10, schema_compatibility=StorageSchemaCompatibility.BACKWARD), 0)
    rotation.before_write("a", None, V2, 0)
    rotation.written("a")
    rotation.before_write("a", None, V1, 0)
    assert rotation.current_schema("a") is V2
    rotation.rotated()
    assert rotation.current_schema("a") is None


def test_schema_without_a_version_is_the_records_fault():
    rotation = Rotation(RotationSettings(10, schema_compatibility=StorageSchemaCompatibility.FULL), 0)
    with pytest.raises(SchemaError, match="Schema version required for FULL compatibility"):
        rotation.before_write("a", None, s.INT8, 0)


def test_change_between_schema_and_none_rotates_in_both_directions():
    records = [Incoming(schema=schema) for schema in (V1, None, V1)]
    settings = RotationSettings(flush_size=100)
    assert rotations(settings, records) == [([0], "null schema"), ([1], "null schema"), ([2], "")]


def test_one_directory_more_than_allowed_closes_all_files():
    records = [Incoming(directory) for directory in "abacb"]
    assert rotations(RotationSettings(100, max_open_files=2), records) == [([0, 1, 2], "open files"), ([3, 4], "")]


def test_schedule_closes_files_once_and_then_starts_again():
    settings = RotationSettings(100, rotate_schedule_interval_ms=HOUR)
    records = [Incoming(), Incoming(), Incoming()]
    assert rotations(settings, records, now_ms=HOUR - 1) == [([0, 1, 2], "")]
    assert rotations(settings, records, now_ms=HOUR) == [([0], "schedule"), ([1, 2], "")]


def test_idle_topic_is_closed_by_the_schedule_only():
    rotation = Rotation(replace(TIME_BASED, rotate_schedule_interval_ms=HOUR), 0)
    assert rotation.idle(HOUR) is None  # nothing open: the schedule is only set again
    rotation.before_write("a", 0, None, HOUR)
    rotation.written("a")
    assert rotation.idle(2 * HOUR - 1) is None
    assert rotation.idle(2 * HOUR) is Reason.SCHEDULE
    rotation.rotated()
    assert rotation.idle(3 * HOUR) is None


def test_idle_topic_stays_open_without_a_schedule_however_late_it_is():
    rotation = Rotation(TIME_BASED, 0)
    rotation.before_write("a", 0, None, 0)
    rotation.written("a")
    assert rotation.idle(10**15) is None


HDFS = RotationSettings(flush_size=3, keeps_schema=True, rotate_on_directory_change=False)


def test_with_a_kept_schema_another_directory_has_the_same_one():
    records = [Incoming("a", schema=V1), Incoming("b", schema=V2), Incoming("c", schema=V1)]
    assert rotations(HDFS, records) == [([0], "schema"), ([1], "schema"), ([2], "")]


def test_a_kept_schema_outlives_the_files():
    settings = replace(HDFS, flush_size=1, schema_compatibility=StorageSchemaCompatibility.BACKWARD)
    rotation = Rotation(settings, 0)
    for schema, counts in ((V1, V1), (V2, V2), (V1, V2)):
        assert rotation.before_write("a", 0, schema, 0) is None
        assert rotation.current_schema("b") == counts
        assert rotation.written("a") is Reason.SIZE
        rotation.rotated()


def test_a_kept_schema_that_a_record_cannot_join_is_replaced():
    settings = replace(HDFS, schema_compatibility=StorageSchemaCompatibility.BACKWARD)
    records = [Incoming(schema=V1), Incoming(schema=V2), Incoming(schema=V1)]
    assert rotations(settings, records) == [([0], "schema"), ([1, 2], "")]


def test_with_a_kept_schema_values_without_one_cannot_follow():
    rotation = Rotation(HDFS, 0)
    rotation.before_write("a", 0, V1, 0)
    rotation.written("a")
    with pytest.raises(SchemaError, match="Switch between schema-based and schema-less"):
        rotation.before_write("a", 0, None, 0)
    rotation.rotated()
    with pytest.raises(SchemaError, match="Switch between schema-based and schema-less"):
        rotation.before_write("a", 0, None, 0)


def test_with_a_kept_schema_values_with_one_follow_those_without_once_the_files_are_complete():
    rotation = Rotation(HDFS, 0)
    rotation.before_write("a", 0, None, 0)
    rotation.written("a")
    with pytest.raises(SchemaError, match="Switch between schema-based and schema-less"):
        rotation.before_write("a", 0, V1, 0)
    rotation.rotated()
    assert rotation.before_write("a", 0, V1, 0) is None
    assert rotation.current_schema("a") == V1


@pytest.mark.parametrize(
    ("mode", "before", "schema", "counts"),
    [("BACKWARD", V2, V1, V2), ("BACKWARD", V1, V2, V2), ("FORWARD", V1, V2, V1), ("FORWARD", V2, V1, V1),
     ("FULL", V2, V1, V2)],
)  # fmt: skip
def test_a_kept_schema_of_an_earlier_run_counts_until_a_record_needs_another(mode, before, schema, counts):
    rotation = Rotation(replace(HDFS, schema_compatibility=StorageSchemaCompatibility.of(mode)), 0, before)
    assert rotation.before_write("a", 0, schema, 0) is None
    assert rotation.current_schema("a") == counts

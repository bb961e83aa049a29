from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.api import schema as s
from airflow_connect.errors import SchemaError
from airflow_connect.layout.dense_codes import dense_codes
from airflow_connect.layout.rotation import Reason, Rotation, RotationSettings
from airflow_connect.layout.rotation_batches import Cut, PlacedColumns, next_cut
from airflow_connect.layout.schema_compatibility import StorageSchemaCompatibility

V1 = s.struct(("id", s.INT32), version=1)
V2 = s.struct(("id", s.INT32), ("note", s.OPTIONAL_STRING), version=2)
NAMES = ["a", "b", "tombstone", "c", "d"]
HOUR = 3_600_000

SETTINGS = st.builds(
    RotationSettings,
    flush_size=st.sampled_from([0, 1, 3, 10, 5000]),
    rotate_interval_ms=st.sampled_from([-1, 10, 30]),
    rotate_schedule_interval_ms=st.sampled_from([-1, HOUR]),
    max_open_files=st.sampled_from([-1, 1, 3]),
    rotate_on_directory_change=st.booleans(),
    is_time_based=st.booleans(),
    tombstone_directory=st.sampled_from([None, "tombstone"]),
    schema_compatibility=st.sampled_from([StorageSchemaCompatibility.NONE, StorageSchemaCompatibility.BACKWARD]),
)
# Long runs of one code and slowly rising timestamps make batches that no rule cuts early.
RUNS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 40), st.sampled_from([1, 1, 2, 7, 900])), max_size=8)
BATCHES = st.lists(st.tuples(RUNS, st.sampled_from([V1, V1, V2, None]), st.integers(0, 2)), max_size=4)
BATCHES_WITH_SCHEMA = st.lists(st.tuples(RUNS, st.sampled_from([V1, V2]), st.integers(0, 2)), max_size=4)


def columns_of(runs, schema):
    codes = [code for code, _, length in runs for _ in range(length)]
    timestamps = [start + number // 100 for _, start, length in runs for number in range(length)]
    return PlacedColumns(np.array(codes, np.int32), NAMES, np.array(timestamps, np.int64), schema)


def cuts_in_columns(rotation: Rotation, columns: PlacedColumns, now_ms: int) -> list[Cut]:
    cuts, at = [], 0
    while at < len(columns.codes):
        cut = next_cut(rotation, columns, at, now_ms)
        if cut is None:
            break
        cuts.append(cut)
        rotation.rotated()
        at = cut.index
    return cuts


def cuts_one_by_one(rotation: Rotation, columns: PlacedColumns, now_ms: int) -> list[Cut]:
    cuts = []
    for number, code in enumerate(columns.codes):
        record = (columns.names[code], int(columns.timestamps_ms[number]), columns.value_schema, now_ms)
        reason = rotation.before_write(*record)
        if reason is not None:
            cuts.append(Cut(number, reason))
            rotation.rotated()
            rotation.before_write(*record)
        full = rotation.written(record[0])
        if full is not None:
            cuts.append(Cut(number + 1, full))
            rotation.rotated()
    return cuts


@given(SETTINGS, BATCHES, st.booleans())
def test_columns_and_single_records_are_cut_alike_and_leave_the_same_state(settings, batches, begins_with_failure):
    check_both(settings, batches, begins_with_failure)


@given(SETTINGS, BATCHES_WITH_SCHEMA, st.booleans())
def test_with_a_kept_schema_both_are_cut_alike(settings, batches, begins_with_failure):
    settings = replace(settings, keeps_schema=True, max_open_files=-1, rotate_on_directory_change=False)
    check_both(settings, batches, begins_with_failure)


def check_both(settings, batches, begins_with_failure):
    in_columns, one_by_one = Rotation(settings, 0), Rotation(settings, 0)
    if begins_with_failure:  # seen, not written
        for rotation in (in_columns, one_by_one):
            rotation.before_write("b", 5, V1, 0)
    for runs, schema, hours in batches:
        columns = columns_of(runs, schema)
        expected = cuts_one_by_one(one_by_one, columns, hours * HOUR)
        assert cuts_in_columns(in_columns, columns, hours * HOUR) == expected
        assert vars(in_columns) == vars(one_by_one)
        assert list(in_columns.open_directories) == list(one_by_one.open_directories)


def test_batch_without_timestamps_is_cut_by_size():
    rotation = Rotation(RotationSettings(flush_size=3), 0)
    columns = PlacedColumns(np.zeros(7, np.int32), ["partition=0"])
    assert cuts_in_columns(rotation, columns, 0) == [Cut(3, Reason.SIZE), Cut(6, Reason.SIZE)]
    assert rotation.record_count == 1


def test_size_reached_with_the_last_record_cuts_at_the_end_of_the_batch():
    rotation = Rotation(RotationSettings(flush_size=4), 0)
    columns = PlacedColumns(np.zeros(4, np.int32), ["partition=0"])
    assert next_cut(rotation, columns, 0, 0) == Cut(4, Reason.SIZE)


def test_cut_far_inside_a_batch_is_found():
    rotation = Rotation(RotationSettings(10**9, rotate_interval_ms=10, is_time_based=True), 0)
    timestamps = np.zeros(200_000, np.int64)
    timestamps[123_456:] = 10
    columns = PlacedColumns(np.zeros(200_000, np.int32), ["a"], timestamps)
    assert next_cut(rotation, columns, 0, 0) == Cut(123_456, Reason.INTERVAL)
    assert rotation.record_count == 123_456


def test_schema_without_a_version_is_refused_where_versions_count():
    rotation = Rotation(RotationSettings(10, schema_compatibility=StorageSchemaCompatibility.FULL), 0)
    with pytest.raises(SchemaError, match="Schema version required for FULL compatibility"):
        next_cut(rotation, PlacedColumns(np.zeros(1, np.int32), ["a"], None, s.INT8), 0, 0)


@given(st.lists(st.one_of(st.integers(-50, 50), st.integers(-(2**63), 2**63 - 1)), max_size=60))
def test_dense_codes_are_those_of_unique(values):
    codes, distinct = dense_codes(np.array(values, dtype=np.int64))
    assert distinct.tolist() == sorted(set(values))
    assert [distinct[code] for code in codes] == values

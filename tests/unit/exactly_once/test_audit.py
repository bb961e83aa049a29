"""Every way in which counts and positions can fail to add up is named."""

from dataclasses import replace

import pytest

from airflow_connect.api.offsets import OffsetRange
from airflow_connect.api.staging import StagedFile
from airflow_connect.documents.run import PartitionReport, Plan, TaskPlan, TaskReport
from airflow_connect.errors import AuditError
from airflow_connect.exactly_once.audit import audit

RANGE = OffsetRange("t", 0, 10, 20)
PLAN = Plan("c", "r", 0, (TaskPlan(0, (RANGE,)),))
FILE = StagedFile("k", "t", 0, 10, 20, 8, 100)
GOOD = PartitionReport(RANGE, position=20, commit_offset=20, read=9, written=8, dead_lettered=1)


def report(partition=GOOD, files=(FILE,), letters=({},)):
    return TaskReport(0, 0, (partition,), tuple(files), tuple(letters))


def test_counts_that_add_up_pass():
    audit(PLAN, [report()], [FILE])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"written": 7}, "read 9 but accounted for 8"),
        ({"read": 10}, "read 10 but accounted for 9"),
        ({"position": 19}, "stopped at 19, before the planned end"),
        ({"commit_offset": 21}, "the offset to commit, 21, is outside"),
        ({"commit_offset": 9}, "the offset to commit, 9, is outside"),
        ({"commit_offset": 15}, "nothing is left but the offset to commit is 15"),
        ({"range": OffsetRange("t", 0, 11, 20)}, "was copied instead of"),
        ({"range": OffsetRange("t", 0, 10, 21)}, "was copied instead of"),
        ({"range": OffsetRange("t", 0, 10, 19), "commit_offset": 19}, "although no limit was reached"),
        ({"range": OffsetRange("t", 1, 10, 20)}, "was copied but not planned"),
        ({"dead_lettered": 0, "filtered": 1}, "counted 0 dead letters but returned 1"),
    ],
)
def test_partition_that_does_not_add_up_is_named(changes, message):
    with pytest.raises(AuditError, match=message):
        audit(PLAN, [report(replace(GOOD, **changes))], [FILE])


def test_range_that_a_limit_cut_short_passes():
    short = replace(GOOD, range=OffsetRange("t", 0, 10, 19), commit_offset=19, stopped_early="run.max.bytes")

    audit(PLAN, [report(short, [replace(FILE, end=19)])], [replace(FILE, end=19)])


def test_partition_that_was_reported_twice_or_never_is_named():
    with pytest.raises(AuditError, match="reported 2 times"):
        audit(PLAN, [report(), replace(report(), task=1)])
    with pytest.raises(AuditError, match="reported 0 times"):
        audit(PLAN, [])


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([replace(FILE, records=7)], "8 records were counted as written but the files hold 7"),
        ([], "the files hold 0"),
        ([replace(FILE, end=21)], "which this run does not commit"),
        ([replace(FILE, start=9)], "which this run does not commit"),
        ([replace(FILE, records=4), replace(FILE, records=4)], "2 staged files have the key k"),
    ],
)
def test_files_that_do_not_hold_what_was_counted_are_named(files, message):
    with pytest.raises(AuditError, match=message):
        audit(PLAN, [report(files=files)], files)


def test_file_beyond_the_offset_to_commit_is_named():
    left = replace(GOOD, commit_offset=15, written=4, dead_lettered=0, left=5)

    with pytest.raises(AuditError, match="which this run does not commit"):
        audit(PLAN, [report(left, [replace(FILE, records=4)], ())], [replace(FILE, records=4)])

"""Parts of a partition: what is behind a hole is given up, and everybody else sees one report per partition."""

from dataclasses import replace

import pytest

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.staging import StagedFile
from airflow_connect.documents.run import PartitionReport, Plan, TaskPlan, TaskReport
from airflow_connect.errors import AuditError
from airflow_connect.exactly_once.audit import audit
from airflow_connect.exactly_once.manifest import Manifest, manifest_of
from airflow_connect.exactly_once.parts import contiguous

TP = TopicPartition("t", 0)
RANGES = [OffsetRange("t", 0, start, start + 10) for start in (0, 10, 20)]
OTHER = OffsetRange("t", 1, 0, 10)
# The ranges are in the tasks in another order than in the log, and task 1 has another partition besides.
PLAN = Plan("c", "r", 0, (TaskPlan(0, (RANGES[2],)), TaskPlan(1, (RANGES[0], OTHER)), TaskPlan(2, (RANGES[1],))))


def copied(planned, up_to=None, left=0):
    """Report, file and dead letters of a range: one record of each half goes to the dead letter queue."""
    end = planned.end if up_to is None else up_to
    bad = [o for o in (planned.start, planned.start + 5) if o < end]
    report = PartitionReport(
        planned if left else replace(planned, end=end),
        position=planned.end,
        commit_offset=end,
        read=end - planned.start + left,
        written=end - planned.start - len(bad),
        dead_lettered=len(bad),
        left=left,
        stopped_early="dead letters" if end < planned.end and not left else "",
    )
    name = f"{planned.topic}+{planned.partition}+{planned.start}"
    file = StagedFile(name, planned.topic, planned.partition, planned.start + 1, end, report.written, 100)
    return report, file, [{"origin": [planned.topic, planned.partition, o]} for o in bad]


def reports(**how):
    """Task reports; `how`: for the range that begins at `at`, arguments of `copied`."""
    at = how.pop("at", None)
    found = []
    for task in PLAN.tasks:
        done = [copied(r, **(how if r.topic_partition == TP and r.start == at else {})) for r in task.ranges]
        letters = tuple(letter for _, _, some in done for letter in some)
        found.append(TaskReport(task.task, 0, tuple(d[0] for d in done), tuple(d[1] for d in done), letters))
    return found


def check(found):
    """The audit, and what the manifest then says."""
    audit(PLAN, found, [f for r in found for f in r.files])
    return manifest_of(PLAN, found, {})


def test_complete_parts_are_committed_to_the_end_of_the_last_one():
    done = contiguous(PLAN, reports())

    assert (list(done.reports), done.notes) == (reports(), ())
    manifest = check(done.reports)
    assert manifest.offsets == {TP: 30, OTHER.topic_partition: 10}
    assert [p.range.start for p in manifest.partitions] == [0, 10, 20, 0]
    assert manifest.counts["records"] == 32
    assert Manifest.from_json(manifest.to_json()) == manifest


@pytest.mark.parametrize("how", [{"up_to": 16}, {"up_to": 16, "left": 4}], ids=["ended-early", "left"])
@pytest.mark.parametrize(("hole", "kept"), [(0, [0, 0]), (10, [0, 10, 0]), (20, [0, 10, 20, 0])])
def test_nothing_behind_a_part_that_is_not_complete_is_committed(hole, kept, how):
    how = {**how, "up_to": hole + 6}
    done = contiguous(PLAN, reports(at=hole, **how))

    manifest = check(done.reports)

    assert [p.range.start for p in manifest.partitions] == kept
    assert manifest.offsets == {TP: hole + 6, OTHER.topic_partition: 10}
    assert all(f.end <= hole + 6 for f in manifest.files if f.partition == 0)
    assert all(d["origin"][2] < hole + 6 for d in manifest.dead_letters if d["origin"][1] == 0)
    assert done.given_up == tuple(r for r in RANGES if r.start > hole)
    assert bool(done.notes) == (hole < 20)


def test_hole_gives_up_no_other_partition():
    done = contiguous(PLAN, reports(at=0, up_to=6))

    assert [p.range for r in done.reports for p in r.partitions] == [replace(RANGES[0], end=6), OTHER]
    assert [len(r.dead_letters) for r in done.reports] == [0, 4, 0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: [r[0], r[1]], r"t-0\[10, 20\) was reported 0 times instead of once"),
        (lambda r: [*r, r[2]], r"t-0\[10, 20\) was reported 2 times instead of once"),
        (
            lambda r: [r[0], r[1], replace(r[2], partitions=(replace(r[2].partitions[0], written=7),))],
            r"t-0\[10, 20\): 7 records were counted as written but the files hold 8",
        ),
        (
            lambda r: [replace(r[0], files=(replace(r[0].files[0], start=19),)), *r[1:]],
            r"t\+0\+20 holds \[19, 30\), which this run does not commit",
        ),
        (
            lambda r: [
                replace(r[0], partitions=(replace(r[0].partitions[0], range=OffsetRange("t", 0, 21, 30)),)),
                *r[1:],
            ],
            r"t-0\[21, ...\) was copied instead of t-0\[0, 10\), t-0\[10, 20\), t-0\[20, 30\)",
        ),
    ],
    ids=["missing", "twice", "counts", "file-of-two-parts", "unplanned"],
)
def test_audit_adds_up_each_part(change, message):
    with pytest.raises(AuditError, match=message):
        check(change(reports()))


def test_audit_refuses_a_part_behind_a_hole():
    with pytest.raises(AuditError, match=r"t-0\[20, 30\) was reported 1 times instead of never"):
        check(reports(at=10, up_to=16))


def test_only_a_manifest_with_parts_has_the_version_that_older_releases_refuse():
    with_parts = check(reports())
    whole = replace(with_parts, partitions=tuple(p for p in with_parts.partitions if p.range.start == 0))

    assert (with_parts.to_json()["v"], whole.to_json()["v"]) == (3, 2)


def test_offsets_of_a_manifest_stop_at_a_hole():
    parts = [copied(RANGES[0])[0], copied(RANGES[2])[0]]

    assert Manifest("c", "r", 0, (), tuple(parts)).offsets == {TP: 10}

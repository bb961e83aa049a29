"""What is left to import of files that are divided: every row once, or an error that names the rows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.connectors.restore.values.imports import Import, committed_files, join_finished
from airflow_connect.connectors.restore.values.work import chains_of, divided, task_config
from airflow_connect.errors import OffsetError
from airflow_connect.java.patterns.compiled import compile_java_pattern
from airflow_connect.stores.file_system import FoundFile
from tests.support.session.searching import examples

ROOT, NAME, BYTES = "s3://b/d", "a.parquet", 1_000
Offsets = dict[tuple[tuple[str, Any], ...], Any]


def plan(offsets: Offsets, cuts: list[int], etag: str = "v1", *, is_there: bool = True) -> tuple[Import, Offsets]:
    """The import that a run plans, and the offsets that it begins with."""
    files = committed_files((dict(partition), offset) for partition, offset in offsets.items())
    changes = join_finished(files)
    patterns = [("t", compile_java_pattern(".*"))]
    found = Import(ROOT, lambda name: name, patterns, 0, lambda _: cuts)
    listed = [FoundFile(f"{ROOT}/{NAME}", BYTES, 5, etag)] if is_there else []
    found.take(listed, files, lambda file: file.version(is_content=True))
    after = dict(offsets)
    for partition, offset in [*changes, *found.changes]:
        key = tuple(sorted(partition.items()))
        after.pop(key, None)
        if offset is not None:
            after[key] = offset
    return found, after


@st.composite
def states(draw: st.DrawFn) -> tuple[list[int], Offsets]:
    """Cuts of a file, and offsets of its ranges that runs may have left."""
    size = draw(st.integers(2, 60))
    cuts = [0, *sorted(draw(st.sets(st.integers(1, size - 1), min_size=1, max_size=6))), size]
    _, offsets = plan({}, cuts)
    for partition, offset in offsets.items():
        start, end = map(int, dict(partition)["rows"].split("-"))
        record = draw(st.one_of(st.just(start), st.just(end), st.integers(start, end)))
        offsets[partition] = {**offset, "record": record, "done": draw(st.integers(0, 1)) if record == end else 0}
    return cuts, offsets


def is_touched(offsets: Offsets) -> bool:
    return any(one["record"] > int(dict(key)["rows"].split("-")[0]) for key, one in offsets.items())


@settings(max_examples=examples(200), deadline=None)
@given(states(), st.integers(1, 5))
def test_rows_that_are_left_are_those_that_are_not_imported(state: tuple[list[int], Offsets], tasks: int) -> None:
    cuts, offsets = state
    found, after = plan(offsets, cuts)
    tasks_of = [chains_of(task_config({}, part)) for part in divided(found.chains, tasks)]
    left = [row for part in tasks_of for one in part for row in range(one.offset["record"], one.end or 0)]
    done = {row for key, one in offsets.items() for row in range(_start(key), one["record"])}
    assert sorted([*left, *done]) == list(range(cuts[-1])) and not found.left_out
    if all(one["done"] for one in offsets.values()):
        assert found.done == 1 and not found.chains
        assert list(after.values()) == [{"version": "v1", "record": cuts[-1], "done": 1}]
        assert plan(after, cuts)[1] == after
    else:
        assert after == offsets and sum(one.size_bytes for one in found.chains) <= BYTES


@settings(max_examples=examples(200), deadline=None)
@given(states(), st.data())
def test_offsets_that_do_not_cover_every_row_once_are_an_error(
    state: tuple[list[int], Offsets], data: st.DataObject
) -> None:
    cuts, offsets = state
    chosen = data.draw(st.sampled_from(sorted(offsets)))
    how = data.draw(st.sampled_from(["deleted", "doubled", "size", "record"]))
    broken = dict(offsets)
    if how == "deleted":
        del broken[chosen]
    elif how == "doubled":
        other = {**dict(chosen), "backup": "s3://b", "file": f"d/{NAME}"}
        broken[tuple(sorted(other.items()))] = offsets[chosen]
    elif how == "size":
        broken[chosen] = {**offsets[chosen], "size": cuts[-1] + 1}
    else:
        broken[chosen] = {**offsets[chosen], "record": cuts[-1] + 1}
    found, after = plan(broken, cuts)
    if is_touched(broken) or any(one["done"] for one in broken.values()):
        assert [error.code for _, error in found.left_out] == ["restore.import_ranges"] and not found.chains
        assert after == broken
    else:
        assert len(found.chains) == len(cuts) - 1 and len(after) == len(cuts) - 1, (
            "nothing was imported: it begins again"
        )


@settings(max_examples=examples(100), deadline=None)
@given(states())
def test_file_that_has_changed_or_is_gone(state: tuple[list[int], Offsets]) -> None:
    cuts, offsets = state
    changed, after = plan(offsets, [], "v2")
    gone, left = plan(offsets, cuts, is_there=False)
    if all(one["done"] for one in offsets.values()):
        assert [error.code for _, error in changed.left_out] == ["restore.import_changed"] and not gone.left_out
        assert len(after) == len(left) == 1
    elif is_touched(offsets):
        assert [error.code for _, error in changed.left_out] == ["restore.import_changed"]
        assert [error.code for _, error in gone.left_out] == ["restore.import_gone"]
        assert after == left == offsets
    else:
        assert not changed.left_out and [one.rows for one in changed.chains] == [None] and not gone.left_out
        assert after == left == {}


def _start(partition: tuple[tuple[str, Any], ...]) -> int:
    return int(dict(partition)["rows"].split("-")[0])


def test_range_of_another_form_is_named() -> None:
    offsets = [({"backup": ROOT, "file": NAME, "rows": "all"}, {})]
    with pytest.raises(OffsetError, match="is no range of rows, such as 0-120000"):
        committed_files(offsets)


def test_ranges_are_divided_among_tasks_by_what_is_left_of_them() -> None:
    cuts = [0, 10, 20, 100]
    found, _ = plan({}, cuts)
    assert [(one.size_bytes, one.end) for one in found.chains] == [(100, 10), (100, 20), (800, 100)]
    assert [[one.end for one in part] for part in divided(found.chains, 2)] == [[100], [10, 20]]

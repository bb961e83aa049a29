"""Manifest, state and leftover patterns survive JSON; what a newer release wrote is refused."""

import hashlib
import json
import re
import uuid
from dataclasses import replace
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.publishing import SWEEPS, LeftoverPattern
from airflow_connect.api.staging import StagedFile
from airflow_connect.documents.run import PartitionReport
from airflow_connect.errors import StateError
from airflow_connect.exactly_once import packed_files
from airflow_connect.exactly_once.manifest import Manifest
from airflow_connect.exactly_once.recovery import leftovers_to_resweep, merge_leftovers
from airflow_connect.exactly_once.state import CLOSED, COPYING, ConnectorState

text = st.text(max_size=8)
offset = st.integers(0, 2**62)
partitions = st.builds(TopicPartition, text, st.integers(0, 9))
ranges = st.builds(OffsetRange, text, st.integers(0, 9), offset, offset)
offsets = st.dictionaries(partitions, offset, max_size=3)
counts = st.integers(0, 9)
files = st.builds(
    StagedFile, text, text, counts, offset, offset, counts, offset, st.dictionaries(text, text, max_size=2), text
)
reports = st.builds(PartitionReport, ranges, offset, offset, counts, counts)
patterns = st.builds(
    LeftoverPattern, text, st.lists(text, max_size=2).map(tuple), text, st.lists(ranges, max_size=2).map(tuple), text
)
manifests = st.builds(
    Manifest,
    text,
    text,
    offset,
    st.lists(files, max_size=2).map(tuple),
    st.lists(reports, max_size=2).map(tuple),
    topic_ids=st.dictionaries(text, text, max_size=2),
    config=st.dictionaries(text, text, max_size=2),
    counts=st.dictionaries(text, counts, max_size=2),
    also_commit=offsets,
    dead_letters=st.lists(st.dictionaries(text, text, max_size=2), max_size=2).map(tuple),
)
states = st.builds(
    ConnectorState,
    text,
    text,
    st.sampled_from([COPYING, CLOSED]),
    offset,
    committed=offsets,
    topic_ids=st.dictionaries(text, text, max_size=2),
    leftovers=st.lists(patterns, max_size=2).map(tuple),
    bytes_per_record=st.dictionaries(text, st.floats(0, 1e6), max_size=2),
)


def through_json(document):
    return json.loads(json.dumps(document.to_json()))


@given(manifests)
def test_manifest_survives_json(manifest):
    assert Manifest.from_json(through_json(manifest)) == manifest


@given(states)
def test_state_survives_json(state):
    assert ConnectorState.from_json(through_json(state)) == state


@given(st.lists(files, min_size=packed_files.FEW + 1, max_size=packed_files.FEW + 5).map(tuple))
def test_many_files_of_a_manifest_survive_being_packed(many):
    manifest = Manifest("c", "r", 0, many, ())
    packed = manifest.to_json()
    assert isinstance(packed["files"], str)
    assert Manifest.from_json(through_json(manifest)) == manifest
    for damaged in (packed["files"][:-8], packed["files"][8:], "x" + packed["files"]):
        with pytest.raises(StateError, match="staged files in a manifest is damaged"):
            Manifest.from_json({**packed, "files": damaged})


def test_packed_files_take_a_third_of_the_room():
    many = tuple(
        StagedFile(f"topics/t/hour={n % 24:02d}/t+0+{n:010d}.json", "t", 0, n, n + 1, 1, 100_000 + n * 7919 % 90_000,
                   {"upload_id": str(uuid.UUID(int=n * 2**89 % 2**128)),
                    "parts": [[1, hashlib.sha256(b"%d" % n).hexdigest()[:32]]],
                    "file_id": hashlib.sha256(b"f%d" % n).hexdigest()[:16]})
        for n in range(2_000)
    )  # fmt: skip
    as_objects = len(json.dumps([file.to_json() for file in many], separators=(",", ":")))
    assert len(str(packed_files.to_json(many))) < as_objects / 3


def test_recorded_manifest_of_version_1_is_read():
    recorded = json.loads(Path("tests/data/manifest_v1.json").read_text())
    manifest = Manifest.from_json(recorded)
    assert recorded["v"] == 1
    assert [file.to_json() for file in manifest.files] == recorded["files"]
    # Members that only storage sinks have are not written since version 4 if they are empty.
    empty = {"late_before": recorded.pop("late_before", {}), "time": recorded.pop("time", None)}
    times = [report.pop("times", None) for report in recorded["partitions"]]
    assert not any((*empty.values(), *times))
    assert {**manifest.to_json(), "v": 1} == recorded


@pytest.mark.parametrize("version", [5, 0, None, "1"])
@pytest.mark.parametrize("document", [Manifest, ConnectorState])
def test_unknown_version_is_refused_and_named(document, version):
    with pytest.raises(StateError, match=re.escape(repr(version))):
        document.from_json({"v": version})


def test_offsets_of_a_manifest_are_those_of_its_ranges_before_those_of_first_sights():
    seen, copied = TopicPartition("t", 0), TopicPartition("t", 1)
    report = PartitionReport(OffsetRange("t", 1, 5, 9), 9, 8, 3, 3)
    manifest = Manifest("c", "r", 0, (), (report,), also_commit={seen: 4, copied: 5})

    assert manifest.offsets == {seen: 4, copied: 8}


PATTERN = LeftoverPattern(
    "s3://b",
    ("topics/t/", "topics/.probe-"),
    r"topics/(?P<topic>t)/partition=\d+/(?P=topic)\+(?P<partition>\d+)\+(?P<start>\d+)\.json",
    (OffsetRange("t", 0, 10, 20), OffsetRange("t", 1, 0, 5)),
    "topics/.probe-",
)


@pytest.mark.parametrize(
    ("key", "is_ours"),
    [
        ("topics/t/partition=0/t+0+0000000010.json", True),
        ("topics/t/partition=0/t+0+0000000019.json", True),
        ("topics/t/partition=0/t+0+0000000020.json", False),
        ("topics/t/partition=0/t+0+0000000009.json", False),
        ("topics/t/partition=1/t+1+0000000004.json", True),
        ("topics/t/partition=2/t+2+0000000004.json", False),
        ("topics/t/partition=0/t+0+0000000010.json.tmp", False),
        ("x/topics/t/partition=0/t+0+0000000010.json", False),
        ("topics/u/partition=0/u+0+0000000010.json", False),
        ("topics/.probe-1234", True),
        ("topics/.other", False),
    ],
)
def test_leftover_is_ours_only_by_grammar_and_range(key, is_ours):
    assert PATTERN.matches(key) is is_ours


def form(pattern):
    return pattern.store, pattern.prefixes, pattern.pattern


@given(st.lists(patterns, max_size=6))
def test_merged_patterns_match_all_that_the_single_ones_match_and_stay_few(given_patterns):
    found = {form(p): p for p in merge_leftovers(given_patterns)}

    assert len(found) == len(merge_leftovers(given_patterns))
    for pattern in given_patterns:
        for wanted in pattern.ranges:
            assert any(
                hull.topic_partition == wanted.topic_partition and hull.start <= wanted.start and wanted.end <= hull.end
                for hull in found[form(pattern)].ranges
            )


@pytest.mark.parametrize("phase", [COPYING, CLOSED])
def test_what_may_be_left_over_is_swept_by_a_bounded_number_of_runs(phase):
    state, sweeps = ConnectorState("c", "r", phase, 0, leftovers=(PATTERN,)), 0
    while state.leftovers:
        sweeps += 1
        state = ConnectorState("c", "r", CLOSED, 0, leftovers=leftovers_to_resweep(state))

    assert sweeps == SWEEPS


def test_what_a_dead_run_left_is_swept_at_least_twice():
    """A state record of an earlier release says nothing of further sweeps."""
    old = {name: value for name, value in PATTERN.to_json().items() if name != "sweeps"}
    pattern = LeftoverPattern.from_json(old)

    assert leftovers_to_resweep(ConnectorState("c", "r", CLOSED, 0, leftovers=(pattern,))) == ()
    assert leftovers_to_resweep(ConnectorState("c", "r", COPYING, 0, leftovers=(pattern,))) == (pattern,)


def test_merged_patterns_are_swept_as_long_as_the_one_that_is_swept_longest():
    (found,) = merge_leftovers([replace(PATTERN, sweeps=1), replace(PATTERN, sweeps=2)])

    assert found.sweeps == 2

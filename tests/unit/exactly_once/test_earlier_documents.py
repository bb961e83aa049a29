"""State and manifest of a release whose protocol had members about time directories and schemas of files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.connectors.files.shared.publishing.state_document import KeptState, TaskState, times_of
from airflow_connect.documents.run import Plan
from airflow_connect.errors import StateError
from airflow_connect.exactly_once import earlier
from airflow_connect.exactly_once.commit import state_after
from airflow_connect.exactly_once.manifest import Manifest, check_version
from airflow_connect.exactly_once.state import ConnectorState

RECORDED: dict[str, Any] = json.loads(Path("tests/data/earlier_documents.json").read_text())
PARTITION = TopicPartition("TOPIC", 0)


@pytest.fixture
def state() -> ConnectorState:
    """The state of a run that died between manifest and commit."""
    return ConnectorState.from_json(RECORDED["state"])


@pytest.fixture
def manifest() -> Manifest:
    """Its manifest."""
    return Manifest.from_json(RECORDED["manifest"])


def test_commit_keeps_what_the_earlier_release_would_have_kept(state: ConnectorState, manifest: Manifest) -> None:
    after = state_after(earlier.completed(manifest, state), state)

    kept = KeptState.from_json(after.kept)
    assert kept.time.to_json() == RECORDED["after"]["time"]
    assert after.kept["value_schemas"] == RECORDED["after"]["value_schemas"]
    assert kept.value_schemas.keys() == {PARTITION}


def test_what_is_complete_and_late_is_still_there(manifest: Manifest) -> None:
    assert [dict(one) for one in manifest.complete] == RECORDED["report"]["complete"]
    assert manifest.counts["late"] == 1
    (report,) = manifest.partitions
    times = times_of(report.details)
    assert times is not None and times.late == 1


def test_lost_files_are_copied_again_with_the_same_limits_and_schemas(manifest: Manifest) -> None:
    told = TaskState.from_json(manifest.for_tasks)
    assert told.late_before == RECORDED["manifest"]["late_before"]
    assert told.schemas_before.keys() == {PARTITION}


def test_documents_come_back_in_their_new_form(state: ConnectorState, manifest: Manifest) -> None:
    whole = earlier.completed(manifest, state)
    assert Manifest.from_json(json.loads(json.dumps(whole.to_json()))) == whole
    assert ConnectorState.from_json(json.loads(json.dumps(state.to_json()))) == state
    assert earlier.completed(whole, state) is whole


def test_an_earlier_release_refuses_the_new_form_instead_of_losing_it(
    state: ConnectorState, manifest: Manifest
) -> None:
    with pytest.raises(StateError, match="version 4; this release reads versions 1 to 3"):
        check_version(earlier.completed(manifest, state).to_json(), 3, "manifest")
    with pytest.raises(StateError, match="version 2; this release reads versions 1 to 1"):
        check_version(state.to_json(), 1, "state record")


def test_an_earlier_release_reads_documents_of_connectors_that_keep_nothing(
    state: ConnectorState, manifest: Manifest
) -> None:
    report = replace(manifest.partitions[0], details={})
    bare = replace(manifest, for_tasks={}, after=None, partitions=(report,))
    assert (bare.to_json()["v"], replace(state, kept={}).to_json()["v"]) == (2, 1)


def test_topic_that_was_created_again_leaves_its_times_and_schemas_behind(
    state: ConnectorState, manifest: Manifest
) -> None:
    recreated = replace(manifest, topic_ids={"TOPIC": "another"}, partitions=(), for_tasks={}, after=None)

    kept = KeptState.from_json(state_after(earlier.completed(recreated, state), state).kept)

    assert (kept.time.watermarks, kept.value_schemas) == ({}, {})
    assert kept.time.boundaries == KeptState.from_json(state.kept).time.boundaries


def test_connector_that_tracked_nothing_has_no_document() -> None:
    empty = {"watermarks": [], "boundaries": {}, "open_directories": []}
    assert earlier.kept({"time": empty}) == {}


def test_plan_has_not_changed() -> None:
    assert Plan.from_json(RECORDED["plan"]).to_json() == RECORDED["plan"]

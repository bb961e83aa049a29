"""The documents of a storage sink: what several ranges of a partition add up to, and versions."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_connect.api.coverage import Coverage
from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.sink_state import PlannedRun
from airflow_connect.connectors.files.shared.publishing.state_document import (
    KeptState,
    TaskState,
    copied_partitions,
    details_of,
)
from airflow_connect.connectors.files.shared.publishing.time_progress import CopiedPartition, PartitionTimes
from airflow_connect.documents.run import PartitionReport
from airflow_connect.errors import StateError


def test_a_partition_is_the_sum_of_its_ranges() -> None:
    times = [
        PartitionTimes(5, None, 1, {"a": 1}),
        PartitionTimes(9, 7, 2, {"b": 2}),
        PartitionTimes(None, 4, 0, {"a": 3}),
    ]
    reports = [
        PartitionReport(OffsetRange("t", 0, start, start + 10), 30, start + 10, 10, 10, details=details_of(found, ""))
        for start, found in zip((0, 10, 20), times, strict=True)
    ]

    whole = PartitionTimes(9, 4, 3, {"a": 1, "b": 2})
    assert copied_partitions(reports) == [CopiedPartition(TopicPartition("t", 0), whole)]


@pytest.mark.parametrize("document", [KeptState, TaskState])
def test_a_document_of_a_newer_version_is_refused(document: Any) -> None:
    with pytest.raises(StateError, match="has version 4; this release reads versions 1 to 3"):
        document.from_json({"v": 4})


def test_ids_of_schemas_are_kept_in_version_2() -> None:
    kept = KeptState(schema_ids={"t": {"key": [1], "value": None}})
    assert kept.to_json()["v"] == 2
    assert KeptState.from_json(kept.to_json()) == kept
    assert kept.without_topics_of(PlannedRun(gone=frozenset({"t"}))).to_json() == {}


def test_offsets_that_were_copied_are_kept_in_version_3() -> None:
    report = PartitionReport(OffsetRange("t", 0, 5, 9), 9, 9, 4, 3, filtered=1)
    kept = KeptState(coverage=Coverage().after([report]))
    assert kept.to_json() == {"v": 3, "coverage": {"t": {"0": {"ranges": [[5, 9]], "left_out": 1, "files": 0}}}}
    assert KeptState.from_json(kept.to_json()) == kept
    assert kept.without_topics_of(PlannedRun(gone=frozenset({"t"}))).to_json() == {}

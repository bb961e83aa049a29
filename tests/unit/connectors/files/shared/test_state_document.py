"""The documents of a storage sink: what several ranges of a partition add up to, and versions."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_connect.api.offsets import OffsetRange, TopicPartition
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
    with pytest.raises(StateError, match="has version 2; this release reads versions 1 to 1"):
        document.from_json({"v": 2})

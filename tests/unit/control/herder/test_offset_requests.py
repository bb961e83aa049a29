"""Offsets in requests of the REST API."""

from __future__ import annotations

import pytest

from airflow_connect.control.herder.offsets import _of_sink
from airflow_connect.control.herder.refusals import RefusedError


def entry(partition: object, offset: object) -> dict[str, dict[str, object]]:
    return {"partition": {"kafka_topic": "t", "kafka_partition": partition}, "offset": {"kafka_offset": offset}}


@pytest.mark.parametrize(
    ("partition", "offset", "what"),
    [(0, 2**63, "offset"), (0, "9223372036854775808", "offset"), (2**31, 5, "partition"), (0, 10**30, "offset")],
)
def test_number_that_java_does_not_hold_is_refused_by_its_name(partition: object, offset: object, what: str) -> None:
    with pytest.raises(RefusedError, match=f"Failed to parse the following Kafka {what} value"):
        _of_sink([entry(partition, offset)])


def test_the_largest_numbers_are_accepted() -> None:
    assert _of_sink([entry(2**31 - 1, str(2**63 - 1))]) == {f"t-{2**31 - 1}": 2**63 - 1}

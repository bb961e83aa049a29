"""How large the task configurations of one connector may be."""

from __future__ import annotations

import pytest

from airflow_connect.control.herder.refusals import RefusedError
from airflow_connect.control.herder.validation import refuse_invalid

STRINGS = "org.apache.kafka.connect.storage.StringConverter"
SINK = {
    "name": "c",
    "connector.class": "FileStreamSink",
    "topics": "t",
    "file": "/tmp/f",
    "key.converter": STRINGS,
    "value.converter": STRINGS,
}
WORKER = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g"}


def test_large_configuration_with_many_tasks_is_refused_with_the_number_that_is_possible():
    refuse_invalid({**SINK, "tasks.max": "300", "note": "x" * 100_000}, WORKER)
    with pytest.raises(RefusedError, match=r"Invalid value 2000 for configuration tasks.max: .* at most 33[0-9] tasks"):
        refuse_invalid({**SINK, "tasks.max": "2000", "note": "x" * 100_000}, WORKER)


def test_number_of_tasks_has_a_limit_of_its_own():
    refuse_invalid({**SINK, "tasks.max": "10000"}, WORKER)
    with pytest.raises(RefusedError, match="at most 10000 tasks"):
        refuse_invalid({**SINK, "tasks.max": "10001"}, WORKER)

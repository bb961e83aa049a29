"""The functions of the hot loop that one record passes: those that docs/architecture.md lists, in its order."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

from airflow_connect.api.record import KafkaRecord
from airflow_connect.connectors.files.shared.writing import open_file, topic_partition_writer
from airflow_connect.runtime.executor import converting
from airflow_connect.runtime.executor.sink import loop, task_runner
from tests.unit.connectors.files.shared.staging import copy

PAGE = Path(__file__).parents[5] / "docs" / "architecture.md"
HOT_LOOP = {str(module.__file__) for module in (loop, converting, task_runner, topic_partition_writer, open_file)}
MOST_CALLS = 45
"""Of all functions of the package for one record, with converters, partitioner and rotation."""
RECORDS = 50
CONFIG = {
    "flush.size": "1000",
    "format.class": "JsonFormat",
    "value.converter": "JsonConverter",
    "value.converter.schemas.enable": "false",
}


def record(offset: int) -> KafkaRecord:
    return KafkaRecord(topic="t", partition=0, offset=offset, timestamp=1_700_000_000_000, key=None, value=b'{"a":1}')


def calls_of(records: int) -> tuple[list[str], Counter[str]]:
    """Functions of the hot loop, in the order of their first calls, and how often each function was called."""
    order: list[str] = []
    calls: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        file, name = frame.f_code.co_filename, frame.f_code.co_qualname
        if event != "call" or "/airflow_connect/" not in file or "<" in name:
            return
        if file in HOT_LOOP and name not in order:
            order.append(name)
        calls[name] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        outcome, _ = copy(CONFIG, [[record(n) for n in range(records)]], columnar=False)
    finally:
        sys.setprofile(before)
    assert not outcome.error and sum(report.written for report in outcome.reports) == records
    return order, calls


def test_a_record_passes_the_functions_that_the_page_lists() -> None:
    order, few = calls_of(RECORDS)
    _, many = calls_of(2 * RECORDS)
    for_each = {name for name in many if many[name] - few[name] == RECORDS}
    table = PAGE.read_text("utf-8").split("a record passes these functions", 1)[1].split("\n\n", 2)[1]
    listed = re.findall(r"^\| `([\w.]+)` \|", table, re.M)

    assert len(listed) == 8
    assert set(listed) <= for_each
    assert [name for name in order if name in listed] == listed
    assert (sum(many.values()) - sum(few.values())) / RECORDS <= MOST_CALLS

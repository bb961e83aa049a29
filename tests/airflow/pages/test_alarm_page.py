"""docs/how-to/get-an-alarm.md: its DAGs load, and its alarms speak when they should, on a real broker."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG

from airflow_connect.airflow.outcome import asset_extra
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.documents.run import RunReport
from tests.airflow.conftest import LoadDag

pytestmark = pytest.mark.integration

PAGE = (Path(__file__).parents[3] / "docs/how-to/get-an-alarm.md").read_text()
BLOCKS = {
    re.findall(r'dag_id="(\w+)"', block)[0]: block
    for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
}
HOURS_OLD = 2


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_python_block_is_a_dag_that_serializes(block: str, load_dag: LoadDag) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    dag = load_dag(block)
    assert isinstance(dag, DAG)
    assert DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag)).dag_id == dag.dag_id


def test_alarm_of_an_old_record_names_connector_count_and_age(
    load_dag: LoadDag,
    kafka: KafkaBroker,
    make_topic: Callable[..., str],
    produce: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic, now_ms = make_topic(), time.time_ns() // 1_000_000
    old_ms = now_ms - HOURS_OLD * 3_600_000
    produce(topic, [(0, None, b"1", old_ms, []), (0, None, b"2", now_ms, [])])
    connection = {"conn_type": "kafka", "extra": {"bootstrap.servers": kafka.bootstrap}}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(connection))
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example.com")
    dag = load_dag(BLOCKS["alarm_lag"].replace('"meetups"', repr(topic)))
    (asset,) = dag.timetable.asset_condition.objects  # type: ignore[attr-defined]
    trigger = asset.watchers[0].trigger

    async def first() -> Any:
        async for event in trigger.run():
            return event.payload
        return None

    payload = asyncio.run(asyncio.wait_for(first(), 30))
    event = SimpleNamespace(extra={"payload": payload})
    told = dag.get_task("tell").python_callable({asset: [event]})
    page = "https://airflow.example.com/plugin/kafka-connect/airflow-connect/problems"
    assert told == f"meetups-to-s3: 2 records wait, the oldest for 2.0 h. {page}"


def test_alarm_of_dead_letters_adds_up_what_the_events_say(load_dag: LoadDag) -> None:
    extras = [asset_extra(RunReport("c", "r", "done", 0, 1, dead_lettered=count)) for count in (3, 0, 4)]
    events = [SimpleNamespace(extra=extra) for extra in extras]
    tell = load_dag(BLOCKS["alarm_dead_letters"]).get_task("tell").python_callable
    assert (tell({"asset": events}), tell({"asset": events[1:2]})) == (7, 0)

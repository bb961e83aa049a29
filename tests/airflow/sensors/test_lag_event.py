"""The asset watcher's trigger: when it fires, when it does not, what it stores, what it remembers."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow._shared.module_loading import import_string
from airflow.triggers.base import BaseEventTrigger

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.errors import AccessError, ConfigError, ConnectError, UnavailableError
from airflow_connect.observe.watches.observation import Observation
from airflow_connect.triggers import lag_event
from airflow_connect.triggers.lag_event import STORED, ConnectorLagEventTrigger
from tests.support.copies.local import local_sink
from tests.support.kafka_data import TopicProducer

CONFIG = {"name": "c", "topics": "t"}
Look = Observation | ConnectError


class Store:
    """The state store of a watched asset."""

    def __init__(self, value: Any = None) -> None:
        self.value = value

    async def aget(self, key: str) -> Any:
        assert key == STORED
        return self.value

    async def aset(self, key: str, value: Any) -> None:
        assert key == STORED
        self.value = value


class StoreOfTwoAssets:
    """What Airflow gives a trigger that watches several assets."""

    async def aget(self, key: str) -> Any:
        raise ValueError("Task has 2 concrete inlets and outlets")

    async def aset(self, key: str, value: Any) -> None:
        raise ValueError("Task has 2 concrete inlets and outlets")


@pytest.fixture
def events_of(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Any]]:
    """The events of a trigger that sees this, look after look: `events_of(looks, store=None, **arguments)`."""

    def run(seen: Sequence[Look], store: Any = None, **arguments: Any) -> list[Any]:
        async def looks(request: object, every_s: float) -> AsyncIterator[Look]:
            for look in seen:
                yield look

        monkeypatch.setattr(lag_event, "looks", looks)
        trigger = ConnectorLagEventTrigger(config=CONFIG, min_records=1, **arguments)
        trigger.asset_state_store = store

        async def collect() -> list[Any]:
            return [event.payload["n"] async for event in trigger.run()]

        return asyncio.run(collect())

    return run


def lag(n: int, position: str) -> Observation:
    return Observation(True, {"n": n}, position)


def test_one_event_for_each_position_however_often_it_is_seen(events_of: Callable[..., list[Any]]) -> None:
    low = Observation(False, {}, "a")
    assert events_of([low, lag(1, "a"), lag(2, "a"), low, lag(3, "a"), lag(4, "b"), lag(5, "b"), lag(6, "c")]) == [
        1,
        4,
        6,
    ]


def test_event_is_repeated_after_a_while_if_nothing_was_committed(events_of: Callable[..., list[Any]]) -> None:
    store = Store({"position": "a", "at_s": time.time() - 60})
    assert events_of([lag(1, "a")], store, repeat_after=timedelta(minutes=2)) == []
    assert events_of([lag(1, "a")], store, repeat_after=None) == []
    assert events_of([lag(1, "a"), lag(2, "a")], store, repeat_after=30) == [1]
    assert store.value["position"] == "a" and time.time() - store.value["at_s"] < 30


def test_restarted_triggerer_does_not_repeat_an_event(events_of: Callable[..., list[Any]]) -> None:
    store = Store()
    assert events_of([lag(1, "a")], store) == [1]
    assert json.loads(json.dumps(store.value)) == store.value
    assert events_of([lag(2, "a"), lag(3, "b")], store) == [3]
    assert events_of([lag(1, "a"), lag(2, "a"), lag(3, "b")], StoreOfTwoAssets()) == [1, 3]
    assert events_of([lag(1, "a")], Store("something else")) == [1]


def test_error_does_not_end_a_watcher(events_of: Callable[..., list[Any]]) -> None:
    away, denied = UnavailableError("Kafka is away."), AccessError("No.")
    assert events_of([away, denied, denied, lag(1, "a"), away, lag(2, "a")]) == [1]


def test_stored_arguments_are_what_is_needed_and_equal_ones_are_one_trigger(tmp_path: Path) -> None:
    file, worker = tmp_path / "c.json", tmp_path / "worker.properties"
    file.write_text(json.dumps({**CONFIG, "s3.bucket.name": "b", "aws.secret.access.key": "a secret of S3"}))
    worker.write_text("bootstrap.servers=b:9092\nvalue.converter=JsonConverter\nspark.master=local[2]\n")
    given: dict[str, Any] = {"config_file": file, "worker": worker, "min_age": timedelta(minutes=1)}
    path, arguments = ConnectorLagEventTrigger(**given).serialize()
    assert (arguments["config"], arguments["worker"]) == (CONFIG, {"bootstrap.servers": "b:9092"})
    again = import_string(path)(**json.loads(json.dumps(arguments)))
    assert again.serialize() == (path, arguments)
    assert BaseEventTrigger.hash(path, arguments) == BaseEventTrigger.hash(*again.serialize())


def test_watcher_that_cannot_work_is_refused_when_the_dag_file_is_parsed() -> None:
    with pytest.raises(ConfigError, match=r"sasl\.jaas\.config in the worker of this asset watcher is a secret"):
        ConnectorLagEventTrigger(config=CONFIG, worker={"sasl.jaas.config": 'password="rabbit77"'}, min_records=1)
    with pytest.raises(ConfigError, match="None of min_records"):
        ConnectorLagEventTrigger(config=CONFIG)
    with pytest.raises(ConfigError, match="This asset watcher has neither config and config_file"):
        ConnectorLagEventTrigger(min_records=1)
    with pytest.raises(ConfigError, match="worker of this asset watcher is s3://a@b/worker"):
        ConnectorLagEventTrigger(config=CONFIG, worker="s3://a@b/worker.json", min_records=1)
    reference = {"sasl.password": "${airflow:our_kafka:password}"}
    assert ConnectorLagEventTrigger(config=CONFIG, worker=reference, min_records=1)


@pytest.mark.integration
def test_events_follow_the_commits_of_a_connector(
    kafka: KafkaBroker, tmp_path: Path, make_topic: Callable[..., str], produce: TopicProducer
) -> None:
    sink = local_sink(kafka, tmp_path, make_topic())
    trigger = ConnectorLagEventTrigger(
        config=sink.connector(), worker=sink.worker(), kafka_conn_id=None, min_records=2, poll_interval=0.2
    )

    def write(count: int) -> None:
        produce(sink.topic, [(0, None, "{}")] * count)

    async def watch() -> list[Any]:
        events, seen = trigger.run(), []
        for count in (3, 2):
            waiting = asyncio.ensure_future(anext(events))
            await asyncio.to_thread(write, 1)
            await asyncio.to_thread(write, count - 1)
            seen.append((await asyncio.wait_for(waiting, 30)).payload["offsets"])
            await asyncio.to_thread(sink.run)
        waiting = asyncio.ensure_future(anext(events))
        done, _ = await asyncio.wait([waiting], timeout=0.6)  # three looks
        assert not done, "there is nothing to copy"
        waiting.cancel()
        return seen

    first, second = asyncio.run(watch())
    assert first[f"{sink.topic}-0"][0] == 0 and second == {f"{sink.topic}-0": [3, 5]}

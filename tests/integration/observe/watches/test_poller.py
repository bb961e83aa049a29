"""A thousand who wait share the requests of one: counted where they leave for the Kafka client."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.errors import UnavailableError
from airflow_connect.kafka.admin import many_offsets
from airflow_connect.kafka.clients.short_lived import Admin
from airflow_connect.kafka.state import compacted_topics
from airflow_connect.observe.watches import lag_rounds
from airflow_connect.observe.watches.conditions import Condition, LagReaches, RunEnds, TimePassed, TopicsHold
from airflow_connect.observe.watches.observation import Observation
from airflow_connect.observe.watches.poller import Poller, shared_poller
from airflow_connect.observe.watches.reader import Answer, ClusterReader, Watch
from airflow_connect.observe.watches.target import target_of
from tests.support.copies.local import LocalSink, local_sink
from tests.support.kafka_data import TopicProducer
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration

THOUSAND = 1000
T0 = time.time_ns() // 1_000_000 - 2 * 3_600_000


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often this process called what sends requests."""
    counts: Counter[str] = Counter()

    def count(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            counts[name] += 1
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, counted)

    for name in ("list_offsets", "describe_topics", "list_topics"):
        count(Admin, name)
    count(ClusterReader, "observe")
    count(many_offsets, "committed_now")
    count(lag_rounds, "first_records")
    count(compacted_topics, "read_to")
    return counts


async def ask_all(poller: Poller, watches: Sequence[Watch], every_s: float = 0.0) -> list[Observation]:
    return await asyncio.gather(*(asyncio.wrap_future(poller.ask(watch, every_s)) for watch in watches))


def test_thousand_sensors_cost_as_many_requests_as_one(
    kafka: KafkaBroker,
    tmp_path: Path,
    make_topic: Callable[..., str],
    produce: TopicProducer,
    requests: Counter[str],
) -> None:
    sink: LocalSink = local_sink(kafka, tmp_path, make_topic(2))
    produce(sink.topic, [(n % 2, None, json.dumps({"n": n}), T0) for n in range(10)])
    sink.run()
    target = target_of(sink.spec())
    one: list[Condition] = [
        LagReaches(min_records=1, min_age_ms=1),
        TopicsHold(100),
        RunEnds(2 * T0),
        TimePassed(T0 + 1),
    ]
    poller = shared_poller(target.cluster)
    assert poller is shared_poller(target_of(sink.spec()).cluster)
    wait_until(lambda: _is_answered(poller, Watch(target, one[0])), "leaders of the new topic")
    asyncio.run(ask_all(poller, [Watch(target, condition) for condition in one]))

    requests.clear()
    asyncio.run(ask_all(poller, [Watch(target, condition) for condition in one]))
    of_one = dict(requests)
    assert of_one["describe_topics"] == 1
    # Ends, beginnings, a time, and the end of the runs topic; nobody copies, so no group is asked.
    assert of_one["list_offsets"] == 4
    assert "committed_now" not in of_one

    requests.clear()
    watches = [Watch(target, condition) for condition in one * (THOUSAND // len(one))]
    answers = asyncio.run(ask_all(poller, watches))
    assert len(answers) == THOUSAND and not any(answer.is_reached for answer in answers)
    # On a busy machine the thousand may ask too slowly for one round.
    rounds = requests["observe"]
    assert rounds <= 3 and dict(requests) == {name: rounds * count for name, count in of_one.items()}

    # New data decides about the lag, so the group is asked, once for all.
    produce(sink.topic, [(0, None, "{}", T0)])
    requests.clear()
    reached = asyncio.run(ask_all(poller, watches))
    assert sum(answer.is_reached for answer in reached) == THOUSAND // len(one)
    rounds = requests["observe"]
    assert rounds <= 3 and requests["committed_now"] == rounds
    assert requests["list_offsets"] == rounds * of_one["list_offsets"]


def _is_answered(poller: Poller, watch: Watch) -> bool:
    try:
        return bool(poller.ask(watch).result())
    except UnavailableError:
        return False


class HeldReader(ClusterReader):
    """Answers when it is let, and keeps what it was asked."""

    def __init__(self) -> None:
        self.rounds: list[int] = []
        self.gate = threading.Event()
        self.closed = threading.Event()

    def observe(self, watches: Sequence[Watch]) -> list[Answer]:
        self.rounds.append(len(watches))
        assert self.gate.wait(30)
        return [Observation(False) for _ in watches]

    def close(self) -> None:
        self.closed.set()


ANY: Any = None


def test_loop_is_free_while_kafka_does_not_answer_and_those_who_leave_are_not_asked_for() -> None:
    reader = HeldReader()
    poller = Poller(reader, idle_s=0.05)

    async def run() -> None:
        first = asyncio.ensure_future(asyncio.wrap_future(poller.ask(ANY)))
        while not reader.rounds:
            await asyncio.sleep(0)  # the loop turns
        left = asyncio.ensure_future(asyncio.wrap_future(poller.ask(ANY)))
        await asyncio.sleep(0)
        left.cancel()
        second = asyncio.ensure_future(asyncio.wrap_future(poller.ask(ANY)))
        reader.gate.set()
        assert [(await first).is_reached, (await second).is_reached] == [False, False]

    asyncio.run(run())
    assert reader.rounds == [1, 1]
    assert reader.closed.wait(30), "an idle poller closes its clients"
    assert poller.ask(ANY).result(30) == Observation(False), "and begins again when it is asked"


def test_waits_of_equal_length_that_begin_at_different_times_end_in_one_round() -> None:
    reader = HeldReader()
    reader.gate.set()
    poller = Poller(reader)
    futures = [poller.ask(ANY, every_s=1.0)]
    for _ in range(3):
        threading.Event().wait(0.01)
        futures.append(poller.ask(ANY, every_s=1.0))
    for future in futures:
        future.result(30)
    assert sum(reader.rounds) == 4 and len(reader.rounds) <= 2


def test_bug_reaches_everyone_who_waits_and_later_rounds_go_on() -> None:
    reader = HeldReader()
    reader.observe = lambda watches: [][len(watches)]  # type: ignore[method-assign]
    poller = Poller(reader)
    with pytest.raises(IndexError):
        poller.ask(ANY).result(30)
    reader.observe = lambda watches: [Observation(True)]  # type: ignore[method-assign]
    assert poller.ask(ANY).result(30).is_reached

"""A source task's two units against brokers that take the first and refuse half of the second."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaError, Message, Producer

from airflow_connect.errors import ConnectError
from airflow_connect.exactly_once.guarantee import Guarantee
from airflow_connect.exactly_once.task_transaction import TaskDelivery, delivery_of
from airflow_connect.kafka.state.offsets.offsets_topic import OffsetRecord
from airflow_connect.kafka.writing.produced import ProducedColumns, ProducedRecord
from airflow_connect.kafka.writing.task_producer import TaskProducer
from airflow_connect.testing.topics import Topics
from tests.support.kafka_data import create_topic

GUARANTEES = ["exactly_once", "at_least_once", "at_most_once"]
WAYS = ["columns", "records"]
PROBE = b"probe"


def answer_to_a_record(bootstrap: str, topic: str) -> int | None:
    """Code of what a broker answers to a record of another client, a timeout's if none does; None: it took it."""
    answers: list[int | None] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        answers.append(None if error is None else error.code())

    settings = {
        "bootstrap.servers": bootstrap,
        "acks": "all",
        "retries": 0,
        "message.timeout.ms": 20_000,
        "log_level": 0,
    }
    producer = Producer(settings)
    producer.produce(topic, PROBE, on_delivery=delivered)
    producer.flush(30)
    return answers[0]


def problems(
    bootstrap: str, refusing: str, expected: type[ConnectError] | tuple[type[ConnectError], ...], **settings: Any
) -> list[str]:
    """What is wrong under any guarantee and either way to send, all at once.

    Args:
        bootstrap: the brokers.
        refusing: the topic that they do not let be written; it holds probes at most.
        expected: the error, or one of the errors, with which the second unit has to end.
        settings: of the producers, transactional ones excepted.
    """

    def of_one(case: tuple[str, str]) -> str:
        guarantee, way = case
        times_out = {} if guarantee == "exactly_once" else settings
        return _problem_with(bootstrap, refusing, guarantee, way, expected, **times_out)

    with ThreadPoolExecutor(len(GUARANTEES) * len(WAYS)) as threads:
        return [problem for problem in threads.map(of_one, product(GUARANTEES, WAYS)) if problem]


def _send(delivery: TaskDelivery, way: str, topic: str, values: list[str]) -> None:
    if way == "columns":
        delivery.send_columns(ProducedColumns(topic, None, pa.array(values)))
    else:
        for value in values:
            delivery.send(ProducedRecord(topic, None, None, value.encode()))


def _problem_with(
    bootstrap: str,
    refusing: str,
    guarantee: str,
    way: str,
    expected: type[ConnectError] | tuple[type[ConnectError], ...],
    **settings: Any,
) -> str:
    """Send a unit that the brokers take, then one of which they refuse the second half; what is wrong then, or ""."""
    name = f"{refusing}-{guarantee}-{way}"
    create_topic(bootstrap, name, 1)
    create_topic(bootstrap, f"{name}-offsets", 1)
    transactional_id = name if guarantee == "exactly_once" else ""
    producer = TaskProducer({"bootstrap.servers": bootstrap, "log_level": 0, **settings}, transactional_id, 3_000)
    try:
        producer.fence()
        delivery = delivery_of(Guarantee.of(guarantee), producer, [f"{name}-offsets"])
        _send(delivery, way, name, ["1", "2"])
        delivery.store([OffsetRecord(b"key", b"behind 2")])
        _send(delivery, way, name, ["3", "4"])
        _send(delivery, way, refusing, ["5", "6"])
        delivery.store([OffsetRecord(b"key", b"behind 6")])
        return f"{name}: the offset was stored"
    except ConnectError as error:
        if not isinstance(error, expected):
            return f"{name}: {error!r}"
    finally:
        producer.close()
    wanted = {
        refusing: [],
        name: [b"1", b"2"] if guarantee == "exactly_once" else [b"1", b"2", b"3", b"4"],
        # At most once writes the offset first.
        f"{name}-offsets": [b"behind 2", b"behind 6"] if guarantee == "at_most_once" else [b"behind 2"],
    }
    read = Topics(bootstrap).read
    # A probe may have come before the rule that refuses it.
    found = {topic: [m.value() for m in read(topic) if m.value() != PROBE] for topic in wanted}
    return "" if found == wanted else f"{name}: {found}"

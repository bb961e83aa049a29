"""What each value of `delivery.guarantee` means, in both directions."""

from __future__ import annotations

import pickle
from typing import Any
from unittest.mock import Mock

import pytest

from airflow_connect.exactly_once.guarantee import AT_LEAST_ONCE, AT_MOST_ONCE, EXACTLY_ONCE, Guarantee
from airflow_connect.exactly_once.task_transaction import AtLeastOnce, AtMostOnce, ExactlyOnce, delivery_of


@pytest.mark.parametrize(
    ("name", "guarantee", "steps", "delivery"),
    [
        ("exactly_once", EXACTLY_ONCE, ["uses_transactions", "writes_manifest"], ExactlyOnce),
        ("at_least_once", AT_LEAST_ONCE, ["may_repeat", "overwrites", "stores_by_time"], AtLeastOnce),
        ("at_most_once", AT_MOST_ONCE, ["commits_first", "may_lose", "overwrites"], AtMostOnce),
    ],
)
def test_steps_of_each_guarantee(name: str, guarantee: Guarantee, steps: list[str], delivery: type) -> None:
    producer: Any = None
    every = ("commits_first", "may_lose", "may_repeat", "overwrites", "stores_by_time", "uses_transactions")
    assert Guarantee.of(name) == guarantee
    assert sorted(step for step in (*every, "writes_manifest") if getattr(guarantee, step)) == steps
    assert isinstance(delivery_of(guarantee, producer, ()), delivery)
    # Executors get it inside the pickled settings.
    assert pickle.loads(pickle.dumps(guarantee)) == guarantee


@pytest.mark.parametrize("guarantee", [EXACTLY_ONCE, AT_LEAST_ONCE, AT_MOST_ONCE])
def test_records_keep_their_order_if_some_of_a_unit_are_in_columns(guarantee: Guarantee) -> None:
    producer = Mock()
    delivery = delivery_of(guarantee, producer, ())
    first, second, third = (Mock(**{"keys": None, "values.nbytes": 1}) for _ in range(3))
    delivery.send_columns(first)
    delivery.send(second)
    delivery.send_columns(third)
    delivery.store([])
    sent = [(name, arguments[0]) for name, arguments, _ in producer.method_calls if name.startswith("send")]
    assert sent == [("send_columns", first), ("send", second), ("send_columns", third)]

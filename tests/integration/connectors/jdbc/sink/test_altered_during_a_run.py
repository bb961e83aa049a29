"""Offsets that an operator changes while a run is at work, such as one of a connector that is being stopped."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from airflow_connect.runtime.driver.entry import reset_offsets, set_offsets
from tests.support.copies.jdbc_sink import JdbcSink, jdbc_sink
from tests.support.copies.s3 import InProcessEngine

pytestmark = pytest.mark.integration


class Interrupted(InProcessEngine):
    """Something happens right before the tasks of the first run, or right after them."""

    def __init__(self, happens: Callable[[], object], *, before: bool) -> None:
        super().__init__()
        self._happens, self._before = happens, before

    def run(self, settings: Any, tasks: Any) -> list[Any]:
        if not self.jobs and self._before:
            self._happens()
        reports: list[Any] = []
        try:
            reports = super().run(settings, tasks)
        finally:
            if self.jobs == 1 and not self._before:
                self._happens()
        return reports


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def sink(request: pytest.FixtureRequest, kafka, make_topic) -> JdbcSink:
    return jdbc_sink(kafka, request.getfixturevalue(f"{request.param}_database"), make_topic())


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("first", [0, 5])
def test_the_run_does_not_undo_it(sink, produce, first, before):
    produce(sink.topic, [(0, None, json.dumps({"n": n})) for n in range(10)])
    assert sink.run().records == 10
    produce(sink.topic, [(0, None, json.dumps({"n": n})) for n in range(10, 20)])

    def copy_again() -> None:
        sink.target.execute(f"DELETE FROM {sink.table} WHERE n >= {first}")
        if first:
            set_offsets(sink.spec(), {f"{sink.topic}-0": first})
        else:
            reset_offsets(sink.spec())

    sink.engine = Interrupted(copy_again, before=before)
    error = sink.try_run().error

    assert error is not None and error["code"] == "run.fenced"
    assert sink.run().records == 20 - first
    assert sorted(value["n"] for value in sink.values()) == list(range(20))

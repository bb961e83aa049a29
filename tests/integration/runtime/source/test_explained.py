"""A task whose methods for the end of its life fail as well: the first error is the one that is reported."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest

from airflow_connect.api import DataError, SourceRecord
from airflow_connect.errors import ConnectError
from tests.integration.runtime.source.conftest import Numbers
from tests.integration.runtime.source.numbers import NumbersConnector, NumbersTask

FIRST = "The disk of the source is broken."


class _Failing(NumbersTask):
    def poll(self) -> Sequence[SourceRecord] | None:
        raise DataError(FIRST, code="data.first")


class UnexplainedTask(_Failing):
    """Neither `explained` nor `stop` works."""

    def explained(self, error: ConnectError) -> ConnectError:
        raise RuntimeError("the explanation failed")

    def stop(self) -> None:
        raise MemoryError("stop failed")


class RaisedTask(_Failing):
    """Fails by `raise_error`, and can explain it."""

    def poll(self) -> Sequence[SourceRecord] | None:
        self.context.raise_error(DataError(FIRST, code="data.first"))
        return None

    def explained(self, error: ConnectError) -> ConnectError:
        return DataError(f"{error.message} Replace it.", code=error.code)


class UnexplainedConnector(NumbersConnector):
    """A connector of such tasks."""

    task_class = UnexplainedTask


class RaisedConnector(NumbersConnector):
    """A connector of such tasks."""

    task_class = RaisedTask


def test_error_of_explained_and_of_stop_does_not_hide_the_first_one(
    numbers: Numbers, caplog: pytest.LogCaptureFixture
) -> None:
    numbers.feed(3)
    with caplog.at_level(logging.WARNING):
        report = numbers.try_run(connector_class=f"{__name__}:{UnexplainedConnector.__name__}")
    assert report.status == "failed" and report.error is not None
    assert (report.error["code"], FIRST in report.error["message"]) == ("data.first", True)
    assert any("could not say more" in m and "the explanation failed" in m for m in caplog.messages), caplog.messages
    assert any("stop failed" in m for m in caplog.messages), caplog.messages


def test_error_that_a_task_requested_is_explained_too(numbers: Numbers) -> None:
    numbers.feed(3)
    report = numbers.try_run(connector_class=f"{__name__}:{RaisedConnector.__name__}")
    assert report.status == "failed" and report.error is not None
    assert report.error["message"].endswith(f"{FIRST} Replace it.")

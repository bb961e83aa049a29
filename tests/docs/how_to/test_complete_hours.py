"""docs/how-to/know-when-an-hour-is-complete.md: its configuration runs and does what the page says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from airflow_connect.connectors.files.shared.settings.complete_keys import CompleteConfig
from airflow_connect.runtime.driver import run_in_progress
from airflow_connect.runtime.driver.sink import run as driver_run
from airflow_connect.runtime.reporting.presentation import report_line
from tests.integration.complete_directories.conftest import T13
from tests.support.copies.s3 import Sink

pytestmark = pytest.mark.integration

PAGE = "docs/how-to/know-when-an-hour-is-complete.md"


@pytest.fixture
def page(pytestconfig: pytest.Config) -> str:
    return (pytestconfig.rootpath / PAGE).read_text()


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def test_configuration_of_the_page_marks_the_hour_that_it_shows(
    page: str,
    make_topic: Callable[..., str],
    make_sink: Callable[..., Sink],
    produce: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (shown,) = blocks(page, "json")
    topic = make_topic(partitions=2)
    sink = make_sink(topic)
    here = ("name", "topics", "s3.bucket.name")
    sink.config = {key: value for key, value in json.loads(shown).items() if key not in here}
    produce(topic, [(0, None, f'{{"n": {minute}}}', T13 + minute * 60_000) for minute in (5, 59, 61)])
    for module in (driver_run, run_in_progress):
        monkeypatch.setattr(module, "now_ms", lambda: T13 + 71 * 60_000)  # The second partition is idle for 10 minutes.

    report = sink.run()
    keys = sink.keys()

    line, tree = blocks(page, "text")
    told = report_line(report).replace(sink.name, "orders-by-hour").replace(topic, "orders")
    assert re.sub(r"[0-9.]+ s,", "0.21 s,", told) == line.strip()
    of_hour = [key.replace(topic, "orders") for key in keys if "/hour=13/" in key]
    assert of_hour == tree.split()


def test_page_tells_of_every_key_and_its_default(page: str) -> None:
    for name, key in CompleteConfig.config_def().keys.items():
        default = str(key.default).lower() or "blank"
        assert re.search(rf"\| `{re.escape(name)}` \| `?{re.escape(default)}`? \|", page), name

"""What `airflow-connect demo --ui` shows: three connectors, each in another state, by real runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_connect.cli.demo.scene import BEHIND, CLICKS, INVOICES, ORDERS, WRONG_AMOUNTS, Scene, worker_of
from airflow_connect.control.settings import ControlSettings
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.ui.overview.details import newest_letters
from airflow_connect.ui.overview.model import State
from airflow_connect.ui.overview.reader import InstallationReader

pytestmark = pytest.mark.integration


def test_demo_has_a_healthy_a_lagging_and_a_failed_connector(
    kafka: KafkaBroker, unique_name: str, tmp_path: Path
) -> None:
    topics = {f"{kind}.storage.topic": f"{unique_name}-{kind}" for kind in ("config", "offset", "status", "runs")}
    worker = {**worker_of(kafka.bootstrap, 8083), "group.id": unique_name, **topics}
    Scene(kafka.bootstrap, tmp_path, worker, f"{unique_name}-").fill()
    settings = ControlSettings.from_worker(worker)
    found = InstallationReader(settings).read().connectors
    assert {name: (connector.state, connector.lag) for name, connector in found.items()} == {
        ORDERS: (State.CURRENT, 0),
        CLICKS: (State.WAITING, BEHIND),
        INVOICES: (State.FAILED, 40),
    }
    assert [run.status for run in found[INVOICES].runs] == ["failed", "done"]
    assert "a-file" in found[INVOICES].problem
    assert found[INVOICES].runs[0].error["message"] in found[INVOICES].problem
    change = found[INVOICES].change
    assert change is not None and change.before["store.url"] == f"file://{tmp_path / 'files'}"
    letters = newest_letters(settings, INVOICES, found[INVOICES].queue)
    assert [(stage, count) for stage, _, count in letters.reasons] == [("TRANSFORMATION", WRONG_AMOUNTS)]

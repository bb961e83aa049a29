"""Installations come from Airflow's configuration and from connections of type `connect_worker`."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from airflow_connect.control.herder.refusals import RefusedError
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.errors import ConfigError
from airflow_connect.ui.web.dag_places import DagPlace
from airflow_connect.ui.web.installations import Installations
from tests.support.servers.rest import worker_of
from tests.support.waiting import wait_until

SETTING = "AIRFLOW__AIRFLOW_CONNECT__WORKER_CONN_IDS"


def declare(monkeypatch: pytest.MonkeyPatch, conn_id: str, worker: dict[str, str], **fields: str) -> None:
    connection = {"conn_type": "connect_worker", "extra": worker, **fields}
    monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(connection))


def test_without_the_setting_there_is_no_installation_and_the_error_says_what_to_do(airflow_home: Path) -> None:
    found = Installations()
    assert found.names() == []
    with pytest.raises(RefusedError, match=r"\[airflow_connect\] worker_conn_ids") as refused:
        found.default_name()
    assert refused.value.status == 404


def test_a_connection_that_the_setting_does_not_name_is_not_shown(
    airflow_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SETTING, " one, two ,one")
    declare(monkeypatch, "three", {})
    found = Installations()
    assert (found.names(), found.default_name()) == (["one", "two"], "one")
    with pytest.raises(RefusedError, match="shows no installation 'three'") as refused:
        found.get("three")
    assert refused.value.status == 404


def test_what_the_database_has_not_said_yet_is_not_taken_for_missing(
    airflow_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SETTING, "")
    monkeypatch.setattr("airflow_connect.ui.web.installations.PLACES_WAIT_S", 0.0)
    place = DagPlace("three", "three", None, "three", None)

    class Slow:
        answer, is_asked = threading.Event(), threading.Event()

        def read(self) -> dict[str, DagPlace]:
            self.is_asked.set()
            assert self.answer.wait(60)
            return {"three": place}

    slow = Slow()
    found = Installations(slow)  # type: ignore[arg-type]
    with pytest.raises(RefusedError, match="has not yet said which connections its DAGs use") as refused:
        found.refuse_unknown("three")
    assert refused.value.status == 503 and slow.is_asked.is_set()
    slow.answer.set()
    wait_until(found.names, "the database has answered")
    found.refuse_unknown("three")
    with pytest.raises(RefusedError, match="shows no installation 'four'") as refused:
        found.refuse_unknown("four")
    assert refused.value.status == 404


def test_a_connection_that_is_missing_or_names_no_brokers_is_told(
    airflow_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SETTING, "one,two")
    declare(monkeypatch, "two", {"group.id": "g"})
    with pytest.raises(ConfigError, match="no connection called 'one'"):
        Installations().get("one")
    with pytest.raises(ConfigError, match=r"bootstrap\.servers"):
        Installations().get("two")


@pytest.mark.integration
def test_an_installation_is_opened_once_and_again_when_its_connection_has_changed(
    airflow_home: Path, kafka: KafkaBroker, unique_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = worker_of(kafka.bootstrap, unique_name)
    declare(monkeypatch, "prod", {key: value for key, value in worker.items() if key != "bootstrap.servers"},
            host=kafka.bootstrap)  # fmt: skip
    monkeypatch.setenv(SETTING, "prod")
    found = Installations()
    first = found.get("prod")
    assert first.herder.names() == []
    assert (first.worker["bootstrap.servers"], first.settings.group_id) == (kafka.bootstrap, unique_name)
    assert found.get("prod") is first
    declare(monkeypatch, "prod", {**worker, "topic.tracking.enable": "${airflow:prod:conn_type}"})
    assert found.get("prod") is first, "a connection is used for some time as it was read"
    monkeypatch.setattr("airflow_connect.ui.web.installations.READ_AGAIN_AFTER_S", 0.0)
    with pytest.raises(ConfigError, match=r"topic\.tracking\.enable"):
        found.get("prod")
    declare(monkeypatch, "prod", {**worker, "topic.tracking.enable": "false"})
    assert found.get("prod").settings.tracks_topics is False

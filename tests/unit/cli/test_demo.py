"""The parts of the demo that need no server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airflow_connect.cli.demo import dag_folder
from airflow_connect.cli.demo.bucket import CountedObject, directories
from airflow_connect.cli.demo.dag_folder import write_dags
from airflow_connect.cli.demo.meetups import MINUTES, PARTITIONS, rsvps
from airflow_connect.cli.demo.scene import sales
from airflow_connect.cli.demo.stage import CONNECTOR_FILE, dags_folder
from airflow_connect.errors import ConfigError

NOW_MS = 1_790_000_000_000


def test_rsvps_are_the_same_every_time() -> None:
    assert list(rsvps(50, NOW_MS)) == list(rsvps(50, NOW_MS))


def test_rsvps_spread_over_all_partitions_and_minutes_in_order() -> None:
    records = list(rsvps(2000, NOW_MS))
    times = [record.timestamp_ms for record in records]
    assert times == sorted(times)
    assert {record.partition for record in records} == set(range(PARTITIONS))
    assert len({time // 60_000 for time in times}) == MINUTES
    assert len({time // 3_600_000 for time in times}) == 2


def test_rsvp_looks_like_one() -> None:
    record = next(rsvps(1, NOW_MS))
    value = json.loads(record.value)
    assert set(value) == {"rsvp_id", "mtime", "response", "guests", "member", "event", "group"}
    assert record.key.decode() == str(value["group"]["group_id"])
    assert value["mtime"] == record.timestamp_ms


def test_directories_sum_up_their_objects() -> None:
    objects = [CountedObject("a/x", 1, 10), CountedObject("a/y", 2, 20), CountedObject("b/z", 3, 30)]
    assert directories(objects) == [("a", 2, 3, 30), ("b", 1, 3, 30)]


def test_dags_are_found() -> None:
    assert (dags_folder() / CONNECTOR_FILE).is_file()


def test_dags_of_the_demo_are_those_of_the_folder_with_short_schedules(tmp_path: Path) -> None:
    write_dags(tmp_path / "dags", tmp_path / "files", tmp_path / "access.log")
    texts = {path.name: path.read_text() for path in (tmp_path / "dags").glob("*.py")}
    assert sorted(texts) == ["database_sync.py", "event_driven_copy.py", "kafka_to_s3.py", "log_import.py"]
    assert 'schedule="* * * * *"' in texts["kafka_to_s3.py"] and 'schedule="*/5 * * * *"' in texts["database_sync.py"]
    assert "s3" not in texts["event_driven_copy.py"].lower()
    for name, text in texts.items():
        compile(text, name, "exec")
    names = [json.loads(path.read_text())["name"] for path in (tmp_path / "dags").glob("*.json")]
    assert len(set(names)) == len(names) == 5
    log = json.loads((tmp_path / "dags" / "access-log.json").read_text())
    assert log["files"] == f"{tmp_path / 'access.log'}*"


def test_dag_that_has_changed_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(dag_folder, "_DAGS", {"log_import.py": {"schedule=weekly": "schedule=hourly"}})
    with pytest.raises(ConfigError, match=r"The demo replaces 'schedule=weekly' in dags/log_import\.py"):
        write_dags(tmp_path / "dags", tmp_path, tmp_path)


def test_wrong_amounts_are_text_with_a_comma() -> None:
    amounts = [json.loads(record.value)["amount"] for record in sales(5, wrong=2, first=10)]
    assert [type(amount) for amount in amounts] == [float, float, float, str, str]
    assert all("," in amount for amount in amounts[3:])

"""Keys of the partitioner in a form."""

from __future__ import annotations

import pytest

from airflow_connect.api.config.infos import config_infos
from airflow_connect.connectors.files.shared.settings.config import StorageConfig

KEYS = ("partition.field.name", "partition.duration.ms", "path.format", "locale", "timezone")


def shown(**raw: str) -> list[str]:
    """Which of `KEYS` a form shows."""
    infos = config_infos(
        "sink", StorageConfig.config_def(), {key.replace("_", "."): value for key, value in raw.items()}
    )
    return [i["value"]["name"] for i in infos["configs"] if i["value"]["visible"] and i["value"]["name"] in KEYS]


@pytest.mark.parametrize(
    ("partitioner", "keys"),
    [
        ("DefaultPartitioner", []),
        ("io.confluent.connect.storage.partitioner.FieldPartitioner", ["partition.field.name"]),
        ("DailyPartitioner", ["locale", "timezone"]),
        ("HourlyPartitioner", ["locale", "timezone"]),
        ("TimeBasedPartitioner", ["partition.duration.ms", "path.format", "locale", "timezone"]),
        ("tests.support.faulty_converter:FaultyConverter", list(KEYS)),
        ("no.such.Partitioner", list(KEYS)),
    ],
)
def test_form_shows_what_the_partitioner_looks_at(partitioner: str, keys: list[str]) -> None:
    assert shown(partitioner_class=partitioner) == keys


def test_form_shows_the_time_zone_that_scheduled_rotation_needs() -> None:
    assert shown(rotate_schedule_interval_ms="60000") == ["timezone"]


def test_keys_of_the_partitioner_are_its_dependents() -> None:
    assert StorageConfig.config_def().keys["partitioner.class"].dependents == KEYS

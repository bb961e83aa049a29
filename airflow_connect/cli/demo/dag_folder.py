"""The DAGs of `demo --ui`: those of the folder dags/, with shorter schedules and with places on this machine."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from airflow_connect.cli.demo.stage import dags_folder
from airflow_connect.errors import ConfigError

TRIGGERED = "kafka_to_s3"
"""The DAG that the demo asks its reader to trigger."""
_HOURLY, _EACH_MINUTE = 'schedule="@hourly"', 'schedule="* * * * *"'
_OF_S3 = 'Asset("meetups", "s3://meetups/topics/meetups")],  # the name that kafka_to_s3.py gives this URI'
_DAGS: Mapping[str, Mapping[str, str]] = {
    "kafka_to_s3.py": {_HOURLY: _EACH_MINUTE},
    "database_sync.py": {_HOURLY: _EACH_MINUTE.replace("* *", "*/5 *", 1)},
    # The same topic as that of kafka_to_s3, so another connector has to copy it.
    "event_driven_copy.py": {
        "meetups-to-s3.json": "meetups-to-files.json",
        "10,000 records": "2,000 records",
        "min_records=10_000": "min_records=2_000",
        "Kafka topic to S3": "Kafka topic to files",
        '"kafka", "s3"': '"kafka", "files"',
        '        aws_conn_id="aws_default",\n': "",
        _OF_S3: 'Asset("meetups_files")],',
    },
    "log_import.py": {},
}
"""Each file, and what is replaced in it."""
_CONNECTORS = ("meetups-to-s3.json", "meetups-to-files.json", "shop-database.json", "warehouse.json", "access-log.json")


def write_dags(folder: Path, files: Path, log: Path) -> None:
    """Replace a folder of DAGs by those of the demo.

    Args:
        folder: Airflow's.
        files: where the copied records of files go.
        log: the access log that is imported.

    Raises:
        ConfigError: the folder dags/ is missing, or a file there no longer has the text that the demo replaces.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    origin = dags_folder()
    for name, changes in _DAGS.items():
        (folder / name).write_text(_changed(name, (origin / name).read_text(), changes))
    places = {"meetups-to-files.json": {"store.url": f"file://{files}"}, "access-log.json": {"files": f"{log}*"}}
    for name in _CONNECTORS:
        config = json.loads((origin / name).read_text()) | places.get(name, {})
        (folder / name).write_text(json.dumps(config, indent=2) + "\n")


def _changed(name: str, text: str, changes: Mapping[str, str]) -> str:
    for old, new in changes.items():
        if old not in text:
            raise ConfigError(f"The demo replaces {old!r} in dags/{name}, but it is not there.", code="demo.dags")
        text = text.replace(old, new)
    return text

"""Runs of the numbers source on a disk of a few megabytes; a program, because the disk is one of its own namespace.

usage: full_disk.py offsets|broker FOLDER, where FOLDER is the disk; prints a JSON object.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.documents.run import RunReport
from tests.integration.runtime.source.conftest import Numbers
from tests.support.kafka_data import create_topic
from tests.support.waiting import wait_until

MORE_THAN_FITS = 20_000
"""Records of 17 bytes; what is left of the last page of a full disk is 4 KiB."""
SMALL = {
    "log.segment.bytes": "1048576",
    "log.index.size.max.bytes": "4096",
    # A broker that is about to end finds no leader to send the markers of an expired transaction to, and takes it
    # for ended: its records would be open for ever. The next run ends it.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "600000",
}
"""Configuration of a broker on such a disk."""


def fill(disk: Path) -> Path:
    """A file that takes all the room that is left."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    return filler


def told(report: RunReport) -> dict[str, Any]:
    """What a test looks at."""
    return {"status": report.status, "error": report.error}


def offsets_file(disk: Path, bootstrap: str) -> dict[str, Any]:
    """The disk of a standalone worker's offsets file fills up while a run works."""
    numbers = connector(bootstrap, disk.parent)
    file = disk / "standalone.offsets"
    numbers.worker_config["offset.storage.file.filename"] = str(file)
    numbers.feed(5)
    first = numbers.run()
    before = file.read_bytes()
    filler = fill(disk)
    numbers.feed(12)
    full = numbers.try_run()
    kept = file.read_bytes() == before
    filler.unlink()
    after = numbers.run()
    return {
        "first": told(first),
        "full": told(full),
        "kept": kept,
        "left": sorted(os.listdir(disk)),
        "after": told(after),
        "changed": file.read_bytes() != before,
        "values": numbers.values(),
    }


def brokers_disk(disk: Path) -> dict[str, Any]:
    """The broker's disk fills up while a transaction is open, and has room again for the next run."""
    with KafkaBroker.start(disk / "broker", SMALL) as broker:
        numbers = connector(broker.bootstrap, disk.parent)
        numbers.config["numbers.batch"] = "500"
        numbers.feed(3)
        first = numbers.run()
        filler = fill(disk)
        numbers.feed(MORE_THAN_FITS)
        # So long its commit waits for the broker: a minute unless it is configured.
        full = numbers.try_run(producer_override_transaction_timeout_ms="5000")
        wait_until(lambda: not broker.is_running, "the broker to end, which has no other disk", 60)
        filler.unlink()
        broker.restart()
        after = numbers.run()
        numbers.assert_exactly_once(MORE_THAN_FITS)
        return {"first": told(first), "full": told(full), "after": told(after)}


def connector(bootstrap: str, folder: Path) -> Numbers:
    """A numbers source with a topic of its own."""
    topic = f"full-{os.getpid()}"
    create_topic(bootstrap, topic, 1, None)
    return Numbers(bootstrap, f"numbers-{topic}", topic, folder / "counts.json")


if __name__ == "__main__":
    what, folder = sys.argv[1], Path(sys.argv[2])
    found = brokers_disk(folder) if what == "broker" else offsets_file(folder, os.environ["BOOTSTRAP"])
    print(json.dumps(found))

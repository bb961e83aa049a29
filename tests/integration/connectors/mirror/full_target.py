"""A mirror whose target broker has a disk of a few megabytes; a program, because the disk is one of its own namespace.

usage: full_target.py TOPIC FOLDER, where FOLDER is the disk, and BOOTSTRAP the source cluster; prints a JSON object.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from airflow_connect.devstack.kafka import KafkaBroker
from tests.integration.connectors.mirror.conftest import Mirror
from tests.integration.runtime.source.full_disk import SMALL, fill, told
from tests.support.kafka_data import TopicProducer
from tests.support.waiting import wait_until

MORE_THAN_FITS = [(n % 3, str(n), f"value {n}", 1_000 + n, [("h", b"1")] * (n % 2)) for n in range(20_000)]


def main(topic: str, disk: Path) -> None:
    """The disk fills up between two runs, and has room again for the third."""
    source = os.environ["BOOTSTRAP"]
    with KafkaBroker.start(disk / "broker", SMALL) as target:
        mirror = Mirror(source, target.bootstrap, topic, TopicProducer(source))
        mirror.write(topic, MORE_THAN_FITS[:9])
        first = mirror.run()
        filler = fill(disk)
        mirror.write(topic, MORE_THAN_FITS)
        # So long its commit waits for the broker: a minute unless it is configured.
        full = mirror.try_run(producer_override_transaction_timeout_ms="5000")
        wait_until(lambda: not target.is_running, "the broker to end, which has no other disk", 60)
        filler.unlink()
        target.restart()
        after = mirror.run()
        found = {"first": told(first), "full": told(full), "after": told(after)}
        print(json.dumps({**found, "is_equal": mirror.copies() == mirror.originals()}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))

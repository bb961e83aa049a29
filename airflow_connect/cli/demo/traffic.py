"""Goes on writing while `demo --ui` runs, so that there is always something to copy."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from airflow_connect.cli.demo import meetups
from airflow_connect.cli.demo.scene import sales
from airflow_connect.devstack.topic_data import write_records

EVERY_S = 5.0
MEETUPS, LINES, SOLD = 60, 30, 3
"""RSVPs, lines of the access log and orders of the shop that each tick adds."""
RATES: Mapping[str, int] = {"orders": 40, "clicks": 200, "invoices": 5}
"""Records by topic."""
FIRST_ID = 1_000_000
"""Higher than the ids that were there before."""
_CUSTOMERS = ("Ada", "Bola", "Chiara", "Dmitri", "Emeka", "Fatima")
_TABLES = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, updated_at TIMESTAMP NOT NULL);
CREATE TABLE orders
  (id INTEGER PRIMARY KEY, customer INTEGER NOT NULL, amount REAL NOT NULL, updated_at TIMESTAMP NOT NULL);
"""


class Places(NamedTuple):
    """Where the demo writes.

    Attributes:
        bootstrap: the broker.
        log: the access log.
        shop: the file of the shop's database.
    """

    bootstrap: str
    log: Path
    shop: Path


class Traffic:
    """Writes what has happened since the last time, to all places."""

    def __init__(self, places: Places) -> None:
        """Create the log and the database."""
        self._places = places
        self._ticks = 0
        places.log.parent.mkdir(parents=True, exist_ok=True)
        places.log.write_text("")
        with closing(sqlite3.connect(places.shop)) as shop, shop:
            shop.executescript(_TABLES)
            rows = [(number, name, _now()) for number, name in enumerate(_CUSTOMERS, 1)]
            shop.executemany("INSERT INTO customers VALUES (?, ?, ?)", rows)

    def write(self) -> None:
        """Write once.

        Raises:
            DevStackError: the broker refused, or did not answer.
        """
        self._ticks += 1
        now_ms = time.time_ns() // 1_000_000
        rsvps = meetups.rsvps(MEETUPS, now_ms, seed=self._ticks + 1)
        written = [record._replace(timestamp_ms=now_ms) for record in rsvps]
        write_records(self._places.bootstrap, meetups.TOPIC, written)
        for topic, count in RATES.items():
            first = FIRST_ID + self._ticks * count
            write_records(self._places.bootstrap, topic, sales(count, first=first))
        self._log_lines()
        self._sell()

    def _log_lines(self) -> None:
        now = datetime.now(UTC).strftime("%d/%b/%Y:%H:%M:%S +0000")
        with self._places.log.open("a") as log:
            for number in range(LINES):
                page = f"/groups/{(self._ticks * LINES + number) % 200}"
                log.write(f'192.0.2.{number} - - [{now}] "GET {page} HTTP/1.1" 200 {2000 + number} "-" "Mozilla/5.0"\n')

    def _sell(self) -> None:
        with closing(sqlite3.connect(self._places.shop, timeout=30)) as shop, shop:
            customers = len(_CUSTOMERS)
            sold = [((self._ticks + number) % customers + 1, 9.5 + number, _now()) for number in range(SOLD)]
            shop.executemany("INSERT INTO orders (customer, amount, updated_at) VALUES (?, ?, ?)", sold)
            shop.execute("UPDATE customers SET updated_at = ? WHERE id = ?", (_now(), self._ticks % customers + 1))


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]

"""PostgreSQL to Kafka: `python -m tests.bench.database_rows [--rows 1000000] [--profile]`.

Whole runs of one task in this process, all servers on this machine: a table of eight columns, as JSON and as Avro with
a real registry, in modes bulk and timestamp+incrementing, in columns and row by row. Every row is counted back from
the topic. Compare rows of one run only.
"""

from __future__ import annotations

import argparse
import cProfile
import re
import tempfile
import time
import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psycopg
from numpy.typing import NDArray

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.devstack.postgresql import PostgresServer
from airflow_connect.devstack.schema_registry import SchemaRegistry
from airflow_connect.runtime.spec import RunSpec
from airflow_connect.testing.runs import run_here
from tests.bench.processes import cpu_seconds
from tests.bench.sources import check_topic
from tests.support.kafka_data import create_topic, delete_topic

TABLE = "orders"
_CREATE = f"""
CREATE TABLE {TABLE} (id bigint PRIMARY KEY, customer integer NOT NULL, name text NOT NULL, amount numeric(12,2),
  status varchar(10), is_paid boolean NOT NULL, changed timestamptz NOT NULL, note text)
"""
_FILL = """
INSERT INTO orders SELECT i, i % 1000, 'customer ' || i % 1000, i % 100000 / 100.0,
  CASE i % 3 WHEN 0 THEN 'open' ELSE 'paid' END, i % 2 = 0, timestamptz '2026-01-01' + i * interval '1 ms',
  CASE i % 5 WHEN 0 THEN NULL ELSE 'note number ' || i END FROM generate_series(0, {}) i
"""
_NUMBER = re.compile(rb'"id":(\d+)')
_AVRO = "io.confluent.connect.avro.AvroConverter"
_JSON = "org.apache.kafka.connect.json.JsonConverter"
_BULK = {"mode": "bulk"}
_NEW_ROWS = {
    "mode": "timestamp+incrementing", "timestamp.column.name": "changed", "incrementing.column.name": "id",
}  # fmt: skip


class Row(NamedTuple):
    """One line of the table."""

    name: str
    config: dict[str, str]
    columnar: bool = True
    is_avro: bool = False


ROWS = (
    Row("bulk, JSON", _BULK),
    Row("bulk, Avro", _BULK, is_avro=True),
    Row("timestamp+incrementing, JSON", _NEW_ROWS),
    Row("timestamp+incrementing, Avro", _NEW_ROWS, is_avro=True),
    Row("bulk, JSON, row by row", _BULK, columnar=False),
)


def json_numbers(values: Sequence[bytes]) -> NDArray[np.int64]:
    """The column `id` of JSON values."""
    return np.array([int(number) for number in _NUMBER.findall(b"\n".join(values))], np.int64)


def avro_numbers(values: Sequence[bytes]) -> NDArray[np.int64]:
    """The column `id`, the first of an Avro value, after five bytes with the schema's id."""
    return np.array([_varint(value, 5) for value in values], np.int64)


def _varint(data: bytes, at: int) -> int:
    number = shift = 0
    while True:
        number |= (data[at] & 0x7F) << shift
        if data[at] < 0x80:
            return number >> 1 ^ -(number & 1)
        at, shift = at + 1, shift + 7


class Bench:
    """The servers, and the table."""

    def __init__(self, stack: ExitStack, folder: Path, rows: int) -> None:
        """Start the servers and fill the table."""
        self.rows = rows
        self.kafka = stack.enter_context(KafkaBroker.start(folder / "kafka", heap_mb=1024))
        self.registry = stack.enter_context(SchemaRegistry.start())
        self.database = stack.enter_context(PostgresServer.start())
        with psycopg.connect(self.database.url.replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute(_CREATE)
            connection.execute(_FILL.format(rows - 1))
            connection.execute(f"VACUUM ANALYZE {TABLE}")

    def measure(self, row: Row) -> str:
        """Run a row and count what arrived; returns its line of the table."""
        prefix = f"bench-{uuid.uuid4().hex[:8]}-"
        create_topic(self.kafka.bootstrap, prefix + TABLE, 1)
        connector = {
            "name": prefix + "copy", "connector.class": "JdbcSource", "topic.prefix": prefix,
            "connection.url": self.database.jdbc_url_of("postgres"), "table.whitelist": TABLE, **row.config,
            "transaction.boundary": "interval", "transaction.boundary.interval.ms": "1000",
            "value.converter": _AVRO if row.is_avro else _JSON,
        }  # fmt: skip
        if row.is_avro:
            connector["value.converter.schema.registry.url"] = self.registry.url
        servers = [(server.pid, cpu_seconds(server.pid)) for server in (self.kafka, self.database)]
        cpu, started = time.process_time(), time.monotonic()
        report, _ = run_here(RunSpec(connector, self._worker), columnar=row.columnar)
        seconds, own = time.monotonic() - started, time.process_time() - cpu
        of_servers = [cpu_seconds(pid) - before for pid, before in servers]
        if report.status != "done" or report.records != self.rows:
            raise RuntimeError(f"{row.name}: {report.status} after {report.records} records: {report.error}")
        numbers = avro_numbers if row.is_avro else json_numbers
        _, problem = check_topic(self.kafka.bootstrap, prefix + TABLE, self.rows, numbers)
        if problem:
            raise RuntimeError(f"{row.name}: {problem}")
        delete_topic(self.kafka.bootstrap, prefix + TABLE)
        millions = self.rows / 1e6
        cells = [f"{self.rows / seconds:,.0f}", *(f"{part / millions:.2f}" for part in (own, *of_servers))]
        return f"| {row.name} | {' | '.join(cells)} | {report.peak_memory_bytes >> 20} |"

    @property
    def _worker(self) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.kafka.bootstrap, "group.id": "bench",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter.schemas.enable": "false",
            **{f"{topic}.storage.replication.factor": "1" for topic in ("runs", "offset", "config")},
        }  # fmt: skip


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--only", default="", help="part of the names of the rows to run")
    parser.add_argument("--profile", action="store_true", help="print where the time of this process goes")
    asked = parser.parse_args()
    chosen = [row for row in ROWS if asked.only in row.name]
    with ExitStack() as stack:
        bench = Bench(stack, Path(stack.enter_context(tempfile.TemporaryDirectory())), asked.rows)
        print(
            "| row | rows/s | CPU s per million | Kafka's | PostgreSQL's | peak MB so far |\n|---|---|---|---|---|---|"
        )
        for row in chosen:
            if not asked.profile:
                print(bench.measure(row), flush=True)
                continue
            with cProfile.Profile() as profile:
                print(bench.measure(row), flush=True)
            profile.print_stats("tottime")


if __name__ == "__main__":
    main()

"""What a run costs with many tables of one database: the first copy, a run that finds nothing, and one with few rows.

usage: python -m tests.bench.growth_tables [TABLES ...]

Each run is a process of its own, without Spark. All tables go into one topic, so that the broker has no part in it.
Prints the table of docs/benchmarks.md.
"""

from __future__ import annotations

import os
import sys

import psycopg

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.runtime.spec import RunSpec
from tests.bench import last_release
from tests.bench.growth import Cost, idle_run, memory_folder, run_in_process
from tests.devstack.postgresql import PostgresServer
from tests.support.kafka_data import create_topic

COUNTS = (10, 1_000, 5_000)
AT_ONCE = 500
"""Tables that are made in a transaction: each takes locks."""
EVERY = 100
"""Of so many tables one gets a new row before the last run."""
_MAKE = """
CREATE TABLE small_{0} (id bigint PRIMARY KEY, changed timestamptz NOT NULL, name text);
INSERT INTO small_{0} VALUES (1, timestamptz '2026-01-01', 'first')
"""
_ADD = "INSERT INTO small_{0} VALUES (2, now() - interval '1 minute', 'second')"


def main() -> int:
    """Measure and print; 1 if a run copied something else than it should."""
    counts = [int(word) for word in sys.argv[1:]] or list(COUNTS)
    with memory_folder() as folder, KafkaBroker.start(folder / "kafka") as kafka, PostgresServer.start() as server:
        print("| tables | first copy, s | CPU s | peak MB | nothing new, s | CPU s | peak MB | few rows, s |")
        print("|---|---|---|---|---|---|---|---|", flush=True)
        for count in counts:
            name = f"tables_{count}"
            server.create_database(name)
            create_topic(kafka.bootstrap, name, 1)
            spec = _spec(name, kafka.bootstrap, server.jdbc_url_of(name))
            with psycopg.connect(server.url_of(name).replace("+psycopg", "")) as connection:
                _execute(connection, _MAKE, range(count))
                first, idle = run_in_process(spec), idle_run(spec)
                _execute(connection, _ADD, range(0, count, EVERY))
                few = run_in_process(spec)
            copied = [cost.report["records"] for cost in (first, idle, few)]
            if copied != [count, 0, len(range(0, count, EVERY))]:
                print(f"{count} tables: the runs copied {copied} records", file=sys.stderr)
                return 1
            print(f"| {count:,} | {_cells(first)} | {_cells(idle)} | {few.seconds:.1f} |", flush=True)
    place = last_release.place()
    print(f"\nCommit {place['commit']}, {place['date']}, {place['machine']}: load average {os.getloadavg()[0]:.1f}.")
    return 0


def _execute(connection: psycopg.Connection, statement: str, tables: range) -> None:
    for start in range(0, len(tables), AT_ONCE):
        for number in tables[start : start + AT_ONCE]:
            connection.execute(statement.format(number))  # type: ignore[arg-type]
        connection.commit()


def _spec(name: str, bootstrap: str, jdbc_url: str) -> RunSpec:
    strings = "org.apache.kafka.connect.storage.StringConverter"
    connector = {
        "name": name,
        "connector.class": "JdbcSource",
        "connection.url": jdbc_url,
        "mode": "timestamp+incrementing",
        "timestamp.column.name": "changed",
        "incrementing.column.name": "id",
        "topic.prefix": "small-",
        "tasks.max": "2",
        "transforms": "one",
        "transforms.one.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.one.regex": ".*",
        "transforms.one.replacement": name,
    }
    kinds = ("runs", "offset", "config")
    worker = {
        "bootstrap.servers": bootstrap,
        "key.converter": strings,
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        **{f"{kind}.storage.replication.factor": "1" for kind in kinds},
    }
    return RunSpec(connector, worker)


def _cells(cost: Cost) -> str:
    return f"{cost.seconds:.1f} | {cost.cpu_s:.1f} | {cost.peak_mb:,}"


if __name__ == "__main__":
    sys.exit(main())

"""One kill round of the JDBC source: its runs are killed, frozen and doubled, and each row is in a topic once."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from airflow_connect.connectors.jdbc.source.settings.names import (
    INCREMENTING,
    TIMESTAMP,
    TIMESTAMP_INCREMENTING,
)
from airflow_connect.documents.run import RunReport
from airflow_connect.runtime.spec import RunSpec
from tests.crash.rounds import SourceRound, Victim
from tests.integration.connectors.mirror.conftest import JSON, records_of
from tests.support.servers.databases import Database
from tests.support.waiting import wait_until

TABLES = 2
MOST_ROWS = 60
MODES: tuple[dict[str, str], ...] = (
    {"mode": INCREMENTING, "incrementing.column.name": "n"},
    {"mode": TIMESTAMP_INCREMENTING, "incrementing.column.name": "n", "timestamp.column.name": "at"},
    {"mode": TIMESTAMP, "timestamp.column.name": "at"},
    {"mode": TIMESTAMP, "timestamp.column.name": "at", "timestamp.lookback.ms": "600000"},
)
"""Of rounds by their seeds."""


@dataclass
class TablesSource:
    """A connector that copies some tables of one database, and keeps its state in topics of its own."""

    bootstrap: str
    database: Database
    name: str
    mode: dict[str, str]

    @property
    def tables(self) -> list[str]:
        """Their names."""
        return [f"{self.name}-{number}" for number in range(TABLES)]

    @property
    def topics(self) -> list[str]:
        """One for each table."""
        return [f"copy-{table}" for table in self.tables]

    def quoted(self, table: str) -> str:
        """The name in statements."""
        return f"`{table}`" if self.database.dialect == "mysql" else f'"{table}"'

    def create(self) -> None:
        """The tables, with `n` as their key."""
        kind = "DATETIME(6)" if self.database.dialect == "mysql" else "TIMESTAMP"
        for table in self.tables:
            self.database.execute(
                f"CREATE TABLE {self.quoted(table)} (n BIGINT NOT NULL PRIMARY KEY, at {kind} NOT NULL, pad TEXT)"
            )

    def add(self, table: str, first: int, count: int, *, at_once: bool) -> None:
        """Commit rows. `at_once`: all with the same timestamp, and otherwise with others."""
        moment = "UTC_TIMESTAMP(6)" if self.database.dialect == "mysql" else "timezone('UTC', now())"
        step = 0 if at_once else 1
        # Earlier by microseconds, in the order of `n`: nothing lies in the future of the database's clock.
        parts = (
            f"({n}, {moment} - INTERVAL {interval(self.database, step * (first + count - n))}, NULL)"
            for n in range(first, first + count)
        )
        self.database.execute(f"INSERT INTO {self.quoted(table)} VALUES {', '.join(parts)}")

    def is_in_a_later_second(self) -> bool:
        """Whether the database's clock has left the second of every row."""
        now = "UTC_TIMESTAMP(6)" if self.database.dialect == "mysql" else "timezone('UTC', clock_timestamp())"
        ((clock,),) = self.database.rows(f"SELECT {now}")
        lasts = [self.database.rows(f"SELECT MAX(at) FROM {self.quoted(table)}")[0][0] for table in self.tables]
        return all(last is None or last.replace(microsecond=0) < clock.replace(microsecond=0) for last in lasts)

    def spec(self, **overrides: str) -> RunSpec:
        """A run; `_` in a key stands for `.`."""
        connector = {
            "name": self.name,
            "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
            "connection.url": self.database.jdbc_url,
            "connection.backoff.ms": "100",
            "topic.prefix": "copy-",
            "table.whitelist": ",".join(self.tables),
            **self.mode,
            **{key.replace("_", "."): value for key, value in overrides.items()},
        }
        kinds = ("runs", "offset", "config")
        worker = {
            "bootstrap.servers": self.bootstrap,
            "group.id": self.name,
            "key.converter": JSON,
            "value.converter": JSON,
            "value.converter.schemas.enable": "false",
            **{f"{kind}.storage.topic": f"{self.name}-{kind}" for kind in kinds},
            **{f"{kind}.storage.replication.factor": "1" for kind in kinds},
        }
        return RunSpec(connector, worker)

    def copied(self, topic: str) -> list[int]:
        """`n` of each committed record of a topic, ascending."""
        (records,) = records_of(self.bootstrap, topic).values()
        return sorted(json.loads(record.value or b"")["n"] for record in records)


def interval(database: Database, microseconds: int) -> str:
    """An interval in SQL."""
    return f"{microseconds} MICROSECOND" if database.dialect == "mysql" else f"'{microseconds} microseconds'"


@dataclass
class JdbcSourceRound(SourceRound):
    """A round of the JDBC source."""

    source: TablesSource
    rows: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.rows = dict.fromkeys(self.source.tables, 0)

    def _produce(self) -> None:
        for table in self.source.tables:
            count = self.chance.randint(0, MOST_ROWS) if self.rows[table] else self.chance.randint(1, MOST_ROWS)
            if count:
                self.source.add(table, self.rows[table], count, at_once=self.chance.random() < 0.3)
                self.rows[table] += count

    def _start(self, environment: dict[str, str] | None = None) -> Victim:
        overrides: dict[str, Any] = {
            "tasks_max": str(self.chance.randint(1, 3)),
            "batch_max_rows": str(self.chance.choice([1, 7, 20, 1000])),
            # A first load is divided into ranges, which are read by several tasks in one snapshot.
            "table_split_min_rows": str(self.chance.choice([10, 500_000])),
            "transaction_boundary": self.chance.choice(["poll", "interval"]),
            "transaction_boundary_interval_ms": str(self.chance.choice([0, 5, 10_000])),
        }
        victim = Victim(self.source, environment, **overrides)  # type: ignore[arg-type]
        self.victims.append(victim)
        return victim

    def _run_until_empty(self) -> None:
        # A run takes rows of whole seconds: those of the current one come with a later run.
        wait_until(self.source.is_in_a_later_second, "the end of the second of the last rows")
        super()._run_until_empty()

    def _is_last(self, report: RunReport) -> bool:
        # With a look-back, each run reads the window again, and drops what was sent.
        looked_back = "timestamp.lookback.ms" in self.source.mode and report.status == "done" and not report.records
        return looked_back or super()._is_last(report)

    def _check(self) -> None:
        for table, topic in zip(self.source.tables, self.source.topics, strict=True):
            copied, wanted = Counter(self.source.copied(topic)), Counter(range(self.rows[table]))
            missing, doubled = sorted(wanted - copied), sorted(copied - wanted)
            assert copied == wanted, f"{self.story}: {table}: missing {missing}, doubled {doubled}"

"""The JDBC source under the conformance suite that third parties use, in mode timestamp on PostgreSQL."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.runtime.crash_points import SOURCE_TASK_POINTS as TASK_POINTS
from airflow_connect.testing import SourceConformance
from airflow_connect.testing.cases.source_case import SourceCase
from airflow_connect.testing.suites.source_suite import KILL_POINTS
from tests.devstack.postgresql import PostgresServer
from tests.support.servers.databases import Database, database_on
from tests.support.session.searching import KILL_ROUNDS, seed_day

pytestmark = pytest.mark.integration


@pytest.fixture
def kafka_bootstrap(kafka: KafkaBroker) -> str:
    return kafka.bootstrap


def insert(database: Database, numbers: Sequence[int], moment: str) -> Sequence[Any]:
    with database.connected() as connection:
        for start in range(0, len(numbers), 500):
            part = numbers[start : start + 500]
            # Five rows share each timestamp; rows that come later have later ones.
            seconds = (numbers[0] + (n - numbers[0]) // 5 for n in part)
            rows = ", ".join(f"({n}, 'row {n}', {moment.format(second=s)})" for n, s in zip(part, seconds, strict=True))
            connection.exec_driver_sql(f"INSERT INTO rows_{database.dialect} VALUES {rows}")
    return [{"id": n, "text": f"row {n}"} for n in numbers]


def columns_of(value: Any) -> Any:
    return {name: part for name, part in value.items() if name != "changed"}


class TestTimestampOnPostgresql(SourceConformance):
    connector_class = "io.confluent.connect.jdbc.JdbcSourceConnector"

    @pytest.fixture
    def place(self, postgresql: PostgresServer, unique_name: str) -> Iterator[Database]:
        with database_on(postgresql, unique_name) as database:
            database.execute("CREATE TABLE rows_postgresql (id bigint PRIMARY KEY, text text, changed timestamptz)")
            yield database

    def connector_config(self, place: Database, topic: str) -> Mapping[str, str]:
        return {
            "connection.url": place.jdbc_url,
            "topic.prefix": topic.removesuffix("rows_postgresql"),
            "table.whitelist": "public.rows_postgresql",
            "mode": "timestamp",
            "timestamp.column.name": "changed",
            "validate.non.null": "false",
            "batch.max.rows": "500",
            # The suite's topic: only a transformation can give it to a table.
            "transforms": "name",
            "transforms.name.type": "org.apache.kafka.connect.transforms.RegexRouter",
            "transforms.name.regex": ".*",
            "transforms.name.replacement": topic,
        }

    def feed(self, place: Database, first: int, count: int) -> Sequence[Any]:
        return insert(place, range(first, first + count), "timestamptz '2026-01-01' + interval '{second} seconds'")

    def value_of(self, value: Any) -> Any:
        return columns_of(value)

    @pytest.mark.crash
    # A run for each step at which one is killed, most of them short.
    @pytest.mark.budget(30)
    def test_first_load_by_several_tasks_that_is_killed_at_every_step(self, case: SourceCase) -> None:
        """Each run continues in the middle of the load, and kills another one."""
        case.add(400)
        divided = {"table.split.min.rows": "10", "batch.max.rows": "20", "transaction.boundary": "poll"}
        for columnar, point in enumerate(TASK_POINTS):
            assert case.start(crash_at=point, columnar=bool(columnar % 2), tasks_max="3", **divided).wait() is None
        ranges = [partition for partition, _ in case.offsets()]
        assert ranges and all("after" in partition for partition in ranges), ranges
        report = case.run(tasks_max="2", **divided)
        assert 0 < report.records < 400
        case.check_everything_arrived(once=True)
        ((partition, offset),) = case.offsets()
        assert set(partition) == {"protocol", "table"} and offset["timestamp"] > 0

    @pytest.mark.crash
    # Five runs in processes of their own, four of which are killed.
    @pytest.mark.budget(30)
    def test_rounds_that_are_killed_at_random_steps(self, case: SourceCase) -> None:
        """New rows in each round, other batches, columns or records; 1,000 rounds with AIRFLOW_CONNECT_SOAK=1."""
        chance = random.Random(seed_day().toordinal())
        for _ in range(KILL_ROUNDS):
            case.add(chance.randint(1, 40))
            case.start(
                crash_at=chance.choice(KILL_POINTS),
                columnar=chance.random() < 0.5,
                **{
                    "batch.max.rows": str(chance.randint(1, 12)),
                    "transaction.boundary": chance.choice(["poll", "interval"]),
                    "timestamp.lookback.ms": chance.choice(["0", "60000"]),
                },
            ).wait()
        case.run()
        case.check_everything_arrived()

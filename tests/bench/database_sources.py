"""Rows of the JDBC source: a table of PostgreSQL into one partition of a topic, each row counted back there.

The table has eight columns: numbers, texts, a decimal, a boolean, a timestamp. Another measurement is the poll of 200
tables that have no new rows, without Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray

TABLE = "orders"
_CREATE = f"""
CREATE TABLE {TABLE} (id bigint PRIMARY KEY, customer integer NOT NULL, name text NOT NULL, amount numeric(12,2),
  status varchar(10), is_paid boolean NOT NULL, changed timestamptz NOT NULL, note text)
"""
_FILL = f"""
INSERT INTO {TABLE} SELECT i, i % 1000, 'customer ' || i % 1000, i % 100000 / 100.0,
  CASE i % 3 WHEN 0 THEN 'open' ELSE 'paid' END, i % 2 = 0, timestamptz '2026-01-01' + i * interval '1 ms',
  CASE i % 5 WHEN 0 THEN NULL ELSE 'note number ' || i END FROM generate_series({{}}, {{}}) i
"""
_SMALL = """
CREATE TABLE small_{0} (id bigint PRIMARY KEY, changed timestamptz NOT NULL);
INSERT INTO small_{0} VALUES ({0}, timestamptz '2026-01-01')
"""
_ROWS_AT_ONCE = 500_000
_NUMBER = re.compile(rb'"id":(\d+)')
NEW_ROWS = {
    "mode": "timestamp+incrementing", "timestamp.column.name": "changed", "incrementing.column.name": "id",
}  # fmt: skip
BULK = {"mode": "bulk"}
CHANGED = {**BULK, "bulk.changed.only": "true"}
LOOKING_BACK = {"mode": "timestamp", "timestamp.column.name": "changed", "timestamp.lookback.ms": "60000"}
JSON = {
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
BY_RECORDS = {
    "transforms": "name,none",
    "transforms.none.type": "org.apache.kafka.connect.transforms.Filter",
    "transforms.none.predicate": "marked",
    "predicates": "marked",
    "predicates.marked.type": "org.apache.kafka.connect.transforms.predicates.HasHeaderKey",
    "predicates.marked.name": "absent",
}
"""A predicate that looks at headers has no columnar form: all records go one by one. None has the header."""
ONE_TASK = {"tasks.max": "1"}
TOPICS = {"topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "1"}


@dataclass(frozen=True, slots=True)
class TableRows:
    """A table of PostgreSQL with `records` rows; or, if `tables` is set, so many tables with a row each."""

    records: int
    tables: int = 0

    @property
    def database(self) -> str:
        """The database that holds it."""
        return f"source_{self.records}_{self.tables}"

    def write(self, url: str, show: Callable[[int], None]) -> None:
        """Fill the database; `show` hears how many rows are written."""
        with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
            for number in range(self.tables):
                connection.execute(_SMALL.format(number))  # type: ignore[arg-type]
            if not self.tables:
                connection.execute(_CREATE)  # type: ignore[arg-type]
                for start in range(0, self.records, _ROWS_AT_ONCE):
                    end = min(start + _ROWS_AT_ONCE, self.records) - 1
                    connection.execute(_FILL.format(start, end))  # type: ignore[arg-type]
                    show(start)
            connection.execute("VACUUM ANALYZE")


def connector(name: str, jdbc_url: str, rows: TableRows, config: Mapping[str, str]) -> dict[str, str]:
    """A connector that copies the table into the topic `name`, or each small table into one of its own."""
    own = {"topic.prefix": name + "-"}
    if not rows.tables:
        router = {"type": "org.apache.kafka.connect.transforms.RegexRouter", "regex": ".*", "replacement": name}
        own |= {"transforms": "name", **{f"transforms.name.{key}": value for key, value in router.items()}}
    return {
        "name": name,
        "tasks.max": "2",
        "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
        "connection.url": jdbc_url,
        "transaction.boundary": "interval",
        "transaction.boundary.interval.ms": "1000",
        **own,
        **config,
    }


def json_numbers(values: Sequence[bytes]) -> NDArray[np.int64]:
    """The column `id` of JSON values."""
    return np.array([int(number) for number in _NUMBER.findall(b"\n".join(values))], np.int64)


def avro_numbers(values: Sequence[bytes]) -> NDArray[np.int64]:
    """The column `id`, the first of an Avro value, after five bytes with the schema's id."""
    return np.array([_zigzag(value, 5) for value in values], np.int64)


def protobuf_numbers(values: Sequence[bytes]) -> NDArray[np.int64]:
    """The column `id`, field 1 of a message, after six bytes with the ids of schema and type; a zero is left out."""
    return np.array([_varint(value, 7) if value[6:7] == b"\x08" else 0 for value in values], np.int64)


def numbers_of(config: Mapping[str, Any]) -> Callable[[Sequence[bytes]], NDArray[np.int64]]:
    """What reads the column `id` of values in a topic."""
    kind = config["value.converter"]
    if "Protobuf" in kind:
        return protobuf_numbers
    return avro_numbers if "Avro" in kind else json_numbers


def _zigzag(data: bytes, at: int) -> int:
    number = _varint(data, at)
    return number >> 1 ^ -(number & 1)


def _varint(data: bytes, at: int) -> int:
    number = shift = 0
    while True:
        number |= (data[at] & 0x7F) << shift
        if data[at] < 0x80:
            return number
        at, shift = at + 1, shift + 7

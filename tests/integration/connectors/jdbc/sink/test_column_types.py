"""Whatever the types of fields and columns are: columns that the database takes hold the same as rows."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from airflow_connect.api import schema as s
from airflow_connect.connectors.jdbc.sink.batches import Chunk, RowPlan
from airflow_connect.connectors.jdbc.sink.columns.chunk import RowsNeededError, column_chunk
from airflow_connect.connectors.jdbc.sink.config import JdbcSinkConfig
from airflow_connect.connectors.jdbc.sink.executing import ChunkExecutor
from airflow_connect.connectors.jdbc.sink.fields import fields_of
from airflow_connect.connectors.jdbc.sink.statements.dialects import statements_of
from airflow_connect.connectors.jdbc.sink.tables import FieldColumns
from airflow_connect.connectors.jdbc.sink.values import Binding
from airflow_connect.databases.connecting import Database
from airflow_connect.databases.identifiers import TableId
from tests.support.servers.databases import Database as EmptyDatabase
from tests.support.session.searching import examples
from tests.support.values.columns import records_of, to_columns, values_of

pytestmark = pytest.mark.integration

ANY = {
    "i8": s.INT8, "i16": s.INT16, "i32": s.INT32, "i64": s.INT64, "f32": s.FLOAT32, "f64": s.FLOAT64,
    "yes": s.BOOLEAN, "text": s.STRING, "raw": s.BYTES, "d2": s.decimal(2), "d0": s.decimal(0), "d6": s.decimal(6),
    "day": s.date(), "clock": s.time(), "moment": s.timestamp(),
}  # fmt: skip
EVERY_TYPE = s.struct(*((name, replace(schema, optional=True)) for name, schema in ANY.items()))
INTEGERS = ("i8", "i16", "i32", "i64")

POSTGRESQL = [
    *((name, kind) for name in INTEGERS for kind in ("SMALLINT", "INT", "BIGINT", "NUMERIC", "FLOAT8", "TEXT")),
    *((name, kind) for name in ("i64", "text") for kind in ("VARCHAR(4)", "CHAR(4)")),
    ("f32", "REAL"), ("f32", "FLOAT8"), ("f64", "FLOAT8"), ("f64", "REAL"), ("f64", "NUMERIC"), ("yes", "BOOLEAN"),
    *(("text", kind) for kind in ("TEXT", "JSON", "JSONB", "UUID", "INT", "TIMESTAMP", "BYTEA", "NAME", "VARCHAR")),
    ("raw", "BYTEA"), *((name, kind) for name in ("d0", "d2", "d6") for kind in ("NUMERIC", "NUMERIC(9,1)")),
    ("day", "DATE"), ("day", "TIMESTAMP"), ("clock", "TIME"), ("clock", "TIME(1)"), ("moment", "TIMESTAMP"),
    ("moment", "TIMESTAMPTZ"), ("moment", "TIMESTAMP(1)"), ("moment", "DATE"), ("i32", "an_integer"), ("text", "mood"),
]  # fmt: skip
LEFT_TO_ROWS = {
    ("f64", "REAL"), ("f64", "NUMERIC"), ("day", "TIMESTAMP"), ("moment", "DATE"), ("i64", "CHAR(4)"),
    *(("text", kind) for kind in ("INT", "TIMESTAMP", "BYTEA", "NAME", "mood")),
}  # fmt: skip
"""What PostgreSQL converts from text, but has no binary form of that type."""
MARIADB = [
    *((name, kind) for name in INTEGERS for kind in ("TINYINT", "SMALLINT", "INT", "BIGINT", "DOUBLE")),
    ("i64", "DECIMAL(30,2)"),
    *((name, kind) for name in ("i64", "text") for kind in ("VARCHAR(4)", "CHAR(4)", "TEXT")),
    ("f32", "FLOAT"), ("f32", "DOUBLE"), ("f64", "DOUBLE"), ("f64", "FLOAT"), ("f64", "DECIMAL(30,4)"),
    ("yes", "TINYINT"), ("yes", "BOOLEAN"), ("text", "JSON"), ("text", "UUID"), ("text", "INT"), ("text", "BLOB"),
    ("raw", "VARBINARY(4)"), ("raw", "BLOB"), ("raw", "TEXT"),
    *((name, kind) for name in ("d0", "d2", "d6") for kind in ("DECIMAL(65,6)", "DECIMAL(9,1)", "DOUBLE")),
    ("day", "DATE"), ("day", "DATETIME"), ("clock", "TIME(3)"), ("clock", "TIME"), ("moment", "DATETIME(3)"),
    ("moment", "DATETIME"), ("moment", "TIMESTAMP(6) NULL"), ("moment", "DATE"),
]  # fmt: skip
TEXTS = st.text(st.characters(codec="utf-8"), max_size=6) | st.sampled_from(
    ["{}", ' {"b": 1, "a": [1.0]}', "null", "12", " 7 ", "happy", "a   ", "\\N", "\\.", "a\tb\nc", "%s%%", "'", "\0",
     "C0FFEE00-0000-4000-8000-00000000abcd", "2024-02-29 12:00:00", "\\x00ff"]
)  # fmt: skip
SPECIAL: dict[str, st.SearchStrategy[Any]] = {
    "text": TEXTS,
    "text UUID": st.uuids().map(str),
    "text INT": st.integers(-99, 99).map(str),
    "moment": st.integers(-62_135_596_800_000, 253_402_300_799_999) | st.integers(1, 2**31 * 1000 - 1),
    "day": st.integers(-719_162, 2_932_896),
    "i64": st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9),
}
# Each search starts with a value that fits, so that it does not depend on the seed whether columns are tried.
FITTING: dict[str, Any] = {
    "text": "12", "text UUID": "c0ffee00-0000-4000-8000-00000000abcd", "text mood": "happy", "raw": b"a", "yes": True,
    "text TIMESTAMP": "2024-02-29 12:00:00", "clock": 3_000, "moment": 1_700_000_000_000, "day": 19_000,
    "d0": decimal.Decimal(7), "d2": decimal.Decimal("7.25"), "d6": decimal.Decimal("7.250000"),
    "f32": 0.5, "f64": 0.5, **dict.fromkeys(INTEGERS, 7),
}  # fmt: skip


class Target:
    """A table that takes columns and rows, and forgets both."""

    def __init__(self, database: EmptyDatabase, zone: Any) -> None:
        config = JdbcSinkConfig.from_config(
            {"name": "n", "connector.class": "JdbcSink", "topics": "t", "connection.url": database.jdbc_url}
        )
        self.database = Database(config.connection)
        dialect = self.database.dialect.name
        statements = statements_of(dialect, self.database.engine.dialect.paramstyle)
        self.executor = ChunkExecutor(self.database, statements, "insert", 3000)
        self.mapping = config.mapping
        self.binding = Binding(dialect, zone, zone, True, frozenset(), 1_000_000)
        self.connection = self.database.connect()
        if dialect == "mysql":
            self.connection.exec_driver_sql("SET SESSION sql_mode = CONCAT(@@sql_mode, ',STRICT_TRANS_TABLES')")
            self.connection.commit()

    def both(self, name: str, values: list[Any], *, is_instant: bool) -> tuple[Any, Any]:
        """What the table holds after columns (None: they were left to rows), and after rows (None: refused)."""
        schema = s.struct((name, EVERY_TYPE.fields_by_name[name].schema))
        fields = fields_of("t", self.mapping, None, schema)
        plan = RowPlan(TableId("", "", "t"), fields, self.binding)
        records = records_of(schema, [{name: value} for value in values])
        columns = FieldColumns({name: "v"}, frozenset({"v"} if is_instant else ()))
        chunk = column_chunk(plan, to_columns(records))
        if chunk is None:
            return None, None
        rows = Chunk(plan, False, [plan.row(record) for record in records], records)

        def in_columns() -> bool:
            self.executor.apply_columns(self.connection, chunk, columns)
            return True

        return self._found(in_columns), self._found(lambda: not self.executor.apply(self.connection, [(rows, columns)]))

    def _found(self, write: Callable[[], bool]) -> Any:
        transaction = self.connection.begin()
        try:
            text = "HEX(CONCAT(v)), v" if self.database.dialect.name == "mysql" else "v::text"
            if not write():
                return None
            return [tuple(row) for row in self.connection.exec_driver_sql(f"SELECT {text} FROM t ORDER BY 1")]
        except RowsNeededError:
            return None
        finally:
            transaction.rollback()


@pytest.fixture(params=["postgresql", "mariadb"])
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    """A table on each server."""
    from airflow_connect.databases.settings import zone_of

    database = request.getfixturevalue(f"{request.param}_database")
    if request.param == "postgresql":
        database.execute("CREATE DOMAIN an_integer AS INT CHECK (VALUE <> 5)", "CREATE TYPE mood AS ENUM ('happy')")
    made = Target(database, zone_of("America/New_York"))
    yield made
    made.connection.close()


def compared(target: Target, name: str, kind: str) -> bool:
    """Hold columns and rows equal for a field and a type of column; False if all columns were left to rows."""
    for statement in ("DROP TABLE IF EXISTS t", f"CREATE TABLE t (v {kind})"):
        target.connection.exec_driver_sql(statement)
    target.connection.commit()
    strategy = SPECIAL.get(f"{name} {kind}", SPECIAL.get(name, values_of(ANY[name])))
    taken = []
    of_mysql = target.database.dialect.name == "mysql"
    is_instant = kind.lower().startswith("timestamp") if of_mysql else kind.lower().startswith("timestamptz")

    @example([FITTING.get(f"{name} {kind}", FITTING[name])])
    @settings(max_examples=examples(8), suppress_health_check=list(HealthCheck), database=None)
    @given(st.lists(st.none() | strategy, min_size=1, max_size=3))
    def holds(values: list[Any]) -> None:
        columns, rows = target.both(name, values, is_instant=is_instant)
        if columns is not None:
            assert columns == rows, (kind, name, values)
            taken.append(values)

    holds()
    return any(value is not None for values in taken for value in values)


def test_every_type_of_field_in_every_type_of_column_is_as_in_rows(target):
    is_mysql = target.database.dialect.name == "mysql"
    pairs = MARIADB if is_mysql else POSTGRESQL
    left = {pair for pair in pairs if not compared(target, *pair)}
    assert left == (set() if is_mysql else LEFT_TO_ROWS)

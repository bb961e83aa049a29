"""The JDBC sink on a PostgreSQL server whose tablespace is full: a program in a mount namespace of its own.

usage: full_disk.py FOLDER, where FOLDER is the disk; prints a JSON object.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from airflow_connect.api import schema as s
from airflow_connect.errors import ConnectError
from tests.devstack.postgresql import PostgresServer
from tests.devstack.unprivileged import give_to_nobody
from tests.support.copies.jdbc_sink_tasks import SinkRun, records, stored, written
from tests.support.servers.databases import Database, database_on
from tests.support.values.columns import to_columns

ROWS, AT_ONCE = 12_000, 1000
SCHEMA = s.struct(("n", s.INT64), ("note", s.STRING))


def write(database: Database) -> str:
    """Write what is missing, in columns, a transaction for each batch; the error's code, or ""."""
    rows = records(*({"n": n, "note": "x" * 1000} for n in range(ROWS)))
    rows = [row.changed(value_schema=SCHEMA) for row in rows]
    runner = SinkRun(database, max_retries="0").open()
    begin = next(iter(runner.read_ranges())).start
    try:
        for start in range(begin, ROWS, AT_ONCE):
            batch = to_columns(rows[start : start + AT_ONCE])
            assert runner.put_columns([batch], batch.offsets)
    except ConnectError as error:
        return error.code
    finally:
        runner.abort()
    return ""


def full_tablespace(disk: Path) -> dict[str, Any]:
    """The disk fills up, the table moves to another one, and the next run goes on."""
    give_to_nobody(disk)
    with PostgresServer.start() as server, database_on(server, "full") as database:
        engine = database.engine().execution_options(isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.exec_driver_sql(f"CREATE TABLESPACE small LOCATION '{disk}'")
            connection.exec_driver_sql("CREATE TABLE orders (n int NOT NULL, note text) TABLESPACE small")
        first = write(database)
        rows, offset = written(database), stored(database)[0]
        database.execute("ALTER TABLE orders SET TABLESPACE pg_default")
        second = write(database)
        found = {
            "first": first, "kept": rows == list(range(offset)), "offset": offset, "second": second,
            "all": written(database) == list(range(ROWS)),
        }  # fmt: skip
        with engine.connect() as connection:
            connection.exec_driver_sql("DROP TABLE orders")
            connection.exec_driver_sql("DROP TABLESPACE small")
        return found


if __name__ == "__main__":
    print(json.dumps(full_tablespace(Path(sys.argv[1]))))

"""`quote.sql.identifiers=never`: a look-up finds what a statement without quotes means."""

from __future__ import annotations

import pytest

from airflow_connect.api import schema as s
from airflow_connect.errors import ConfigError
from tests.support.copies.jdbc_sink_tasks import SinkRun, records
from tests.support.servers.databases import Database

pytestmark = pytest.mark.integration

ORDER = s.struct(("Id", s.INT64), ("theName", s.OPTIONAL_STRING))
WIDER = s.struct(("Id", s.INT64), ("theName", s.OPTIONAL_STRING), ("addedLater", s.OPTIONAL_INT32))
KEY = s.struct(("Id", s.INT64))


def unquoted(database: Database, name: str = "sink", **config: str) -> SinkRun:
    return SinkRun(
        database, name, quote_sql_identifiers="never", table_name_format="Shop_${topic}", insert_mode="upsert",
        pk_mode="record_key", pk_fields="Id", delete_enabled="true", **config,
    )  # fmt: skip


@pytest.mark.parametrize("count", [2, 700])
def test_tables_and_columns_with_capitals_are_created_altered_and_written(database, count):
    evolving = {"auto_create": "true", "auto_evolve": "true", "offsets_table_name": "Our_Offsets"}
    values = [{"Id": n, "theName": "a"} for n in range(count)]
    keys = [{"Id": n} for n in range(count)]
    for number in (1, 2):  # The second run finds what the first one has created.
        run = unquoted(database, f"sink{number}", **evolving)
        run.write(records(*values, keys=keys, key_schema=KEY, schema=ORDER))
    wider = [{"Id": 0, "theName": "b", "addedLater": 7}, None]
    run = unquoted(database, "sink3", **evolving)
    run.write(records(*wider, keys=keys[:2], key_schema=KEY, schema=WIDER))
    # MySQL tells tables apart by case on some systems; without quotes PostgreSQL does not.
    found = database.rows("SELECT Id, theName, addedLater FROM Shop_orders WHERE Id < 2")
    assert found == [(0, "b", 7)]
    assert database.rows("SELECT COUNT(*) FROM Shop_orders") == [(count - 1,)]
    assert database.rows("SELECT COUNT(*) FROM Our_Offsets") == [(6,)]


def test_what_cannot_be_reached_without_quotes_is_named(postgresql_database):
    postgresql_database.execute('CREATE TABLE shop_orders (id BIGINT PRIMARY KEY, "theName" TEXT)')
    with pytest.raises(ConfigError, match="column theName has capitals in its name") as caught:
        unquoted(postgresql_database).write(
            records({"Id": 1, "theName": "a"}, keys=[{"Id": 1}], key_schema=KEY, schema=ORDER)
        )
    assert caught.value.config_path == "quote.sql.identifiers"
    postgresql_database.execute("ALTER TABLE shop_orders ADD thename TEXT")
    unquoted(postgresql_database, "later").write(
        records({"Id": 1, "theName": "a"}, keys=[{"Id": 1}], key_schema=KEY, schema=ORDER)
    )
    assert postgresql_database.rows('SELECT thename, "theName" FROM shop_orders') == [("a", None)]

"""Rows are recognised on each path by the same hashes: row by row, and in columns, whichever run has kept them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from airflow_connect.connectors.jdbc.source import task as task_module
from airflow_connect.connectors.jdbc.source.arrow import texts as texts_module
from airflow_connect.connectors.jdbc.source.arrow.reader import ArrowReader
from airflow_connect.connectors.jdbc.source.read import changed
from airflow_connect.databases.arrow_stream import ArrowStream
from airflow_connect.errors import ConfigError, DataError
from tests.devstack.postgresql import PostgresServer
from tests.support.copies.jdbc_source import Copies, Run
from tests.support.servers.databases import Database, database_on
from tests.support.session.many_cases import check_each
from tests.support.session.searching import examples
from tests.support.values.jdbc_edges import EDGE_TYPES, POSTGRESQL_EDGES
from tests.support.values.jdbc_random import POSTGRESQL_VALUES, placeholder
from tests.support.values.jdbc_types import POSTGRESQL_TYPES

pytestmark = pytest.mark.integration

LOOKING = {"mode": "timestamp", "timestamp.column.name": "changed", "timestamp.lookback.ms": "60000"}
CHANGED = {"mode": "bulk", "bulk.changed.only": "true"}
MODES = pytest.mark.parametrize("mode", [LOOKING, CHANGED], ids=["look-back", "changed"])
PATHS = ("records", "columns", "adbc")
"""Row by row; the driver's rows as columns; ADBC."""
BULK = "bulk_run"
ZONES = st.sampled_from(["UTC", "Europe/Berlin"])
LEFT_OUT = {
    "interval": st.timedeltas(dt.timedelta(-9999), dt.timedelta(9999)),
    "integer[]": st.lists(st.integers(0, 9) | st.none(), max_size=3),
    "text[]": st.lists(st.text("ab ',{}\"", max_size=3) | st.none(), max_size=3),
    "inet": st.ip_addresses(),
    "int4range": st.tuples(st.integers(-9, 0), st.integers(1, 9)).map(lambda pair: f"[{pair[0]},{pair[1]})"),
    "macaddr": st.integers(0, 255).map(lambda n: f"08:00:2b:01:02:{n:02x}"),
    "bit varying(9)": st.text("01", max_size=9),
    "tsvector": st.sampled_from(["a fat cat", ""]),
}
"""Values of types that no field has; a change of one is a change of its row."""
VALUES = {**POSTGRESQL_VALUES, **LEFT_OUT}
# Of the release before rows were compared in columns.
KEPT_CREATED = (
    "CREATE TABLE kept (id bigint PRIMARY KEY, changed timestamptz NOT NULL, name text, amount numeric(12,2),"
    " ratio double precision, small real, is_paid boolean, day date, at timestamp, clock time, zoned timetz, raw bytea,"
    " key uuid, doc jsonb, flags bit(3), tags text[], host inet, span interval, tiny numeric(12,10))"
)
KEPT_ROWS = (
    "INSERT INTO kept VALUES"
    " (1, '2026-01-31 12:30Z', 'plain', 12.50, 0.1, 0.1, true, '2026-01-31', '2026-01-31 12:30:05', '12:30',"
    " '12:30+01', '\\x00ff41', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{\"a\": 1}', '101', '{a,NULL}', '127.0.0.1',"
    " '1 day', 0.00000001),"
    " (2, '2026-01-31 12:30:05.000006Z', E'it''s \\\\ é\\n', -0.01, '-0', 'NaN', false, 'infinity', '-infinity',"
    " '24:00', '00:00:00.5-02:30', '', NULL, 'null', '000', '{}', '::1/64', '-3 months', 'NaN'),"
    " (3, '2026-01-31 12:30:59.9Z', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,"
    " NULL, NULL, NULL, NULL)"
)
KEPT_SENT = "AAZJrj+TAgAhGqBoCyjSwwCTyqMfVoHkAAZJrj/fTUanH96Q4y3mctUWOX3nMacXAAZJrkMlAmD2bvMdnouRvhWmPg92Vt3j"
KEPT_RANGES = {"hashes": "AAAAAAAAAAMAAAADr19afHk3QkcgyhkkwOgoKw==", "form": "4d973912e7636431"}


@pytest.fixture(autouse=True)
def _small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changed, "RANGE_ROWS", 3)


@pytest.fixture(scope="module")
def typed(postgresql: PostgresServer) -> Iterator[Database]:
    with database_on(postgresql, "recognised") as database:
        database.execute(*POSTGRESQL_TYPES)
        yield database


def copies(database: Database, mode: Mapping[str, str], **more: str) -> Copies:
    config = {"connection.url": database.jdbc_url, "connection.backoff.ms": "10", **mode}
    return Copies({**config, **{k.replace("_", "."): v for k, v in more.items()}})


def run(runs: Copies, path: str, **options: Any) -> Run:
    """A run by one of `PATHS`."""
    runs.columnar = path != "records"
    with pytest.MonkeyPatch.context() as patch:
        if path != "adbc":
            patch.setattr(task_module, "arrow_stream", lambda connection, isolation: None)
        return runs.run(**options)


def outcome(run: Run, runs: Copies) -> Any:
    """What a run has sent, said and kept; `repr`, because NaN does not equal itself."""
    sent = [f"{record.topic} {record.value_schema} {record.value!r}" for record in run.records]
    offsets = sorted((str(sorted(p.items())), str(sorted(o.items()))) for p, o in runs.committed() if BULK not in o)
    return sent, sorted(run.notes), sorted(run.numbers.items()), offsets


@MODES
@settings(max_examples=examples(40), deadline=None, phases=set(Phase) - {Phase.shrink, Phase.explain})
@given(data=st.data())
# Each example copies a table twelve times.
@pytest.mark.budget(60)
def test_every_path_recognises_the_rows_of_every_other(
    typed: Database, mode: Mapping[str, str], data: st.DataObject
) -> None:
    """Random tables that change between runs: a path that changes with each run sends what the row path sends."""
    kinds = data.draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=6))
    columns = ", ".join(f'"c:{n}%" {kind}' for n, kind in enumerate(kinds))
    limit = data.draw(st.sampled_from([{}, {"timestamp.lookback.max.rows": "4"}])) if mode is LOOKING else {}
    config = {**mode, **limit, "values.out.of.range": "null", "db.timezone": data.draw(ZONES)}
    of_rows, of_each = copies(typed, config), copies(typed, config)
    stamp = data.draw(st.sampled_from(["timestamptz", "timestamp"]))
    with psycopg.connect(typed.url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS every_type")
        connection.execute(f"CREATE TABLE every_type (id int PRIMARY KEY, changed {stamp} NOT NULL, {columns})")
        for path in data.draw(st.lists(st.sampled_from(PATHS), min_size=2, max_size=5)):
            change(connection, kinds, data)
            expected = outcome(run(of_rows, "records"), of_rows)
            assert outcome(run(of_each, path), of_each) == expected
            if data.draw(st.booleans()):
                nothing = run(of_each, data.draw(st.sampled_from(PATHS)))
                assert nothing.records == []


FIRST = dt.datetime(2026, 3, 29)  # noqa: DTZ001 (a local time)


def change(connection: psycopg.Connection[Any], kinds: list[str], data: st.DataObject) -> None:
    """Add, change or delete a few rows; some have the time of others, or one that clocks skip in Europe."""
    places = ", ".join(["%s", "%s", *(placeholder(kind) for kind in kinds)])
    moments = st.integers(0, 400).map(lambda n: FIRST + dt.timedelta(seconds=n * 20))
    row = st.tuples(st.integers(1, 30), moments, *(VALUES[kind] | st.none() for kind in kinds))
    for values in data.draw(st.lists(row, min_size=1, max_size=6)):
        connection.execute("DELETE FROM every_type WHERE id = %s", (values[0],))
        if data.draw(st.integers(0, 5)):
            connection.execute(f"INSERT INTO every_type VALUES ({places})", values)


@MODES
@pytest.mark.budget(20)
def test_edge_values_of_every_type_have_one_hash(postgresql_database: Database, mode: Mapping[str, str]) -> None:
    """A table for each type; a run by rows, then one in columns, and the other way round."""
    database = postgresql_database
    database.execute(*EDGE_TYPES)
    tables = {}
    with database.connected() as connection:
        for number, (kind, literals) in enumerate([*POSTGRESQL_EDGES, *LEFT_OUT_EDGES]):
            name = f"t{number}"
            tables[name] = f"{kind}: {', '.join(literals)[:80]}"
            connection.exec_driver_sql(
                f"CREATE TABLE {name} (id int PRIMARY KEY, changed timestamptz NOT NULL DEFAULT '2026-01-01', v {kind})"
            )
            for place, literal in enumerate([*literals, "NULL"]):
                sql = f"INSERT INTO {name} (id, v) VALUES ({place}, {literal})"
                connection.exec_driver_sql(sql.replace("%", "%%"))
    config = {**mode, "values.out.of.range": "null", "table.whitelist": ",".join(tables)}
    first, second = copies(database, config), copies(database, config)
    by_rows, by_adbc = run(first, "columns"), run(second, "adbc")
    assert len(by_rows.records) > len(tables) and {str(p) for p, _ in first.committed()} == {
        str(p) for p, _ in second.committed()
    }

    def equal(case: tuple[Mapping[str, Any], Mapping[str, Any]]) -> None:
        assert second.offset(case[0]) == case[1]

    check_each(first.committed(), lambda case: tables[case[0]["table"].rpartition(".")[2]], equal)
    assert run(first, "adbc").records == run(second, "columns").records == []
    assert {place: error.message for place, error in by_adbc.left_out.items()} == {
        place: error.message for place, error in by_rows.left_out.items()
    }


LEFT_OUT_EDGES = [
    ("inet", ["'127.0.0.1'", "'10.0.0.1/8'", "'::1'"]),
    ("cidr", ["'10.0.0.0/8'"]),
    ("interval", ["'1 day -00:00:00.5'", "'100000000 years'", "'3 mons'"]),
    ("interval[]", ["ARRAY['1 day'::interval]"]),
    ("integer[]", ["'{}'", "'{1,NULL}'", "'{{1,2},{3,4}}'", "'[0:1]={1,2}'"]),
    ("mood[]", ["'{sad}'"]),
    ("date[]", ["'{2026-01-31}'", "'{infinity}'"]),
    ("pair", ["ROW(1, 'a,\"b')", "ROW(NULL, NULL)"]),
    ("int4range", ["'[1,5)'", "'empty'", "'(,)'"]),
    ("tsrange", ["'[2026-01-01,)'"]),
    ("int4multirange", ["'{[1,2),[4,5)}'"]),
    ("point", ["'(1,2)'"]),
    ("tsvector", ["'a fat cat'"]),
    ("macaddr", ["'08:00:2b:01:02:03'"]),
    ("xid", ["'7'"]),
    ("jsonb[]", ["ARRAY['{\"a\": 1}'::jsonb]"]),
]


@pytest.mark.parametrize("path", PATHS)
@MODES
def test_rows_that_an_older_release_has_sent_are_not_sent_again(
    postgresql_database: Database, mode: Mapping[str, str], path: str
) -> None:
    postgresql_database.execute(KEPT_CREATED, KEPT_ROWS)
    (database,) = postgresql_database.rows("SELECT current_database()")[0]
    runs = copies(postgresql_database, mode, values_out_of_range="null")
    partition = {"protocol": "1", "table": f"{database}.public.kept"}
    if mode is LOOKING:
        at = {"timestamp": 1769862659900, "timestamp_nanos": 900000000, "lookback_from": 1769862059900000}
        runs.commit(partition, {**at, "lookback": KEPT_SENT})
    else:
        runs.commit({**partition, "ranges": "hashes"}, KEPT_RANGES)
    assert run(runs, path).records == []
    postgresql_database.execute("UPDATE kept SET host = '127.0.0.2' WHERE id = 1")
    assert run(runs, path).ids() == ([1] if mode is LOOKING else [1, 2, 3])


@pytest.mark.parametrize("path", PATHS)
def test_row_that_changes_back_without_a_new_time_is_sent_on_each_path(
    postgresql_database: Database, path: str
) -> None:
    database = postgresql_database
    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, n int, changed timestamp NOT NULL)",
        "INSERT INTO t VALUES (1, 5, '2026-01-01'), (2, 7, '2026-01-01'), (3, 8, '2026-01-01 00:00:01')",
    )
    runs = copies(database, LOOKING)
    assert len(run(runs, path).records) == 3
    for n in (6, 5):
        database.execute(f"UPDATE t SET n = {n} WHERE id = 1")
        assert [value["n"] for value in run(runs, path).values] == [n]
        assert run(runs, path).records == []


@MODES
def test_rows_are_compared_in_arrow_batches(
    postgresql_database: Database, mode: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    postgresql_database.execute(KEPT_CREATED, KEPT_ROWS)
    found: list[int] = []
    convert = ArrowReader._converted

    def noted(self: ArrowReader, *arguments: Any) -> Any:
        batch = convert(self, *arguments)
        found.append(len(batch))
        return batch

    monkeypatch.setattr(ArrowReader, "_converted", noted)
    first = run(copies(postgresql_database, mode, values_out_of_range="null"), "adbc")
    assert first.ids() == [1, 2, 3] and sum(found) == 3
    assert not [note for note in first.notes if "one by one" in note]


@MODES
def test_batch_with_a_huge_row_has_the_same_hashes(
    postgresql_database: Database, mode: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its text might not fit into an array of Arrow: its values are written one by one."""
    postgresql_database.execute(KEPT_CREATED, KEPT_ROWS)
    runs = copies(postgresql_database, mode, values_out_of_range="null")
    assert len(run(runs, "adbc").records) == 3
    monkeypatch.setattr(texts_module, "_MOST_BYTES", 0)
    assert run(runs, "adbc").records == []


@MODES
@pytest.mark.parametrize("server", ["mariadb_database", "sqlite_database"])
def test_rows_of_other_databases_are_recognised_on_both_paths(
    request: pytest.FixtureRequest, server: str, mode: Mapping[str, str]
) -> None:
    database: Database = request.getfixturevalue(server)
    types = {
        "mysql": ("datetime(6)", "decimal(12,2)", "float", "varchar(20)", "varbinary(9)", "date", "time(6)", "bit(3)"),
        "sqlite": ("TIMESTAMP", "DECIMAL(12,2)", "REAL", "TEXT", "BLOB", "DATE", "TIME", "BOOLEAN"),
    }[database.dialect]
    changed_type, *others = types
    columns = ", ".join(f"c{number} {kind}" for number, kind in enumerate(others))
    rows = [
        "(1, '2026-01-01 00:00:00.5', 12.50, 0.1, 'it''s é', x'00ff', '2026-01-31', '12:30:00.5', 1)",
        "(2, '2026-01-01 00:00:01', -0.01, -1.5, '', x'', '0001-01-01', '00:00:00', 0)",
        "(3, '2026-01-01 00:00:01', NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    ]
    database.execute(
        f"CREATE TABLE t (id INTEGER PRIMARY KEY, changed {changed_type} NOT NULL, {columns})",
        f"INSERT INTO t VALUES {', '.join(rows)}",
    )
    first, second = copies(database, mode), copies(database, mode)
    assert run(first, "records").ids() == run(second, "columns").ids() == [1, 2, 3]
    assert first.committed() == second.committed()
    assert run(first, "columns").records == run(second, "records").records == []
    database.execute("UPDATE t SET c3 = x'00fe' WHERE id = 1")
    expected = [1] if mode is LOOKING else [1, 2, 3]
    assert run(first, "columns").ids() == run(second, "records").ids() == expected


def test_tables_that_inherit_may_have_equal_rows(postgresql_database: Database) -> None:
    """Rows with all values alike are sent once, as row by row."""
    postgresql_database.execute(
        "CREATE TABLE parent (id int PRIMARY KEY, changed timestamptz NOT NULL)",
        "CREATE TABLE child () INHERITS (parent)",
        "INSERT INTO parent SELECT i, timestamptz '2026-01-01' + i / 4 * interval '1 day' FROM generate_series(1, 9) i",
        "INSERT INTO child SELECT * FROM ONLY parent WHERE id IN (2, 4, 6, 8)",
        "INSERT INTO child SELECT id, changed + interval '1 day' FROM ONLY parent WHERE id = 3",
    )
    found = []
    for path in PATHS:
        runs = copies(postgresql_database, {**LOOKING, "table.whitelist": "parent"})
        found.append((sorted(run(runs, path).ids()), runs.committed()))
        assert run(runs, path).records == []
    assert found[0][0] == sorted([*range(1, 10), 3]) and found[1:] == found[:1] * 2


def test_group_of_equal_times_that_is_read_again_without_the_suffix(postgresql_database: Database) -> None:
    """Its rows are recognised, too. A LIMIT that cuts a group is refused with a look-back."""
    postgresql_database.execute(
        'CREATE TABLE t (id int PRIMARY KEY, changed timestamptz NOT NULL, "{0}:%%" text)',
        "INSERT INTO t SELECT i, timestamptz '2026-01-01' + i / 4 * interval '1 minute', i"
        " FROM generate_series(1, 12) i",
    )
    found = []
    for path in PATHS:
        runs = copies(postgresql_database, {**LOOKING, "timestamp.lookback.ms": "1", "query.suffix": "LIMIT ALL"})
        found.append([(sorted(run(runs, path).ids()), runs.committed()) for _ in range(2)])
    assert [ids for ids, _ in found[0]] == [[*range(1, 13)], []]
    assert found[1:] == found[:1] * 2


def test_table_without_a_primary_key_cannot_look_back(postgresql_database: Database) -> None:
    postgresql_database.execute("CREATE TABLE t (changed timestamptz NOT NULL)")
    postgresql_database.execute("INSERT INTO t VALUES ('2026-01-01')")
    with pytest.raises(ConfigError, match=r"needs a primary key, which .*t does not have"):
        run(copies(postgresql_database, LOOKING), "adbc")


def test_look_back_with_a_key_that_is_left_out(postgresql_database: Database) -> None:
    postgresql_database.execute(
        "CREATE TABLE t (id inet PRIMARY KEY, changed timestamptz NOT NULL)",
        "INSERT INTO t SELECT inet '10.0.0.0' + i, '2026-01-01' FROM generate_series(1, 5) i",
    )
    of_rows, of_columns = copies(postgresql_database, LOOKING), copies(postgresql_database, LOOKING)
    # Without its key, each row becomes the same record.
    assert [len(run(of_rows, "records").records), len(run(of_columns, "adbc").records)] == [5, 5]
    assert of_rows.committed() == of_columns.committed()


@pytest.mark.parametrize("key", ["numeric(9)", "smallint", "oid"])
def test_keys_of_ranges(postgresql_database: Database, key: str) -> None:
    postgresql_database.execute(f"CREATE TABLE t (id {key} PRIMARY KEY, n int)")
    postgresql_database.execute("INSERT INTO t SELECT i, i FROM generate_series(1, 10) i")
    found = []
    for path in PATHS:
        runs = copies(postgresql_database, CHANGED, batch_max_rows="4")
        assert [int(number) for number in run(runs, path).ids()] == list(range(1, 11))
        found.append([offset for partition, offset in runs.committed() if "ranges" in partition])
    assert found[1:] == found[:1] * 2


@pytest.mark.parametrize("path", PATHS)
def test_key_that_is_no_number_is_named(postgresql_database: Database, path: str) -> None:
    postgresql_database.execute("CREATE TABLE t (id numeric(9) PRIMARY KEY)", "INSERT INTO t VALUES (1), ('NaN')")
    with pytest.raises(DataError, match=r"primary key id of the table .*t has a value that is not a whole number"):
        run(copies(postgresql_database, CHANGED), path)


@MODES
@pytest.mark.parametrize("killed_after", [1, 2, 3])
def test_run_in_columns_that_dies_neither_loses_nor_repeats(
    postgresql_database: Database, mode: Mapping[str, str], killed_after: int
) -> None:
    """In mode bulk a run that dies sends its changes again."""
    postgresql_database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, changed timestamptz NOT NULL)",
        "INSERT INTO t SELECT i, timestamptz '2026-01-01' + i / 2 * interval '1 second' FROM generate_series(1, 12) i",
    )
    runs = copies(postgresql_database, mode, batch_max_rows="3")
    sent = run(runs, "adbc", batches=killed_after).ids()
    assert 0 < len(sent) < 12
    rest = run(runs, "adbc").ids()
    assert rest == (list(range(1, 13)) if mode is CHANGED else list(range(len(sent) + 1, 13)))
    assert run(runs, "records").records == []


@MODES
@pytest.mark.parametrize(
    ("alter", "sent"),
    [
        ("ALTER n TYPE bigint, ALTER span TYPE text", {"n": 2, "span": "[1,5)"}),
        ("ALTER span TYPE text USING 'no range'", {"n": 2, "span": "no range"}),
        ("ALTER span TYPE tenths USING 1.5", {"n": 2, "span": Decimal("1.5")}),
    ],
)
def test_type_that_changes_while_a_table_is_opened(
    postgresql_database: Database, mode: Mapping[str, str], alter: str, sent: Mapping[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    database = postgresql_database
    database.execute(
        "CREATE DOMAIN ranges AS int4range",
        "CREATE DOMAIN tenths AS numeric(9,1)",
        "CREATE TABLE t (id int PRIMARY KEY, changed timestamptz NOT NULL, n int, span ranges)",
        "INSERT INTO t VALUES (1, '2026-01-01', 2, '[1,5)')",
    )
    begin, done = ArrowStream.batches, []

    def batches(self: ArrowStream, sql: str, size: int) -> Iterator[Any]:
        if not done:
            done.append(sql)
            database.execute(f"ALTER TABLE t {alter}")
        return begin(self, sql, size)

    monkeypatch.setattr(ArrowStream, "batches", batches)
    runs = copies(database, mode)
    (value,) = run(runs, "adbc").values
    assert {name: value[name] for name in value if name in ("n", "span")} == sent
    assert run(runs, "columns").records == run(runs, "adbc").records == []

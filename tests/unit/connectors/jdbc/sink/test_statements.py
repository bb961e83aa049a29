"""The SQL text for each database. The expected text follows kafka-connect-jdbc, but was not recorded from it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from sqlalchemy.dialects.mssql.base import MSDialect
from sqlalchemy.dialects.oracle.base import OracleDialect
from sqlalchemy.schema import CreateTable

from airflow_connect.api import schema as s
from airflow_connect.connectors.jdbc.sink.fields import SinkField
from airflow_connect.connectors.jdbc.sink.offsets import OffsetsTable
from airflow_connect.connectors.jdbc.sink.statements.dialects import statements_of
from airflow_connect.connectors.jdbc.sink.statements.standard_sql import Names
from airflow_connect.databases.identifiers import Quoting
from airflow_connect.errors import SchemaError

QUOTES = {"postgresql": '""', "oracle": '""', "mysql": "``", "sqlite": '""', "mssql": "[]"}


def names(database, keys=("id1", "id2"), others=("columnA", "columnB"), table="myTable"):
    start, end = QUOTES[database]
    quoted = lambda name: f"{start}{name}{end}"  # noqa: E731
    return Names(quoted(table), tuple(map(quoted, keys)), tuple(map(quoted, others)))


def statements(database, **options):
    return statements_of(database, "qmark", **options)


UPSERTS = {
    "postgresql": 'INSERT INTO "myTable" ("id1","id2","columnA","columnB") VALUES (?,?,?,?) ON CONFLICT ("id1","id2") '
    'DO UPDATE SET "columnA"=EXCLUDED."columnA","columnB"=EXCLUDED."columnB"',
    "mysql": "insert into `myTable`(`id1`,`id2`,`columnA`,`columnB`) values (?,?,?,?) on duplicate key update "
    "`columnA`=values(`columnA`),`columnB`=values(`columnB`)",
    "sqlite": 'INSERT INTO "myTable"("id1","id2","columnA","columnB") VALUES(?,?,?,?) ON CONFLICT("id1","id2")'
    ' DO UPDATE SET "columnA"=excluded."columnA","columnB"=excluded."columnB"',
    "mssql": "merge into [myTable] with (HOLDLOCK) AS target using (select ? AS [id1], ? AS [id2], ? AS [columnA], "
    "? AS [columnB]) AS incoming on (target.[id1]=incoming.[id1] and target.[id2]=incoming.[id2]) when matched then "
    "update set [columnA]=incoming.[columnA],[columnB]=incoming.[columnB] when not matched then insert ([columnA], "
    "[columnB], [id1], [id2]) values (incoming.[columnA],incoming.[columnB],incoming.[id1],incoming.[id2]);",
    "oracle": 'merge into "myTable" using (select ? "id1", ? "id2", ? "columnA", ? "columnB" FROM dual) incoming '
    'on("myTable"."id1"=incoming."id1" and "myTable"."id2"=incoming."id2") when matched then update set '
    '"myTable"."columnA"=incoming."columnA","myTable"."columnB"=incoming."columnB" when not matched then '
    'insert("myTable"."columnA","myTable"."columnB","myTable"."id1","myTable"."id2") '
    'values(incoming."columnA",incoming."columnB",incoming."id1",incoming."id2")',
}


@pytest.mark.parametrize("database", UPSERTS)
def test_upsert(database):
    assert statements(database).upsert(names(database)) == UPSERTS[database]


def test_upsert_of_keys_alone():
    keys_only = {database: statements(database).upsert(names(database, others=())) for database in UPSERTS}
    assert keys_only["postgresql"].endswith('ON CONFLICT ("id1","id2") DO NOTHING')
    assert keys_only["mysql"].endswith("on duplicate key update `id1`=values(`id1`),`id2`=values(`id2`)")
    assert "when matched" not in keys_only["mssql"] + keys_only["oracle"]


def test_merge_without_holdlock():
    assert "HOLDLOCK" not in statements("mssql", holdlock=False).upsert(names("mssql"))


@pytest.mark.parametrize("database", UPSERTS)
def test_insert_update_and_delete(database):
    made, of_table = statements(database), names(database)
    columns, (first, second), (a, b) = ",".join(of_table.all), of_table.keys, of_table.others
    assert made.insert(of_table) == f"INSERT INTO {of_table.table}({columns}) VALUES(?,?,?,?)"
    where = f"WHERE {first} = ? AND {second} = ?"
    assert made.update(of_table) == f"UPDATE {of_table.table} SET {a} = ?, {b} = ? {where}"
    assert made.delete(of_table) == f"DELETE FROM {of_table.table} {where}"


def test_parameters_are_marked_as_the_driver_wants_them():
    texts = {style: statements_of("oracle", style).delete(names("oracle")) for style in ("named", "numeric", "format")}
    assert texts["named"].endswith('"id1" = :1 AND "id2" = :2')
    assert texts["format"].endswith('"id1" = %s AND "id2" = %s')


def field(name, schema, *, is_key=False):
    return SinkField(name, schema, is_key, lambda record: None)


FIELDS = [
    field("c1", s.INT32, is_key=True), field("c2", s.INT64), field("c3", s.STRING), field("c4", s.OPTIONAL_STRING),
    field("c5", s.date()), field("c6", s.time()), field("c7", s.timestamp()), field("c8", s.decimal(4)),
]  # fmt: skip
CREATED = {
    "postgresql": '"c1" INT NOT NULL,\n"c2" BIGINT NOT NULL,\n"c3" TEXT NOT NULL,\n"c4" TEXT NULL,\n'
    '"c5" DATE NOT NULL,\n"c6" TIME NOT NULL,\n"c7" TIMESTAMP NOT NULL,\n"c8" DECIMAL NOT NULL,\nPRIMARY KEY("c1"))',
    "mysql": "`c1` INT NOT NULL,\n`c2` BIGINT NOT NULL,\n`c3` LONGTEXT NOT NULL,\n`c4` LONGTEXT NULL,\n"
    "`c5` DATE NOT NULL,\n"
    "`c6` TIME(3) NOT NULL,\n`c7` DATETIME(3) NOT NULL,\n`c8` DECIMAL(65,4) NOT NULL,\nPRIMARY KEY(`c1`))",
    "sqlite": '"c1" INTEGER NOT NULL,\n"c2" INTEGER NOT NULL,\n"c3" TEXT NOT NULL,\n"c4" TEXT NULL,\n'
    '"c5" NUMERIC NOT NULL,\n"c6" NUMERIC NOT NULL,\n"c7" NUMERIC NOT NULL,\n"c8" NUMERIC NOT NULL,'
    '\nPRIMARY KEY("c1"))',
    "mssql": "[c1] int NOT NULL,\n[c2] bigint NOT NULL,\n[c3] varchar(max) NOT NULL,\n[c4] varchar(max) NULL,\n"
    "[c5] date NOT NULL,\n[c6] time NOT NULL,\n[c7] datetime2 NOT NULL,\n[c8] decimal(38,4) NOT NULL,"
    "\nPRIMARY KEY([c1]))",
    "oracle": '"c1" NUMBER(10,0) NOT NULL,\n"c2" NUMBER(19,0) NOT NULL,\n"c3" CLOB NOT NULL,\n"c4" CLOB NULL,\n'
    '"c5" DATE NOT NULL,\n"c6" DATE NOT NULL,\n"c7" TIMESTAMP NOT NULL,\n"c8" NUMBER(*,4) NOT NULL,'
    '\nPRIMARY KEY("c1"))',
}


@pytest.mark.parametrize("database", CREATED)
def test_create_table(database):
    of_table = names(database, keys=("c1",), others=tuple(f"c{n}" for n in range(2, 9)))
    text = statements(database).create(of_table, FIELDS, [None] * len(FIELDS))
    assert text == f"CREATE TABLE {of_table.table} (\n{CREATED[database]}"


ALTERED = {
    "postgresql": ['ALTER TABLE "t" ADD "a" INT NULL,\nADD "b" INT DEFAULT 42'],
    "mysql": ["ALTER TABLE `t` ADD `a` INT NULL,\nADD `b` INT DEFAULT 42"],
    "sqlite": ['ALTER TABLE "t" ADD "a" INTEGER NULL', 'ALTER TABLE "t" ADD "b" INTEGER DEFAULT 42'],
    "mssql": ["ALTER TABLE [t] ADD\n[a] int NULL,\n[b] int DEFAULT 42"],
    "oracle": ['ALTER TABLE "t" ADD(\n"a" NUMBER(10,0) NULL,\n"b" NUMBER(10,0) DEFAULT 42)'],
}


@pytest.mark.parametrize("database", ALTERED)
def test_alter_table(database):
    of_table = names(database, keys=(), others=("a", "b"), table="t")
    fields = [field("a", s.OPTIONAL_INT32), field("b", s.Schema(s.Type.INT32, default=42))]
    assert statements(database).alter(of_table.table, of_table.others, fields, [None, 42]) == ALTERED[database]


def test_default_is_a_literal_that_cannot_end_early():
    made = statements("postgresql")
    text = field("a", s.Schema(s.Type.STRING, default="x"))
    assert made.default(text, "it's") == "'it''s'"
    assert made.default(field("b", s.BOOLEAN), True) == "TRUE"
    for hostile in ("back\\slash", "nul\0", b"bytes", float("nan")):
        with pytest.raises(SchemaError, match="cannot be written into a statement"):
            made.default(text, hostile)


@pytest.mark.parametrize("schema", [s.map_of(s.STRING, s.INT32), s.struct(("a", s.INT32)), s.array(s.INT32)])
def test_type_without_column_is_refused_by_name(schema):
    with pytest.raises(SchemaError, match=f"The field nested has the type {schema.type.name}"):
        statements("sqlite").type_of(field("nested", schema))


def test_postgresql_has_arrays_of_primitives():
    assert statements("postgresql").type_of(field("a", s.array(s.INT64))) == "BIGINT[]"
    with pytest.raises(SchemaError):
        statements("postgresql").type_of(field("a", s.array(s.map_of(s.STRING, s.INT32))))


@pytest.mark.parametrize("name", ["mssql", "oracle"])
def test_offsets_table_compiles_for_databases_without_a_server_here(name):
    dialect = {"mssql": MSDialect, "oracle": OracleDialect}[name]()
    database = SimpleNamespace(quoting=Quoting(dialect))
    text = str(CreateTable(OffsetsTable(database, "airflow_connect_offsets", "c")._table).compile(dialect=dialect))
    assert "PRIMARY KEY (place)" in text
    assert "next_offset" in text

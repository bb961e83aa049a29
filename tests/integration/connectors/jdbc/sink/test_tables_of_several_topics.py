"""Records of two topics, or of two partitions, that change the same row are in no order: the report says so."""

from __future__ import annotations

import pytest

from airflow_connect.api import schema as s
from airflow_connect.connectors.jdbc.sink.config import JdbcSinkConfig
from airflow_connect.runtime.driver.entry import run_connector
from airflow_connect.runtime.driver.offsets.replaying import Replay, replay_spec
from tests.support.copies.jdbc_sink import jdbc_sink
from tests.support.copies.jdbc_sink_tasks import SinkRun, give, records

pytestmark = pytest.mark.integration

UPSERT = {"insert_mode": "upsert", "pk_mode": "record_value", "pk_fields": "n"}
VALUE_TO_KEY = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "transforms": "key",
    "transforms.key.type": "org.apache.kafka.connect.transforms.ValueToKey",
    "transforms.key.fields": "n",
}


def named(report):
    return [note for note in report.notes if "is filled from 2 topics" in note]


@pytest.mark.parametrize("count", [2, 600], ids=["rows", "columns"])
def test_table_that_two_topics_fill_by_key_is_named(kafka, postgresql_database, make_topic, produce, count):
    topics = sorted(make_topic() for _ in range(2))
    sink = jdbc_sink(kafka, postgresql_database, topics[0], in_columns=True, **UPSERT)
    postgresql_database.execute(f"ALTER TABLE {sink.table} ADD PRIMARY KEY (n)")
    produce(topics[0], [(0, None, f'{{"n": {n}, "pad": "a"}}') for n in range(count)])
    assert named(sink.run(topics=",".join(topics))) == []
    produce(topics[1], [(0, None, '{"n": 1, "pad": "b"}')])
    (note,) = named(sink.run(topics=",".join(topics)))
    assert note.startswith(f"{sink.bucket} is filled from 2 topics ({topics[0]}, {topics[1]}), and its rows are found")
    assert postgresql_database.rows(f"SELECT pad FROM {sink.table} WHERE n = 1") == [("b",)]
    produce(topics[1], [(0, None, '{"n": 2, "pad": "b"}')])
    assert named(sink.run(topics=topics[1])) == []  # The other topic is no longer copied.


def test_table_whose_rows_keep_apart_is_not_named(kafka, postgresql_database, make_topic, produce):
    topics = [make_topic() for _ in range(2)]
    sink = jdbc_sink(kafka, postgresql_database, topics[0], in_columns=True)
    for topic in topics:
        produce(topic, [(0, None, '{"n": 1, "pad": "a"}')])
    assert named(sink.run(topics=",".join(topics))) == []


@pytest.mark.parametrize(
    ("kind", "formats", "quotes"),
    [
        ("postgresql", ("orders", "public.orders"), "always"),
        ("postgresql", ("orders", "ORDERS", "Public.Orders"), "never"),
        ("mariadb", ("orders", "{database}.orders"), "always"),
        ("sqlite", ("orders", "ORDERS"), "always"),
    ],
)
def test_table_has_one_name_however_it_is_written(request, kind, formats, quotes):
    """Two topics that reach a table by different names were not noticed."""
    database = request.getfixturevalue(f"{kind}_database")
    database.execute("CREATE TABLE orders (n INT PRIMARY KEY, note VARCHAR(9))")
    schema = s.struct(("n", s.INT32), ("note", s.OPTIONAL_STRING))
    filled = set()
    for number, form in enumerate(formats):
        name = form.format(database=database.url.rpartition("/")[2].partition("?")[0])
        run = SinkRun(database, f"s{number}", table_name_format=name, quote_sql_identifiers=quotes, **UPSERT)
        filled.add(tuple(give(run.open(), records({"n": 1, "note": form[:9]}, schema=schema)).details["filled"]))
    assert filled == {("orders",)}
    assert database.rows("SELECT note FROM orders") == [(formats[-1][:9],)]


def test_first_part_of_a_topic_of_debezium_tells_no_tables_apart_in_postgresql(postgresql_database):
    """`server.schema.table`: the name of the server is that of a database, of which there is one."""
    postgresql_database.execute("CREATE SCHEMA sales", "CREATE TABLE sales.orders (n INT PRIMARY KEY, note VARCHAR(9))")
    schema = s.struct(("n", s.INT32), ("note", s.OPTIONAL_STRING))
    filled = []
    for server in ("one", "two"):
        run = SinkRun(postgresql_database, server, table_name_format=f"{server}.sales.orders", **UPSERT)
        filled += give(run.open(), records({"n": 1, "note": server}, schema=schema)).details["filled"]
    assert filled == ["sales.orders", "sales.orders"]
    assert postgresql_database.rows("SELECT note FROM sales.orders") == [("two",)]


@pytest.mark.parametrize("count", [2, 600], ids=["rows", "columns"])
def test_rows_whose_records_may_be_in_any_partition_are_named(kafka, postgresql_database, make_topic, produce, count):
    """A producer without keys takes the partitions in turn, and a run reads one after the other."""

    def unkeyed(partitions, key, **mode):
        sink = jdbc_sink(kafka, postgresql_database, make_topic(partitions), in_columns=True, **(mode or UPSERT))
        postgresql_database.execute(f"ALTER TABLE {sink.table} ADD PRIMARY KEY (n)")
        produce(sink.topic, [(0, key, f'{{"n": {n}, "pad": "a"}}') for n in range(count)])
        return [note for note in sink.run().notes if note.startswith(f"Records of {sink.topic} have no keys")]

    (note,) = unkeyed(2, None)
    assert "may be in any of its 2 partitions" in note and "no order between partitions" in note
    assert unkeyed(2, b"k") == unkeyed(1, None) == unkeyed(2, None, insert_mode="insert") == []


@pytest.mark.parametrize("count", [4, 600], ids=["rows", "columns"])
@pytest.mark.parametrize("pk_mode", ["record_value", "record_key"])
def test_rows_whose_records_have_different_keys_in_kafka_are_named(
    kafka, postgresql_database, make_topic, produce, count, pk_mode
):
    """Orders whose key in Kafka is that of the customer: an order of another customer may be in another partition."""

    def spread(partitions, customer_of):
        topic = make_topic(partitions)
        sink = jdbc_sink(kafka, postgresql_database, topic, in_columns=True, **{**UPSERT, "pk_mode": pk_mode})
        if pk_mode == "record_key":
            sink.config |= VALUE_TO_KEY
        postgresql_database.execute(f"ALTER TABLE {sink.table} ADD PRIMARY KEY (n)")
        produce(topic, [(0, customer_of(n), f'{{"n": {n % (count - 1)}, "pad": "a"}}') for n in range(count)])
        return [note for note in sink.run().notes if note.startswith(f"Records of {topic} that change one row")], topic

    (note,), topic = spread(2, lambda n: f"customer {n}".encode())
    assert f"different keys in Kafka, such as {topic}-0@{count - 1} and one before it" in note
    assert "may be in any of its 2 partitions" in note and "no order between partitions" in note
    assert spread(1, lambda n: f"customer {n}".encode())[0] == []
    assert spread(2, lambda n: f"order {n % (count - 1)}".encode())[0] == []


@pytest.mark.parametrize("tasks", [1, 2])
@pytest.mark.parametrize("count", [4, 600], ids=["rows", "columns"])
def test_rows_whose_records_are_in_several_partitions_are_counted(
    kafka, postgresql_database, make_topic, produce, count, tasks
):
    """The topic got more partitions, or another producer has another partitioner: records have the keys of rows."""
    topic = make_topic(2)
    sink = jdbc_sink(kafka, postgresql_database, topic, in_columns=True, tasks_max=tasks, **UPSERT)
    postgresql_database.execute(f"ALTER TABLE {sink.table} ADD PRIMARY KEY (n)")

    def notes(*partitions):
        for number, numbers in enumerate(partitions):
            produce(topic, [(number, b"%d" % n, f'{{"n": {n}, "pad": "a"}}') for n in numbers])
        return [note for note in sink.run().notes if "are in several partitions" in note]

    assert notes(range(count), range(count, 2 * count)) == []
    (note,) = notes(range(count), range(count - 2, 2 * count))
    assert f"{topic} for one row are in several partitions, which is so for 2 of {2 * count:,} keys: {topic}-0@" in note
    assert "an older record of a row may be written over a newer one" in note


@pytest.mark.parametrize("offsets_table", [True, False], ids=["offsets table", "no offsets table"])
@pytest.mark.parametrize("mode", ["upsert", "insert"])
def test_replay_that_writes_older_rows_over_newer_ones_says_so(
    kafka, postgresql_database, make_topic, produce, mode, offsets_table
):
    """The connector has copied the newer record of the key; a replay of the range before it brings the older one."""
    sink = jdbc_sink(kafka, postgresql_database, make_topic(), in_columns=True, **{**UPSERT, "insert_mode": mode})
    if not offsets_table:
        sink.config[JdbcSinkConfig.offsets_table.name] = ""
    if mode == "upsert":
        postgresql_database.execute(f"ALTER TABLE {sink.table} ADD PRIMARY KEY (n)")
    produce(sink.topic, [(0, b"1", '{"n": 1, "pad": "old"}'), (0, b"1", '{"n": 1, "pad": "new"}')])
    assert not [note for note in sink.run().notes if note.startswith("This replay")]
    replay = Replay(f"{sink.name}-again", "earliest", {f"{sink.topic}-0": 1}, allow_same_place=True)
    report = run_connector(replay_spec(sink.spec(), replay), sink.events.append, sink.engine)
    assert (report.status, report.records) == ("done", 1)
    found = postgresql_database.rows(f"SELECT pad FROM {sink.table} ORDER BY pad")
    assert found == ([("old",)] if mode == "upsert" else [("new",), ("old",), ("old",)])
    notes = [note for note in report.notes if note.startswith("This replay writes older records again")]
    assert len(notes) == (mode == "upsert")


def test_replay_into_another_table_is_one_into_another_place(kafka, sqlite_database, make_topic, produce):
    """It was refused, although the page recommends it: only keys of other sinks counted as a place."""
    sink = jdbc_sink(kafka, sqlite_database, make_topic())
    produce(sink.topic, [(0, None, f'{{"n": {n}}}') for n in range(5)])
    sink.run()
    sqlite_database.execute(f"CREATE TABLE again AS SELECT * FROM {sink.table} WHERE n < 0")
    places = {f"{sink.topic}-0": 1}, {f"{sink.topic}-0": 4}
    replay = Replay(f"{sink.name}-again", *places, into={"table.name.format": "again"})
    report = run_connector(replay_spec(sink.spec(), replay), sink.events.append, sink.engine)
    assert (report.status, report.records) == ("done", 3)
    assert sqlite_database.rows("SELECT n FROM again ORDER BY n") == [(1,), (2,), (3,)]
    assert len(sink.values()) == 5

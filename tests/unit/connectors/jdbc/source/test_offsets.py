"""Offsets and source partitions in Confluent's form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.connectors.jdbc.source.connector import JdbcSourceConnector
from airflow_connect.connectors.jdbc.source.offsets.lookback import SentRows
from airflow_connect.connectors.jdbc.source.offsets.positions import Position, committed_position, known_partitions
from airflow_connect.connectors.jdbc.source.settings.config import JdbcSourceConfig
from airflow_connect.databases.identifiers import TableId
from airflow_connect.errors import ConfigError, OffsetError
from tests.support.copies.jdbc_source import Copies
from tests.support.servers.databases import sqlite_in
from tests.support.session.searching import examples, settings


@settings(max_examples=examples(200))
@given(st.none() | st.integers(-(2**63), 2**63 - 1), st.none() | st.integers(-(10**15), 4 * 10**15))
def test_position_comes_back(number: int | None, micros: int | None) -> None:
    position = Position(number, micros)
    offset = position.offset()
    assert Position.of(offset) == position
    if micros is not None:
        # java.sql.Timestamp: milliseconds, and the nanoseconds of the second.
        assert offset["timestamp"] == micros // 1000 and 0 <= offset["timestamp_nanos"] < 1_000_000_000


def test_offset_of_kafka_connect_is_read() -> None:
    written = {"timestamp_nanos": 123456000, "incrementing": 41, "timestamp": 1767268800123}
    assert Position.of(written) == Position(41, 1_767_268_800_123_456)
    assert Position.of({"timestamp": 1767268800123}) == Position(None, 1_767_268_800_123_000)
    assert Position.of(None) == Position.of({}) == Position()


@pytest.mark.parametrize("value", ["41", 1.5, True])
def test_offset_that_is_no_number_is_refused(value: Any) -> None:
    with pytest.raises(OffsetError, match="the table t has incrementing="):
        Position.of({"incrementing": value}, "the table t")


@pytest.mark.parametrize(
    ("table", "names"),
    [
        (TableId("shop", "public", "orders"), ["shop.public.orders", "public.orders"]),
        (TableId("shop", "", "orders"), ["shop.orders"]),
        (TableId("", "", "orders"), ["orders"]),
    ],
)
def test_source_partitions_of_a_table(table: TableId, names: list[str]) -> None:
    expected = [{"protocol": "1", "table": name} for name in names]
    assert known_partitions(table) == [*expected, {"table": "orders"}]


def test_table_keeps_the_form_of_its_name() -> None:
    table, reader = TableId("shop", "public", "orders"), Copies({})
    assert committed_position(table, reader) == ({"protocol": "1", "table": "shop.public.orders"}, None)
    reader.commit({"protocol": "1", "table": "public.orders"}, {"incrementing": 4})
    assert committed_position(table, reader) == ({"protocol": "1", "table": "public.orders"}, {"incrementing": 4})


def test_offsets_that_are_set_are_checked() -> None:
    connector = JdbcSourceConnector()
    good = {(("protocol", "1"), ("table", "t")): {"incrementing": 4}, (("query", "query"),): None}
    assert connector.alter_offsets({}, good)
    with pytest.raises(ConfigError, match="names a table or the query"):
        connector.alter_offsets({}, {(("file", "x"),): {"incrementing": 4}})
    with pytest.raises(ConfigError, match="must be a whole number"):
        connector.alter_offsets({}, {(("table", "t"),): {"timestamp": "today"}})


@pytest.mark.parametrize("partition", [{"protocol": 1, "table": "t"}, {"protocol": "2", "table": "t"}, {"query": "x"}])
def test_source_partition_that_no_run_reads_is_refused(partition: dict[str, object]) -> None:
    """It had no effect, and no run named it."""
    with pytest.raises(ConfigError, match=r"No run reads a source partition whose (protocol|query) is not"):
        JdbcSourceConnector().alter_offsets({}, {tuple(sorted(partition.items())): {"incrementing": 4}})
    assert JdbcSourceConnector().alter_offsets({}, {tuple(sorted(partition.items())): None})


FULL, SHORT, OLDEST = {"protocol": "1", "table": "t.public.o"}, {"protocol": "1", "table": "public.o"}, {"table": "o"}


def test_offset_under_a_form_of_the_name_that_does_not_count_is_refused() -> None:
    check, known = JdbcSourceConnector().check_altered, [(FULL, {"incrementing": 3})]
    for hidden in (SHORT, OLDEST):
        with pytest.raises(ConfigError, match=r"would have no effect: that of .*t\.public\.o"):
            check([(hidden, {"incrementing": 0})], known)
        check([(hidden, {"incrementing": 0})], [])
        check([(hidden, {"incrementing": 0}), (FULL, None)], known)
        check([(hidden, {"incrementing": 0}), (FULL, {"incrementing": 3})], known)
        check([(hidden, None), (FULL, {"incrementing": 1})], known)
    check([({"table": "oo"}, {"incrementing": 0})], known)


def test_deletion_that_lets_an_older_form_of_the_name_count_is_refused() -> None:
    check = JdbcSourceConnector().check_altered
    known = [(FULL, {"incrementing": 5}), (OLDEST, {"incrementing": 2})]
    with pytest.raises(ConfigError, match=r'would count: \{"table": "o"\}'):
        check([(FULL, None)], known)
    check([(FULL, None), (OLDEST, None)], known)
    check([(OLDEST, None)], known)
    check([(FULL, None)], known[:1])
    check([({"protocol": "1", "table": "t.o"}, None)], [({"protocol": "1", "table": "t.o"}, {"incrementing": 1})])


@settings(max_examples=examples(100))
@given(
    st.lists(st.tuples(st.integers(-100, 200), st.integers(0, 30)), max_size=60),
    st.integers(1, 100),
    st.integers(1, 20),
)
def test_rows_of_the_window_are_recognised_and_nothing_else(
    rows: list[tuple[int, int]], window: int, limit: int
) -> None:
    """Against a plain model: what is in the window now, and was sent, is not sent again.

    A table has one row at a time: a new one forgets those with its time, which it has replaced.
    """
    position, sent = Position(), set()
    for at, number in rows:
        look = SentRows(position, window, limit)
        if look.begin_us is not None and at <= look.begin_us:
            continue  # the statement does not return it
        row = (number, at)
        assert look.is_new(row, at) == (row not in sent)
        sent = {one for one in sent if one == row or one[1] != at} | {row}
        before = at if position.timestamp_us is None else position.timestamp_us
        position = look.position(at)
        assert position.timestamp_us == max(before, at)
        assert len(position.sent) <= limit * 32


def test_damaged_list_of_rows_is_refused() -> None:
    with pytest.raises(OffsetError, match="damaged"):
        SentRows(Position(timestamp_us=1, sent="???", sent_from_us=0), 10, 10)


@pytest.mark.parametrize(
    "offset",
    [
        {"timestamp": 1_767_268_800_123_456},
        {"timestamp": -(10**18)},
        {"timestamp": 0, "timestamp_nanos": 10**9},
        {"timestamp": 0, "timestamp_nanos": -1},
    ],
    ids=["microseconds", "too early", "too many nanoseconds", "negative nanoseconds"],
)
def test_offset_that_is_no_time_is_refused_when_it_is_set_and_when_it_is_read(offset: dict[str, int]) -> None:
    with pytest.raises(OffsetError, match="which is not a time of the years 1 to 9999: timestamp is in milliseconds"):
        Position.of(offset, "the table t")
    with pytest.raises(OffsetError, match="not a time of the years 1 to 9999"):
        JdbcSourceConnector().alter_offsets({}, {(("protocol", "1"), ("table", "t")): offset})


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "UTC"])
def test_first_and_last_moment_of_a_zone_are_positions(tmp_path: Path, zone: str) -> None:
    """0001-01-01 is what .NET writes for no time; in UTC it is another year in most zones."""
    database = sqlite_in(tmp_path)
    database.execute(
        "CREATE TABLE t (id int, changed timestamp NOT NULL)",
        "INSERT INTO t VALUES (1, '0001-01-01 00:00:00'), (2, '0001-01-01 00:00:00'), (3, '0001-01-02 00:00:00')",
    )
    config = {
        "connection.url": database.jdbc_url, "mode": "timestamp", "timestamp.column.name": "changed",
        "db.timezone": zone, "batch.max.rows": "1",
    }  # fmt: skip
    runs = Copies(config)
    assert runs.run(batches=1).ids() == [1, 2]
    assert runs.run().ids() == [3] and runs.run().records == []


@pytest.mark.parametrize(
    ("key", "value"), [("timestamp.initial", "1767268800123456"), ("timestamp.delay.interval.ms", "99999999999999999")]
)
def test_times_out_of_range_are_refused(key: str, value: str) -> None:
    config = {
        "connection.url": "jdbc:sqlite:/x", "topic.prefix": "p", "mode": "timestamp", "timestamp.column.name": "c",
        key: value,
    }  # fmt: skip
    with pytest.raises(ConfigError, match=key):
        JdbcSourceConfig.from_config(config)

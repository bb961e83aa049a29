"""Every Connect type with its edge values, each key and each form of document: actions of columns are those of records.

Where columns have no form, `column_actions` returns None, and the records are put one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import product
from typing import Any, NamedTuple

import pyarrow as pa

from airflow_connect.api import schema as s
from airflow_connect.api.columns import RecordColumns, ValueColumns
from airflow_connect.api.record import SinkRecord
from airflow_connect.api.schema import Schema, Type
from airflow_connect.connectors.search.columns import column_actions
from airflow_connect.connectors.search.config import DocumentConfig
from airflow_connect.connectors.search.documents import DocumentMaker
from airflow_connect.converters.json.documents import schemaless_lines
from airflow_connect.errors import ConnectError
from tests.support.session.many_cases import check_each
from tests.support.values.columns import arrow_type, records_of, to_columns

NAN, INF = float("nan"), float("inf")
TYPES: list[tuple[Schema, Sequence[Any]]] = [
    (s.INT8, [-128, 127]),
    (s.INT16, [-32768]),
    (s.INT32, [-(2**31), 2**31 - 1]),
    (s.INT64, [-(2**63), 2**63 - 1]),
    (s.FLOAT32, [0.10000000149011612, -0.0, 1e7, 9999999.0, 3.4028234663852886e38, 1.401298464324817e-45]),
    (s.FLOAT64, [0.1, -0.0, 1e7, 9999999.999999998, 0.001, 0.000999, 1e21, 1e22, 5e-324, 1.7976931348623157e308]),
    (s.FLOAT64, [NAN]),
    (s.FLOAT32, [-INF]),
    (s.BOOLEAN, [True, False]),
    (s.STRING, ["", '"\\/', "\x00\x01\x1f\x7f\x80\x9f", "\u2028\u2029\ufeff\uffff", "é🎉", "\r\n\t\b\f", "a" * 70_000]),
    (s.STRING, ["@timestamp"]),
    (s.BYTES, [b"", b"\x00\xff", b"abc"]),
    (s.decimal(2), [Decimal("1.20"), Decimal("-0.01"), Decimal("0.00")]),
    (s.decimal(0), [Decimal(10**40)]),
    (s.decimal(-2), [Decimal("1E+2")]),
    (s.date(), [-719162, 2932896]),
    (s.time(), [0, 86_399_999]),
    (s.time(), [86_400_000]),
    (s.time(), [-1]),
    (s.timestamp(), [-1, 2**62]),
    (s.array(s.INT32), [[], [1, 2]]),
    (s.array(s.OPTIONAL_STRING), [[None, "a\n"]]),
    (s.array(s.FLOAT64), [[NAN, 1.0, 1e7]]),
    (s.array(s.array(s.BYTES)), [[[b"a"], []]]),
    (s.array(s.decimal(1)), [[Decimal("1.5")]]),
    (s.array(s.struct(("@timestamp", s.INT64))), [[{"@timestamp": 1}]]),
    (s.map_of(s.STRING, s.INT32), [{}, {"a": 1, "b\n": 2}]),
    (s.map_of(s.INT32, s.STRING), [{1: "x"}]),
    (s.map_of(s.BOOLEAN, s.STRING), [{True: "x"}]),
    (s.map_of(s.STRING, s.map_of(s.INT64, s.OPTIONAL_STRING)), [{"k": {1: None}}]),
    (s.map_of(s.STRING, s.decimal(2)), [{"k": Decimal("1.00")}]),
    (s.struct(("a", s.INT32), ("b", s.OPTIONAL_STRING)), [{"a": 1, "b": None}]),
    (s.struct(("m", s.array(s.struct(("x", s.date()))))), [{"m": [{"x": 3}]}]),
    (Schema(Type.INT32, default=7), [1, None]),
    (Schema(Type.STRING, True, default="d\n"), [None, "x"]),
    (Schema(Type.FLOAT64, True, default=1.0), [None, 2.5]),
    (Schema(Type.BYTES, True, default=b"a"), [None]),
]
KEYS: list[tuple[Schema, Any]] = [
    *((s.STRING, text) for text in ("a", 'a"\\\n\x7f', "é", "", "x" * 512, "x" * 513)),
    (s.INT8, -128),
    (s.INT64, 2**63 - 1),
    (s.date(), 3),
    (s.timestamp(), -1),
    (s.FLOAT64, 1.0),
    (s.BOOLEAN, True),
    (s.BYTES, b"k"),
    (s.OPTIONAL_STRING, None),
    (Schema(Type.INT32, True, default=5), None),
]
DOCUMENTS: list[tuple[Schema, Sequence[Any]]] = [
    (s.struct(), [{}]),
    (s.map_of(s.STRING, s.INT32), [{"a": 1}]),
    (s.struct(("@timestamp", s.INT64)), [{"@timestamp": 5}]),
    (s.struct(("a", s.struct(("@timestamp", s.INT64)))), [{"a": {"@timestamp": 5}}]),
    (replace(s.struct(("a", s.INT32)), optional=True), [None, {"a": 1}]),
    (s.STRING, ["{}"]),
]
WITHOUT_SCHEMA: list[Any] = [
    {"a": [1.0, 1e22, -0.0, "\x7f\u2028", None]}, {"a": 2**70}, {"a": NAN}, {"@timestamp": 3}, {"a": "@timestamp"}, {},
    {"": {"b": Decimal("1.10")}}, {"a": "\ud83d"}, [1], "text", 1, True,
]  # fmt: skip
PLAIN = s.struct(("w", s.INT32))


class Case(NamedTuple):
    """Records and the same in columns."""

    name: str
    records: Sequence[SinkRecord]
    batch: RecordColumns


def keyed(
    name: str, schema: Schema, values: Sequence[Any], key: tuple[Schema, Any] = (s.STRING, "k"), **more: Any
) -> Case:
    key_schema, one = key
    records = [r.changed(key=one, key_schema=key_schema, **more) for r in records_of(schema, values)]
    column = ValueColumns(key_schema, pa.array([one] * len(records), arrow_type(key_schema)))
    return Case(f"{name} {str(values)[:60]}", records, to_columns(records).changed(key=column))


def cases() -> Iterator[Case]:
    for schema, values in TYPES:
        named = f"{schema.type.name} {schema.name}"
        yield keyed(named, s.struct(('v"\n', schema), ("w", s.INT32)), [{'v"\n': value, "w": 1} for value in values])
        optional = s.struct(("v", replace(schema, optional=True)))
        yield keyed(f"optional {named}", optional, [{"v": value} for value in [*values, None]])
    for key in KEYS:
        yield keyed(f"key {str(key)[:60]}", PLAIN, [{"w": 1}, {"w": 2}], key)
    for schema, values in DOCUMENTS:
        yield keyed("document", schema, values)
    for timestamp in (None, 0, -5, 2**62):
        yield keyed(f"timestamp {timestamp}", PLAIN, [{"w": 1}], timestamp=timestamp)
    for value in WITHOUT_SCHEMA:
        case = keyed(f"no schema {value!r}", PLAIN, [{"w": 1}])
        records = [record.changed(value_schema=None, value=value) for record in case.records]
        try:
            lines = pa.array([schemaless_lines([value])], pa.binary())
        except ConnectError:
            continue
        yield case._replace(records=records, batch=case.batch.changed(value=ValueColumns(None, lines)))


def lines_of(maker: DocumentMaker, record: SinkRecord) -> bytes | str | None:
    try:
        action = maker.action(record)
    except ConnectError as error:
        return error.message
    return None if action is None else action.lines


def test_actions_of_columns_are_those_of_records() -> None:
    made: set[str] = set()
    stream = {"data.stream.type": "logs", "data.stream.dataset": "all"}

    def check(pair: tuple[dict[str, str], Case]) -> None:
        changes, case = pair
        raw = {"name": "s", "connector.class": "ElasticsearchSink", "topics": "orders", "connection.url": "h:1"}
        config = DocumentConfig.from_config({**raw, **changes})
        actions = column_actions(config, case.batch)
        if actions is None:
            return
        made.add(case.name)
        maker = DocumentMaker(config)
        assert actions.to_pylist() == [lines_of(maker, record) for record in case.records]
        assert not list(maker.take_notes())

    names = ("key.ignore", "schema.ignore", "compact.map.entries")
    flags = [dict(zip(names, values, strict=True)) for values in product(("true", "false"), repeat=3)]
    configs = [{**one, **more} for one in flags for more in ({}, stream)]
    check_each(list(product(configs, cases())), lambda pair: f"{pair[1].name} {pair[0]}", check)
    assert len(made) > 60, "columns have no form"

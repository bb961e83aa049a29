"""Values in Arrow become the values of Connect again, where a batch of a source has to go record by record."""

from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace

import pyarrow as pa

from airflow_connect.api import schema
from airflow_connect.api.schema import Schema, Type
from airflow_connect.api.source import SourceColumns
from airflow_connect.converters.json_converter import JsonConverter
from airflow_connect.converters.string_converter import StringConverter
from airflow_connect.runtime.executor.source_columns import SourceColumnWriter, python_values, records_of

STRING = Schema(Type.STRING)


def unscaled(number: int) -> bytes:
    return number.to_bytes(4, "big", signed=True)


def test_decimals_are_found_wherever_they_stand():
    money = schema.decimal(2, optional=True)
    nested = schema.struct(("m", money), ("list", schema.array(money)), ("map", schema.map_of(STRING, money)))
    kind = pa.struct([("m", pa.binary()), ("list", pa.list_(pa.binary())), ("map", pa.map_(pa.string(), pa.binary()))])
    values = pa.array(
        [
            {"m": unscaled(-125), "list": [unscaled(1), None], "map": [("a", unscaled(99))]},
            {"m": None, "list": [], "map": []},
            None,
        ],
        kind,
    )

    assert python_values(nested, values) == [
        {"m": Decimal("-1.25"), "list": [Decimal("0.01"), None], "map": {"a": Decimal("0.99")}},
        {"m": None, "list": [], "map": {}},
        None,
    ]


def test_schemaless_values_are_json_documents_or_text():
    assert python_values(None, pa.array([b'{"a": [1, null]}\n', b'"x"'])) == [{"a": [1, None]}, "x"]
    assert python_values(None, pa.array(["x", None])) == ["x", None]


def test_records_have_what_the_columns_say():
    columns = SourceColumns(
        "t", {"f": "x"}, {"n": 2}, STRING, pa.array(["k1", None]), STRING, pa.array(["a", "b"]), pa.array([5, 6])
    )
    first, second = records_of(columns)

    assert (first.topic, first.key, first.value, first.timestamp) == ("t", "k1", "a", 5)
    assert (second.key, second.value, second.source_partition, second.source_offset) == (
        None,
        "b",
        {"f": "x"},
        {"n": 2},
    )
    (plain,) = records_of(SourceColumns("t", {}, {}, None, None, STRING, pa.array(["a"])))
    assert (plain.key_schema, plain.key, plain.timestamp) == (None, None, None)


class Sent:
    """A delivery that keeps what it got in columns."""

    def __init__(self) -> None:
        self.messages: list[tuple[object, object]] = []

    def send_columns(self, topic: str, keys: pa.Array | None, values: pa.Array) -> int:
        names = [None] * len(values) if keys is None else keys.to_pylist()
        self.messages += zip(names, values.to_pylist(), strict=True)
        return values.nbytes


def column_writer(key: object, value: object, stages: tuple[object, ...] = ()) -> SourceColumnWriter:
    return SourceColumnWriter(SimpleNamespace(chain=SimpleNamespace(stages=stages), key=key, value=value))


def columns_of(values: pa.Array, value_schema: Schema | None = STRING, **more: object) -> SourceColumns:
    return SourceColumns("t", {}, {}, None, None, value_schema, values)._replace(**more)


def test_columns_whose_time_is_the_clocks_need_no_record_objects():
    stamps, sent = pa.array([5, 5]), Sent()
    lines = columns_of(pa.array(["a", "b"]), timestamps=stamps)
    writer = column_writer(StringConverter(), StringConverter())

    assert writer.send(lines, sent) is None and sent.messages == []
    assert writer.send(lines._replace(timestamps_are_now=True), sent)
    assert sent.messages == [(None, "a"), (None, "b")]
    transformed = column_writer(StringConverter(), StringConverter(), stages=(object(),))
    assert transformed.send(lines._replace(timestamps_are_now=True), sent) is None


def test_structs_are_sent_as_their_converter_writes_them():
    point = schema.struct(("x", Schema(Type.INT32)), ("s", STRING))
    rows = [{"x": 1, "s": "a"}, {"x": 2, "s": 'b"'}]
    values = pa.array(rows, pa.struct([("x", pa.int32()), ("s", pa.string())]))
    converter, sent = JsonConverter(), Sent()
    keyed = columns_of(values, point, keys=pa.array(["k", None]), key_schema=Schema(Type.STRING, optional=True))

    assert column_writer(StringConverter(), converter).send(keyed, sent)

    wanted = [(converter.from_connect("t", point, row) or b"").decode() for row in rows]
    assert sent.messages == [("k", wanted[0]), (None, wanted[1])]
    assert column_writer(StringConverter(), StringConverter()).send(keyed, sent) is None
    assert column_writer(object(), converter).send(columns_of(values, point), sent) is None

"""AvroFormat: files that fastavro and polars read back to the same Connect values."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import fastavro
import polars
import pytest
from fastavro.read import LOGICAL_READERS
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.api import schema as s
from airflow_connect.api.schema import Schema, Type
from airflow_connect.errors import ConfigError, DataError, SchemaError
from airflow_connect.formats.avro import BLOCK_BYTES, AvroFormat
from airflow_connect.formats.format import Format
from tests.support.session.searching import examples
from tests.unit.formats.connect_values import Sink, schema_and_values

EVENT = s.struct(
    ("id", s.INT64),
    ("city", s.OPTIONAL_STRING),
    ("at", s.timestamp()),
    ("price", s.decimal(2)),
    name="shop.v1.Event",
)


def _written(schema: Schema, values: list[Any], **options: Any) -> bytes:
    sink = Sink()
    encoder = AvroFormat(**options).open(sink, schema)
    encoder.append(values)
    encoder.finish()
    return sink.getvalue()


def _file_schema(data: bytes) -> Any:
    return json.loads(fastavro.reader(io.BytesIO(data)).metadata["avro.schema"])


def _expected(schema: Schema, value: Any) -> Any:
    """What a reader without logical types must give for a Connect value."""
    if value is None:
        return None if schema.default is None else _expected(schema, schema.default)
    if schema.name == s.DECIMAL:
        sign, digits, _ = value.as_tuple()  # no arithmetic: the default context rounds to 28 digits
        return (-1 if sign else 1) * int("".join(map(str, digits)))
    if schema.type is Type.STRUCT:
        return {f.name: _expected(f.schema, value.get(f.name)) for f in schema.fields}
    if schema.type is Type.ARRAY:
        assert schema.value_schema
        return [_expected(schema.value_schema, v) for v in value]
    if schema.type is Type.MAP:
        assert schema.value_schema and schema.key_schema
        if schema.key_schema.type is Type.STRING and not schema.key_schema.optional:
            return {k: _expected(schema.value_schema, v) for k, v in value.items()}
        return [{"key": k, "value": _expected(schema.value_schema, v)} for k, v in value.items()]
    return value


@pytest.fixture
def raw_logical_types(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read logical types as the numbers that are in the file: Python's own types have a smaller range."""
    for name in ("int-date", "int-time-millis", "long-timestamp-millis"):
        monkeypatch.setitem(LOGICAL_READERS, name, lambda data, *_: data)
    as_number = lambda data, *_: int.from_bytes(data, "big", signed=True)  # noqa: E731
    monkeypatch.setitem(LOGICAL_READERS, "bytes-decimal", as_number)


@pytest.mark.usefixtures("raw_logical_types")
@settings(deadline=None, max_examples=examples(150))
@given(schema_and_values(), st.sampled_from(["null", "deflate", "bzip2"]), st.booleans())
def test_avro_file_of_any_schema_reads_back_equal(
    made: tuple[Schema, list[Any]], codec: str, connect_meta_data: bool
) -> None:
    schema, values = made
    data = _written(schema, values, codec=codec, connect_meta_data=connect_meta_data)
    assert list(fastavro.reader(io.BytesIO(data))) == [_expected(schema, v) for v in values]


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy"])
def test_avro_codec_is_read_by_another_library(codec: str) -> None:
    schema = s.struct(("id", s.INT64), ("city", s.OPTIONAL_STRING), name="shop.Event")
    rows = [{"id": n, "city": None if n % 3 else f"city {n}"} for n in range(20_000)]
    frame = polars.read_avro(io.BytesIO(_written(schema, rows, codec=codec)))
    assert frame.to_dicts() == rows


def test_avro_many_small_appends_with_spilling_make_blocks_of_64_kb() -> None:
    schema = s.struct(("id", s.INT32), ("text", s.STRING))
    rows = [{"id": n, "text": f"text {n}" * 5} for n in range(10_000)]
    sink = Sink()
    encoder = AvroFormat().open(sink, schema)
    for number, row in enumerate(rows):
        encoder.append([row])
        assert encoder.buffered_bytes < 2 * BLOCK_BYTES
        if number % 700 == 0:
            encoder.spill()
            assert encoder.buffered_bytes == 0
    encoder.finish()
    blocks = list(fastavro.block_reader(io.BytesIO(sink.getvalue())))
    assert [row for block in blocks for row in block] == rows
    assert all(BLOCK_BYTES <= len(block.bytes_.getvalue()) < 2 * BLOCK_BYTES for block in blocks[:-1])


def test_avro_file_without_records_is_a_header() -> None:
    assert list(fastavro.reader(io.BytesIO(_written(EVENT, [])))) == []


def test_avro_schema_of_a_struct_has_confluents_names_and_properties() -> None:
    assert _file_schema(_written(EVENT, [])) == {
        "type": "record",
        "name": "Event",
        "namespace": "shop.v1",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "city", "type": ["null", "string"], "default": None},
            {
                "name": "at",
                "type": {
                    "type": "long",
                    "logicalType": "timestamp-millis",
                    "connect.version": 1,
                    "connect.name": "org.apache.kafka.connect.data.Timestamp",
                },
            },
            {
                "name": "price",
                "type": {
                    "type": "bytes",
                    "logicalType": "decimal",
                    "scale": 2,
                    "precision": 64,
                    "connect.version": 1,
                    "connect.parameters": {"scale": "2"},
                    "connect.name": "org.apache.kafka.connect.data.Decimal",
                },
            },
        ],
        "connect.name": "shop.v1.Event",
    }


def test_avro_schema_without_meta_data_has_no_connect_properties() -> None:
    data = _written(s.struct(("a", s.INT8), ("d", s.date())), [], connect_meta_data=False)
    assert "connect" not in json.dumps(_file_schema(data)["fields"])
    assert _file_schema(data)["fields"][1]["type"] == {"type": "int", "logicalType": "date"}


def test_avro_anonymous_structs_get_numbered_default_names_and_equal_ones_are_shared() -> None:
    point, other = s.struct(("x", s.INT8)), s.struct(("y", s.INT16))
    schema = s.struct(("a", point), ("b", other), ("c", s.array(point)), ("d", point))
    made = _file_schema(_written(schema, [{"a": {"x": 1}, "b": {"y": 2}, "c": [{"x": 3}], "d": {"x": 4}}]))
    types = [field["type"] for field in made["fields"]]
    assert (made["namespace"], made["name"]) == ("io.confluent.connect.avro", "ConnectDefault")
    assert [types[0]["name"], types[1]["name"]] == ["ConnectDefault2", "ConnectDefault3"]
    assert types[2]["items"] == types[3] == "io.confluent.connect.avro.ConnectDefault2"
    assert types[0]["fields"][0]["type"] == {"type": "int", "connect.type": "int8"}


def test_avro_maps_without_string_keys_are_arrays_of_map_entries() -> None:
    schema = s.struct(("one", s.map_of(s.INT32, s.STRING)), ("two", s.map_of(s.INT64, s.STRING)))
    data = _written(schema, [{"one": {1: "a"}, "two": {2: "b"}}])
    names = [field["type"]["items"]["name"] for field in _file_schema(data)["fields"]]
    assert names[0] == "MapEntry"
    assert len(set(names)) == 2
    assert next(fastavro.reader(io.BytesIO(data))) == {
        "one": [{"key": 1, "value": "a"}],
        "two": [{"key": 2, "value": "b"}],
    }


def test_avro_optional_map_keys_are_a_map_only_when_allowed() -> None:
    schema = s.map_of(s.OPTIONAL_STRING, s.INT8)
    assert _file_schema(_written(schema, [{"a": 1}]))["type"] == "array"
    assert _file_schema(_written(schema, [{"a": 1}], allow_optional_map_keys=True))["type"] == "map"


def test_avro_enum_parameters_make_an_enum_only_with_enhanced_schema() -> None:
    prefix = "io.confluent.connect.avro.Enum"
    colour = Schema(Type.STRING, parameters={prefix: "shop.Colour", f"{prefix}.RED": "RED", f"{prefix}.BLUE": "BLUE"})
    schema = s.struct(("colour", colour))
    data = _written(schema, [{"colour": "BLUE"}])
    made = _file_schema(data)["fields"][0]["type"]
    assert (made["type"], made["name"], made["symbols"]) == ("enum", "Colour", ["RED", "BLUE"])
    assert list(fastavro.reader(io.BytesIO(data))) == [{"colour": "BLUE"}]
    plain = _file_schema(_written(schema, [], enhanced_schema=False))
    assert plain["fields"][0]["type"]["type"] == "string"


def test_avro_default_is_written_for_null_and_read_by_newer_readers() -> None:
    limit = Schema(Type.INT32, optional=True, default=7)
    schema = s.struct(("id", s.INT8), ("limit", limit), name="Row")
    data = _written(schema, [{"id": 1, "limit": None}, {"id": 2, "limit": 3}, {"id": 3}])
    assert [row["limit"] for row in fastavro.reader(io.BytesIO(data))] == [7, 3, 7]
    assert _file_schema(data)["fields"][1] == {
        "name": "limit",
        "type": [{"type": "int", "connect.default": 7}, "null"],
        "default": 7,
    }
    older = _written(s.struct(("id", s.INT8), name="Row"), [{"id": 1}])
    newer_schema = fastavro.parse_schema(_file_schema(data))
    assert list(fastavro.reader(io.BytesIO(older), reader_schema=newer_schema)) == [{"id": 1, "limit": 7}]


@pytest.mark.parametrize(
    ("number", "scale", "expected"),
    [
        ("0", 0, b"\0"),
        ("1.27", 2, b"\x7f"),
        ("1.28", 2, b"\0\x80"),
        ("-1.28", 2, b"\x80"),
        ("-1.29", 2, b"\xff\x7f"),
    ],
)
def test_avro_decimal_is_javas_shortest_twos_complement(number: str, scale: int, expected: bytes) -> None:
    data = _written(s.decimal(scale), [Decimal(number)], connect_meta_data=False)
    block = next(iter(fastavro.block_reader(io.BytesIO(data))))
    assert block.bytes_.getvalue() == bytes([2 * len(expected)]) + expected


def test_avro_decimal_of_impossible_scale_is_bytes_without_logical_type() -> None:
    made = _file_schema(_written(s.decimal(70), [Decimal(1).scaleb(-70)]))
    assert "logicalType" not in made
    assert made["scale"] == 70


def _price(precision: str) -> Schema:
    price = s.decimal(2)
    return s.struct(("price", replace(price, parameters={**price.parameters, "connect.decimal.precision": precision})))


@pytest.mark.parametrize("number", ["1000.00", "-1000.00", "1E+3", "99999.99"])
def test_avro_decimal_with_more_digits_than_its_precision_is_refused(number: str) -> None:
    encoder = AvroFormat().open(Sink(), _price("5"))
    encoder.append([{"price": Decimal("-999.99")}])
    with pytest.raises(DataError, match="field price has more digits than the precision 5 allows"):
        encoder.append([{"price": Decimal(number)}])


def test_avro_decimal_without_precision_has_at_most_64_digits() -> None:
    encoder = AvroFormat().open(Sink(), s.struct(("price", s.decimal(2))))
    encoder.append([{"price": Decimal("9" * 62 + ".99")}])
    with pytest.raises(DataError, match="field price has more digits than the precision 64 allows"):
        encoder.append([{"price": Decimal("1" + "0" * 62 + ".00")}])


def test_avro_fixed_parameter_makes_fixed_bytes() -> None:
    fixed = Schema(Type.BYTES, name="shop.Hash", parameters={"connect.fixed.size": "4"})
    data = _written(s.struct(("hash", fixed)), [{"hash": b"abcd"}])
    assert list(fastavro.reader(io.BytesIO(data))) == [{"hash": b"abcd"}]
    assert _file_schema(data)["fields"][0]["type"]["type"] == "fixed"


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        (s.struct(("my-field", s.INT8)), "my-field"),
        (s.struct(("inner", s.struct(("1st", s.INT8)))), "inner.1st"),
        (s.struct(("a", s.INT8), name="my record"), "my record"),
    ],
    ids=["field", "nested field", "record"],
)
def test_avro_invalid_name_says_which(schema: Schema, named: str) -> None:
    with pytest.raises(SchemaError, match="Avro does not allow the name") as raised:
        AvroFormat().open(Sink(), schema)
    assert named in raised.value.message


def test_avro_one_name_for_two_structs_is_an_error() -> None:
    one, two = s.struct(("x", s.INT8), name="P"), s.struct(("y", s.INT8), name="P")
    with pytest.raises(SchemaError, match=r"P stands for two different schemas .* at b"):
        AvroFormat().open(Sink(), s.struct(("a", one), ("b", two)))


def test_avro_schemaless_says_how_to_give_a_schema() -> None:
    with pytest.raises(SchemaError, match="AvroFormat needs values with a schema") as raised:
        AvroFormat().open(Sink(), None)
    assert "value.converter.schemas.enable=true" in raised.value.suggestion
    assert "value.converter.schema.content" in raised.value.suggestion


def test_avro_wrong_value_is_named_without_its_content_and_leaves_other_files_alone() -> None:
    made: Format = AvroFormat()
    schema = s.struct(("id", s.INT32), ("city", s.STRING))
    good_sink = Sink()
    good, bad = made.open(good_sink, schema), made.open(Sink(), schema)
    good.append([{"id": 1, "city": "Rome"}])
    with pytest.raises(DataError, match="field city should be STRING, but is of the Python type int") as raised:
        bad.append([{"id": 2, "city": "Oslo"}, {"id": 3, "city": 4711}])
    assert "4711" not in str(raised.value)
    good.append([{"id": 5, "city": "Bonn"}])
    good.finish()
    rows = list(fastavro.reader(io.BytesIO(good_sink.getvalue())))
    assert rows == [{"id": 1, "city": "Rome"}, {"id": 5, "city": "Bonn"}]


def test_avro_unknown_codec_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="'lzma' does not exist") as raised:
        AvroFormat(codec="lzma")
    assert raised.value.config_path == "avro.codec"

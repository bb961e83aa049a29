"""Messages of JsonSchemaConverter: columns are what is read record by record, or there are none."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from airflow_connect.api.schema import Schema
from airflow_connect.errors import DataError, SchemaError, UnavailableError
from airflow_connect.registry.client import AVRO, JSON, SchemaText
from airflow_connect.registry.converters.json_schema_converter import JsonSchemaConverter
from airflow_connect.runtime.executor.sink.column_path import column_path
from tests.support.session.searching import examples
from tests.unit.converters.json.test_envelope_columns import numbers, quoted
from tests.unit.registry.converters.readers import opened, reads_in_columns

CONNECT = "org.apache.kafka.connect.data"
NULL = {"type": "null"}
INNER = {"n": {"type": "integer"}}
PROPERTIES: dict[str, Any] = {
    "id": {"type": "integer"},
    "name": {"oneOf": [NULL, {"type": "string"}]},
    "kind": {"enum": ["a", "b"], "default": "b"},
    "amount": {"type": ["number", "null"], "default": 1.5},
    "ratio": {"oneOf": [{"type": "number", "connect.type": "float32"}, NULL]},
    "small": {"oneOf": [NULL, {"type": "integer", "connect.type": "int8"}]},
    "data": {"oneOf": [NULL, {"type": "string", "connect.type": "bytes"}]},
    "price": {"oneOf": [NULL, {"type": "number", "title": f"{CONNECT}.Decimal", "connect.type": "bytes"}]},
    "time": {"oneOf": [NULL, {"type": "integer", "title": f"{CONNECT}.Time", "connect.type": "int32"}]},
    "flag": {"oneOf": [NULL, {"type": "boolean"}]},
    "inner": {"oneOf": [NULL, {"type": "object", "properties": {"n": {"type": "number"}, "m": {"type": "string"}}}]},
    "list": {"oneOf": [NULL, {"type": "array", "items": {"oneOf": [NULL, {"type": "string"}]}}]},
    "objects": {"oneOf": [NULL, {"type": "array", "items": {"type": "object", "properties": INNER}}]},
}  # fmt: skip
PROPERTIES["price"]["oneOf"][1]["connect.parameters"] = {"scale": "2"}
ROW = {"type": "object", "title": "row", "properties": PROPERTIES, "required": ["id"]}
UNION = {"oneOf": [{"type": "string"}, {"type": "integer"}]}
MAP = {"type": "object", "connect.type": "map", "additionalProperties": {"type": "integer"}}
DOCUMENTS: Mapping[int, Any] = {
    1: ROW,
    2: {"type": "object", "title": "other", "properties": {"id": {"type": "integer"}}},
    3: {"type": "integer"},
    4: {"type": "object", "properties": {"id": UNION}},
    5: {"type": "object", "properties": {"id": MAP}},
    6: {"oneOf": [NULL, {"type": "string"}]},
    7: {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}}}},
    8: {"type": "object"},
    9: {"type": "array"},
    10: UNION,
    11: {"allOf": [{"$ref": "#/$defs/a"}, {"properties": {"b": {"type": "string"}}}], "$defs": {"a": {
        "properties": {"id": {"type": "integer"}}}}},
    12: {"type": "number", "connect.type": "bytes"},
    13: {"type": "object", "properties": {"many": {"type": "array", "items": UNION}}},
    14: {"type": "object", "properties": {"many": {"type": "array", "items": MAP}}},
}  # fmt: skip
WITH_DEFAULTS = {"type": "object", "properties": {
    "a": {"type": "integer", "default": 3}, "b": {"type": "boolean", "default": True},
    "c": {"type": "string", "default": "é"}, "d": {"type": "number", "default": 0.5},
    "e": {"type": "integer", "connect.type": "int8", "default": -1},
}}  # fmt: skip
DEEP = 15
DOCUMENTS = {**DOCUMENTS, DEEP: {"type": "object", "properties": {
    "deep": {"oneOf": [NULL, WITH_DEFAULTS]}, "many": {"type": "array", "items": WITH_DEFAULTS},
    "odd": {"type": "number", "connect.type": "float32", "default": 0.5},
}}}  # fmt: skip
FOREIGN, UNKNOWN, AWAY = 20, 21, 22


class Registry:
    """Has the documents; what a registry means is tested with a real one (tests/integration/registry)."""

    def schema(self, schema_id: int) -> SchemaText:
        if schema_id == AWAY:
            raise UnavailableError("The registry is away.")
        if schema_id == FOREIGN:
            return SchemaText(AVRO, '"long"')
        if schema_id not in DOCUMENTS:
            raise SchemaError("There is no such schema.")
        return SchemaText(JSON, json.dumps(DOCUMENTS[schema_id]))

    def lookup(self, subject: str, schema: SchemaText, *, deleted: bool) -> Any:
        return type("Found", (), {"version": 3})()

    def referenced(self, schema: SchemaText) -> dict[str, SchemaText]:
        return {}


def converter(**config: str) -> JsonSchemaConverter:
    return opened(JsonSchemaConverter(), Registry(), config)


def message(schema_id: int, text: str | bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + (text.encode() if isinstance(text, str) else text)


def one_by_one(
    reader: JsonSchemaConverter, messages: Sequence[bytes]
) -> list[tuple[Schema | None, Any, frozenset[str]]] | None:
    """Schema, value and members that were left out; None: one is an error."""
    found = []
    for data in messages:
        reader.unread.clear()
        try:
            schema, value = reader.to_connect("t", data)
        except DataError:
            return None
        found.append((schema, value, frozenset(reader.unread.found)))
    return found


def check(messages: Sequence[bytes], **config: str) -> bool:
    """Compare both; returns whether there are columns."""
    expected = one_by_one(converter(**config), messages)
    reader = converter(**config)
    if not reads_in_columns(reader, messages, expected):
        return False
    assert expected is not None
    assert [row[:2] for row in reader.unread.rows] == [(schema, names) for schema, _, names in expected if names]
    return True


MEMBERS = st.fixed_dictionaries(
    {"id": st.sampled_from(["1", "-9223372036854775808"]) | st.sampled_from(["9223372036854775808", "1.0", '"1"'])},
    optional={
        "name": st.sampled_from(['"a"', '"é"', "null", '"\\ud800"', "1"]),
        "kind": st.sampled_from(['"a"', '"c"', "null", "1"]),
        "amount": numbers,
        "ratio": numbers,
        "small": st.sampled_from(["1", "-128", "128", "1.5", "null", "true"]),
        "data": quoted,
        "price": quoted,
        "time": st.sampled_from(["0", "86399999", "86400000", "-1", "null"]),
        "flag": st.sampled_from(["true", "false", "null", "1", '"true"']),
        "inner": st.builds('{{"n":{},"m":{}}}'.format, numbers, quoted) | st.sampled_from(["null", "{}", '{"m":"x"}']),
        "list": st.lists(quoted, max_size=3).map(lambda p: f"[{','.join(p)}]") | st.sampled_from(["null", "{}"]),
        "objects": st.sampled_from(['[{"n":1}]', '[{"n":1,"k":2}]', "[]", "[{}]", "[null]", "null"]),
        "more": st.sampled_from(["1", "null", '{"deep":[]}', "NaN"]),
    },
).map(lambda members: "{" + ",".join(f'"{name}":{text}' for name, text in members.items()) + "}")  # fmt: skip
FULL = (
    '{"id":1,"name":"n","kind":"a","amount":2.5,"ratio":0.5,"small":3,"data":"QQ==","price":"AP8=","time":5,'
    '"flag":true,"inner":{"n":1.5,"m":"x"},"list":["a",null],"objects":[{"n":4}]}'
)
FULL_WITH_MORE = FULL[:-1] + ',"more":1}'
ROWS = MEMBERS.map(lambda text: message(1, text)) | st.sampled_from([message(1, FULL), message(1, FULL_WITH_MORE)])
ODD_TEXTS = [
    "", "null", "{}", '{"id":1}', '{"id":null}', ' {"id":1}', '{"id":1} ', '{"id":1}x', '{"id":1}{"id":2}', '{"id":1',
    '{"id":1}\n{"id":2}', '{"id":1,"id":2}', "5", "5 ", "5x", '5,"v":6', "-0", "01", "5.0", "9223372036854775808",
    '"a"', '"a"x', '"\\ud800"', "[]", "[1]", '[{"id":1}]', '[{"id":1,"x":2}]', '{"many":[1]}', '{"id":{"k":1}}', "NaN",
    '{"id":1}'.encode("utf-16"), '{"id":1}'.encode("utf-8-sig"), "5".encode("utf-16-le"), b"\xff", '"QQ=="', "true",
    '{"x":' + "[" * 260 + "]" * 260 + ',"id":1}', "9" * 1001,
]  # fmt: skip
ODD = st.builds(message, st.sampled_from([*DOCUMENTS, FOREIGN, UNKNOWN]), st.sampled_from(ODD_TEXTS)) | st.sampled_from(
    [b"", b"\0", b"\0\0\0\0", b"\1\0\0\0\1{}", b'{"id":1}', message(1, FULL)[1:]]
)


@settings(max_examples=examples(300), deadline=None)
@given(
    messages=st.lists(ROWS, min_size=1, max_size=4) | st.lists(ROWS | ODD, min_size=1, max_size=4),
    is_strict=st.booleans(),
    is_optional=st.booleans(),
    is_general=st.booleans(),
)
@example([message(1, FULL), message(2, '{"id":1}'), message(3, "5"), message(6, '"a"')], True, False, False)
@example([message(1, FULL_WITH_MORE), message(7, '[{"id":1}]')], False, True, True)
@example([message(1, '{"id":1}')], False, True, False)
def test_columns_are_what_is_read_record_by_record(
    messages: list[bytes], is_strict: bool, is_optional: bool, is_general: bool
) -> None:
    check(
        messages,
        strict_types=str(is_strict).lower(),
        use_optional_for_nonrequired=str(is_optional).lower(),
        generalized_sum_type_support=str(is_general).lower(),
    )


@pytest.mark.parametrize("schema_id", DOCUMENTS)
@pytest.mark.parametrize("strict", ["true", "false"])
def test_odd_texts_are_read_alike(schema_id: int, strict: str) -> None:
    for text in ODD_TEXTS:
        check([message(schema_id, text)], strict_types=strict)


@pytest.mark.parametrize(
    ("schema_id", "text", "in_columns"),
    [
        (1, FULL, True), (1, FULL_WITH_MORE, True), (2, '{"id":1}', True), (3, "5", True), (6, '"a"', True),
        (7, '[{"id":1}]', True), (11, '{"id":1,"b":"x"}', True), (12, '"QQ=="', True),
        (4, '{"id":1}', False), (5, '{"id":{}}', False), (6, "null", False), (8, "{}", False), (10, '"a"', False),
        (13, '{"many":[]}', False), (14, '{"many":[]}', False),
    ],
)  # fmt: skip
def test_what_is_read_in_columns(schema_id: int, text: str, in_columns: bool) -> None:
    assert check([message(schema_id, text)] * 3, use_optional_for_nonrequired="true") is in_columns


def test_missing_members_are_columns_where_the_schema_has_null_or_a_default() -> None:
    assert check([message(1, '{"id":1}'), message(1, '{"id":1,"kind":null}')])  # `kind` has a default
    assert not check([message(1, "{}")])  # `id` has none
    assert check([message(2, '{"id":1}'), message(2, "{}")], use_optional_for_nonrequired="true")
    assert not check([message(2, '{"id":1}'), message(2, "{}")])


@pytest.mark.parametrize("deep", ["null", "{}", '{"a":1,"c":null}', '{"e":5,"d":-0.5,"b":false}'])
@pytest.mark.parametrize("many", ["[]", "[{}]", '[{"a":7},{"b":null,"c":"x"},{}]'])
def test_defaults_take_the_place_of_missing_members_everywhere(deep: str, many: str) -> None:
    whole = message(DEEP, f'{{"deep":{deep},"many":{many},"odd":2.5}}')
    assert check([whole, message(DEEP, '{"deep":{"a":1},"many":[{"b":false}],"odd":2.5}')])


def test_default_of_another_type_is_left_to_the_records() -> None:
    assert check([message(DEEP, '{"deep":null,"many":[],"odd":2.5}')])
    assert not check([message(DEEP, '{"deep":null,"many":[]}')])  # a float of 32 bits


def test_each_run_of_ids_is_a_piece_and_ids_that_change_often_are_read_record_by_record() -> None:
    one, other = message(1, FULL), message(2, '{"id":1}')
    reader = converter()
    pieces = reader.to_columns("t", pa.array([one, one, other, one], pa.binary())) or []
    assert [len(piece) for piece in pieces] == [2, 1, 1]
    assert check([one, other] * 4)
    assert not check([one, other] * 4 + [one])


def test_another_first_byte_is_left_to_the_records() -> None:
    assert converter().to_columns("t", pa.array([message(1, FULL), b"\1" + message(1, FULL)[1:]], pa.binary())) is None


def test_members_of_earlier_batches_are_not_named_again() -> None:
    reader = converter()
    for _ in range(2):
        assert reader.to_columns("t", pa.array([message(1, FULL_WITH_MORE)], pa.binary()))
        assert len(reader.unread.rows) == 1


@pytest.mark.parametrize("schema_id", [4, 5, 10])
def test_types_that_have_no_columns_are_named_until_the_next_batch(schema_id: int) -> None:
    reader = converter()
    for _ in range(2):
        assert reader.to_columns("t", pa.array([message(schema_id, "{}")], pa.binary())) is None
        assert reader.refused_columns == f"schema {schema_id} has types that are not read in columns"
    assert reader.to_columns("t", pa.array([message(1, "{")], pa.binary())) is None
    assert reader.refused_columns == ""


def test_no_messages_are_no_pieces() -> None:
    assert converter().to_columns("t", pa.array([], pa.binary())) == []


def test_schemas_that_cannot_be_used_are_left_to_the_records_and_a_registry_that_is_away_is_an_error() -> None:
    for schema_id in (9, FOREIGN, UNKNOWN):
        assert converter().to_columns("t", pa.array([message(schema_id, "{}")], pa.binary())) is None
    with pytest.raises(UnavailableError):
        converter().to_columns("t", pa.array([message(AWAY, "{}")], pa.binary()))


def test_validated_messages_have_no_columns() -> None:
    validating = converter(json_fail_invalid_schema="true")
    assert column_path(validating, ()) is None
    assert validating.to_columns("t", pa.array([message(1, FULL)], pa.binary())) is None
    assert column_path(converter(), ()) is not None

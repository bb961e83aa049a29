"""`strict.types`: JSON of another type is an error that names the field, on both paths; else as in Kafka Connect."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.api.record import KafkaRecord
from airflow_connect.converters.json.converter import JsonConverter
from airflow_connect.errors import DataError
from tests.support.session.searching import examples
from tests.unit.connectors.files.shared.staging import copy
from tests.unit.registry.registry_double import RegistryDouble


def field(field_name: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"field": field_name, "type": kind, "optional": True, **more}


ORDER = {
    "type": "struct",
    "fields": [
        field("id", "int64"),
        field("small", "int8"),
        field("country", "string"),
        field("amount", "double"),
        field("single", "float"),
        field("paid", "boolean"),
        field("raw", "bytes"),
        field("at", "int64", name="org.apache.kafka.connect.data.Timestamp"),
        field("tags", "array", items={"type": "string", "optional": True}),
        field("by", "map", keys={"type": "string"}, values={"type": "int32", "optional": True}),
        field("inner", "struct", fields=[field("n", "int32")]),
    ],
}
FIXED = {"schemas.enable": "true", "schema.content": json.dumps(ORDER)}
PLAIN = {"schemas.enable": "false"}


def converter(config: dict[str, str], *, strict: bool) -> JsonConverter:
    made = JsonConverter()
    made.configure({**config, "strict.types": str(strict).lower()})
    return made


@pytest.mark.parametrize(
    ("text", "lenient", "said"),
    [
        ('{"amount":"12.50"}', 0.0, "is text, but the type is FLOAT64 (field amount)"),
        ('{"amount":true}', 0.0, "is a boolean, but the type is FLOAT64 (field amount)"),
        ('{"amount":1e400}', float("inf"), "is a number out of range, but the type is FLOAT64 (field amount)"),
        ('{"single":1e39}', float("inf"), "is a number out of range, but the type is FLOAT32 (field single)"),
        ('{"id":"2"}', 0, "is text, but the type is INT64 (field id)"),
        ('{"id":3.7}', 3, "is a number with a fraction, but the type is INT64 (field id)"),
        ('{"id":1.0000000000000000001}', 1, "is a number with a fraction, but the type is INT64 (field id)"),
        ('{"id":true}', 0, "is a boolean, but the type is INT64 (field id)"),
        ('{"id":18446744073709551615}', -1, "is a number out of range, but the type is INT64 (field id)"),
        ('{"id":1e30}', 5076944270305263616, "is a number out of range, but the type is INT64 (field id)"),
        ('{"small":300}', 44, "is a number out of range, but the type is INT8 (field small)"),
        ('{"country":5}', None, "is a number, but the type is STRING (field country)"),
        ('{"country":{}}', None, "is an object, but the type is STRING (field country)"),
        ('{"paid":1}', False, "is a number, but the type is BOOLEAN (field paid)"),
        ('{"raw":5}', None, "is a number, but the type is BYTES (field raw)"),
        ('{"at":18446744073709551615}', -1, "is a number out of range, but the type is INT64 (field at)"),
        ('{"tags":"a"}', [], "is text, but the type is ARRAY (field tags)"),
        ('{"tags":[1]}', [None], "is a number, but the type is STRING (field tags)"),
        ('{"by":{"a":"1"}}', {"a": 0}, "is text, but the type is INT32 (field by)"),
        ('{"inner":{"n":"1"}}', {"n": 0}, "is text, but the type is INT32 (field inner.n)"),
    ],
)
def test_value_of_another_type_is_changed_as_by_connect_or_refused(text: str, lenient: Any, said: str) -> None:
    (name,) = json.loads(text)
    assert converter(FIXED, strict=False).to_connect("t", text.encode()).value[name] == lenient
    with pytest.raises(DataError) as caught:
        converter(FIXED, strict=True).to_connect("t", text.encode())
    assert caught.value.code == "data.json_type"
    assert said in caught.value.message


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ('{"id":3.0}', "id", 3),
        ('{"id":1e3}', "id", 1000),
        ('{"id":-9223372036854775808}', "id", -(2**63)),
        ('{"amount":5}', "amount", 5.0),
        ('{"amount":null}', "amount", None),
        ('{"single":0.1}', "single", 0.10000000149011612),
        ("{}", "id", None),
        ('{"raw":"AQ=="}', "raw", b"\1"),
    ],
)
def test_value_that_keeps_its_meaning_is_read(text: str, name: str, value: Any) -> None:
    assert converter(FIXED, strict=True).to_connect("t", text.encode()).value[name] == value


@pytest.mark.parametrize(
    ("text", "lenient", "said"),
    [
        ('{"id":18446744073709551615}', {"id": -1}, "INT64"),
        ('[{"id":-9223372036854775809}]', [{"id": 2**63 - 1}], "INT64"),
        ('{"x":[1e400]}', {"x": [float("inf")]}, "FLOAT64"),
    ],
)
@pytest.mark.parametrize("envelope", [False, True])
def test_schemaless_number_that_does_not_fit_is_refused(text: str, lenient: Any, said: str, envelope: bool) -> None:
    config = {"schemas.enable": str(envelope).lower()}
    message = (f'{{"schema":null,"payload":{text}}}' if envelope else text).encode()
    assert converter(config, strict=False).to_connect("t", message).value == lenient
    with pytest.raises(DataError, match=f"number out of range, but the type is {said}"):
        converter(config, strict=True).to_connect("t", message)


def test_envelope_is_checked_also_when_its_schema_is_known() -> None:
    strict = converter({}, strict=True)
    for n in range(3):
        message = json.dumps({"schema": ORDER, "payload": {"id": n}}).encode()
        assert strict.to_connect("t", message).value["id"] == n
    with pytest.raises(DataError, match="is text, but the type is INT64"):
        strict.to_connect("t", json.dumps({"schema": ORDER, "payload": {"id": "1"}}).encode())


@pytest.mark.parametrize("rest", ["{}", ' {"id":2}', "]", "garbage", "\n\n[1]", "\0"])
@pytest.mark.parametrize("config", [FIXED, PLAIN, {}], ids=["fixed", "plain", "envelope"])
def test_text_after_the_document_is_refused(config: dict[str, str], rest: str) -> None:
    text = '{"id":1}' if config else json.dumps({"schema": ORDER, "payload": {"id": 1}})
    lenient, strict = (converter(config, strict=strict) for strict in (False, True))
    for message in (text.encode(), f" {text}\r\n\t".encode()):
        assert strict.to_connect("t", message).value["id"] == 1
    assert lenient.to_connect("t", (text + rest).encode()).value["id"] == 1
    with pytest.raises(DataError, match="text after its JSON document"):
        strict.to_connect("t", (text + rest).encode())
    if config:
        assert strict.to_columns("t", pa.array([(text + rest).encode()])) is None


NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.sampled_from(["1e400", "1e-400", "3.0", "0.1", "-0.0", "1E3", "18446744073709551615", "9007199254740993"]),
)
MEMBERS = st.one_of(NUMBERS, st.sampled_from(["null", "true", '"12.50"', '"null"', "[]", '["a"]', "{}", '{"n":1}']))
ENDS = st.sampled_from(["", "", "", " ", "{}", "x"])
MESSAGES = st.dictionaries(st.sampled_from([f["field"] for f in ORDER["fields"]]), MEMBERS, max_size=3).flatmap(
    lambda members: ENDS.map(
        lambda end: ("{" + ",".join(f'"{k}":{v}' for k, v in members.items()) + "}" + end).encode()
    )
)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(MESSAGES, min_size=1, max_size=12), st.sampled_from([FIXED, PLAIN]), st.booleans())
def test_both_paths_agree(messages: list[bytes], config: dict[str, str], strict: bool) -> None:
    settings_ = {f"value.converter.{key}": value for key, value in config.items()}
    connector = {
        "flush.size": "1000",
        "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
        "errors.tolerance": "all",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        **settings_,
        "value.converter.strict.types": str(strict).lower(),
    }
    records = [KafkaRecord("t", 0, n, None, message, 0) for n, message in enumerate(messages)]
    by_record, _ = copy(connector, [records], columnar=False)
    in_columns, _ = copy(connector, [records], columnar=True)
    assert in_columns == by_record


JSON_SCHEMA = {
    "type": "object",
    "title": "T",
    "properties": {"n": {"type": "integer"}, "s": {"type": "string"}, "o": {"type": "object", "properties": {}}},
}


def test_json_schema_converter_refuses_other_types_too() -> None:
    from airflow_connect.registry.converters.json_schema_converter import JsonSchemaConverter

    stored = {"schemaType": "JSON", "schema": json.dumps(JSON_SCHEMA), "subject": "t-value", "version": 1, "id": 1}
    with RegistryDouble((200, stored)) as registry:
        strict = JsonSchemaConverter()
        strict.configure({"schema.registry.url": registry.url, "strict.types": "true"})
        assert strict.to_connect("t", b'\0\0\0\0\1{"n":1,"s":"x","o":{}}').value == {"n": 1, "s": "x", "o": {}}
        for text in ('{"n":"12"}', '{"n":1.5}', '{"n":18446744073709551615}', '{"s":5}'):
            (name,) = json.loads(text)
            with pytest.raises(DataError, match=rf"but the type is .* \(field {name}\)"):
                strict.to_connect("t", b"\0\0\0\0\1" + text.encode())
        with pytest.raises(DataError, match=r"text after its JSON document \(length: 9\)"):
            strict.to_connect("t", b'\0\0\0\0\1{"n":1} {"n":2}X')


def test_json_schema_null_for_an_object_names_field_and_cure() -> None:
    from airflow_connect.registry.converters.json_schema_converter import JsonSchemaConverter

    stored = {"schemaType": "JSON", "schema": json.dumps(JSON_SCHEMA), "subject": "t-value", "version": 1, "id": 1}
    with RegistryDouble((200, stored)) as registry:
        made = JsonSchemaConverter()
        made.configure({"schema.registry.url": registry.url})
        with pytest.raises(DataError, match=r"null value for required STRUCT field \(field o\)") as caught:
            made.to_connect("t", b'\0\0\0\0\1{"n":1,"o":null}')
    assert "value.converter.use.optional.for.nonrequired=true" in caught.value.suggestion

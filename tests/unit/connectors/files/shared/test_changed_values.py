"""Values that do not fit their type and become others, as in Kafka Connect: the report counts them, on both paths."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from airflow_connect.api.record import KafkaRecord
from tests.unit.connectors.files.shared.staging import JSON, copy

BASE = {"value.converter": JSON, "format.class": "JsonFormat", "flush.size": "1000"}
PLAIN = {**BASE, "value.converter.schemas.enable": "false"}
BEYOND_64_BITS = "values that do not fit 64 bits. They became others, as in Kafka Connect"


def records(*values: str | None, keys: list[str | None] | None = None) -> list[KafkaRecord]:
    return [
        KafkaRecord(
            topic="t",
            partition=0,
            offset=number,
            timestamp=1_700_000_000_000,
            key=None if keys is None else _data(keys[number]),
            value=_data(value),
        )
        for number, value in enumerate(values)
    ]


def _data(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


@pytest.mark.parametrize("columnar", [True, False])
def test_numbers_beyond_64_bits_without_a_schema_are_counted(columnar: bool) -> None:
    values = (
        '{"id":1,"limit":9223372036854775807,"wide":1e308}',
        '{"id":2,"limit":-9223372036854775808,"double":92233720368547758080.5,"text":"18446744073709551616"}',
        '{"id":3,"amount":18446744073709551617,"in":{"list":[1,1e400]}}',
        '{"id":4,"amount":-9223372036854775809}',
    )
    outcome, in_columns = copy(PLAIN, [records(*values)], columnar=columnar)
    assert (outcome.error, in_columns) == ("", 4 if columnar else 0)
    where = "The first is at offset 2 of partition 0."
    assert outcome.notes == (f"Some values of the topic t have {BEYOND_64_BITS}: amount, in.list. {where} Records: 2.",)


@pytest.mark.parametrize("columnar", [True, False])
@pytest.mark.parametrize("value", ["18446744073709551616", "1e400", '{"schema":null,"payload":18446744073709551616}'])
def test_message_that_is_such_a_number_is_counted(value: str, columnar: bool) -> None:
    config = BASE if "payload" in value else PLAIN
    outcome, _ = copy(config, [records(value)], columnar=columnar)
    where = "the whole value. The first is at offset 0 of partition 0."
    assert (outcome.error, outcome.notes) == (
        "",
        (f"Some values of the topic t have {BEYOND_64_BITS}: {where} Records: 1.",),
    )


@pytest.mark.parametrize("columnar", [True, False])
def test_number_beyond_64_bits_in_a_key_is_counted(columnar: bool) -> None:
    config = {**PLAIN, "key.converter": JSON, "key.converter.schemas.enable": "false"}
    given = records('{"id":1}', '{"id":2}', '{"id":3}', keys=['{"k":1}', None, '{"k":18446744073709551616}'])
    outcome, in_columns = copy(config, [given], columnar=columnar)
    assert (outcome.error, in_columns) == ("", 3 if columnar else 0)
    where = "k. The first is at offset 2 of partition 0."
    assert outcome.notes == (f"Some keys of the topic t have {BEYOND_64_BITS}: {where} Records: 1.",)


STRING = "org.apache.kafka.connect.storage.StringConverter"


@pytest.mark.parametrize("columnar", [True, False])
@pytest.mark.parametrize("part", ["keys", "values"])
def test_bytes_that_are_no_text_are_counted(part: str, columnar: bool) -> None:
    """Keys of the type long, read as texts, became one: a sink that finds documents by them kept one of many."""
    texts = [b"a", b"\xff\x01", b"\xfe\x01", "\ufffd".encode(), b"\x80"]
    given = [
        replace(record, **{part[:-1]: text})
        for record, text in zip(records(*["b"] * 5, keys=["k"] * 5), texts, strict=True)
    ]
    config = {**BASE, "value.converter": STRING, "key.converter": STRING, "store.kafka.keys": "true"}
    outcome, _ = copy({**config, "keys.format.class": "StringFormat"}, [given], columnar=columnar)
    said = "have bytes that are not valid in the encoding of the converter. They became U+FFFD, as in Kafka Connect, so"
    where = "different texts may be equal. The first is at offset 1 of partition 0. Records: 3."
    assert outcome.notes == (f"Some {part} of the topic t {said} {where}",)


def field(kind: str, **more: Any) -> dict[str, Any]:
    return {"field": kind, "type": kind, "optional": True, **more}


TIMESTAMP = {"field": "at", "type": "int64", "name": "org.apache.kafka.connect.data.Timestamp", "optional": True}
KINDS = ("int8", "int16", "int32", "int64", "float", "double", "boolean", "string", "bytes")
LIST = {"field": "list", "type": "array", "items": {"type": "int8"}, "optional": True}
SCHEMA = {"type": "struct", "name": "All", "version": 3, "fields": [*map(field, KINDS), TIMESTAMP, LIST]}
CHANGED = {
    "int8": ("128", "-129", "1.5", '"7"', "true", "{}", "18446744073709551616", "1e-400"),
    "int16": ("32768", "2.25", "[]"),
    "int32": ("1099511627776", "1.9999999999999999"),
    "int64": ("1180591620717411303424", "18446744073709551615", "0.5", '"1"'),
    "float": ("1e39", '"1"'),
    "double": ("1e400", '"1"', "true"),
    "boolean": ("1", '"true"'),
    "string": ("1", "{}", "false"),
    "bytes": ("1", "[]"),
    "at": ("18446744073709551616", "9223372036854775808"),
    "list": ("{}", '{"a":1}', "7", "[1,2,300]"),
}
KEPT = {
    "int8": ("127", "-128", "1.0", "1e2"),
    "int64": ("9223372036854775807", "-9223372036854775808", "9007199254740993.0"),
    "float": ("0.1", "1e-60"),
    "double": ("1.7976931348623157e308", "18446744073709551616"),
    "boolean": ("false",),
    "string": ('""',),
    "bytes": ('""', '"AQ=="'),
    "at": ("9223372036854775807",),
    "list": ("[]", "[1,-128]"),
}


def _texts(cases: dict[str, tuple[str, ...]]) -> list[tuple[str, str]]:
    return [(name, text) for name, texts in cases.items() for text in texts]


@pytest.mark.parametrize("is_envelope", [True, False])
@pytest.mark.parametrize("columnar", [True, False])
@pytest.mark.parametrize(("name", "text"), _texts(CHANGED))
def test_value_that_does_not_fit_the_type_in_its_schema_is_counted(
    name: str, text: str, columnar: bool, is_envelope: bool
) -> None:
    outcome = _copied(['{"double":1.5}', f'{{"{name}":{text}}}'], columnar=columnar, is_envelope=is_envelope)
    what = "the types in the schema All (version 3). They became others, as in Kafka Connect"
    where = f"{name}. The first is at offset 1 of partition 0."
    note = f"Some values of the topic t have values that do not fit {what}: {where} Records: 1."
    assert (outcome.error, outcome.notes) == ("", (note,))


@pytest.mark.parametrize("columnar", [True, False])
@pytest.mark.parametrize(("name", "text"), _texts(KEPT))
def test_value_that_fits_is_not_counted(name: str, text: str, columnar: bool) -> None:
    outcome = _copied([f'{{"{name}":{text}}}', f'{{"{name}":null}}'], columnar=columnar, is_envelope=False)
    assert (outcome.error, outcome.notes) == ("", ())


def _copied(values: list[str], *, columnar: bool, is_envelope: bool) -> Any:
    schema = json.dumps(SCHEMA)
    if is_envelope:
        return copy(BASE, [records(*(f'{{"schema":{schema},"payload":{v}}}' for v in values))], columnar=columnar)[0]
    return copy({**BASE, "value.converter.schema.content": schema}, [records(*values)], columnar=columnar)[0]


@pytest.mark.parametrize("columnar", [True, False])
def test_fields_that_are_left_out_do_not_hide_one_that_is_changed(columnar: bool) -> None:
    more = ",".join(f'"a{number}":1' for number in range(300))
    outcome = _copied([f'{{"int8":300,{more}}}'], columnar=columnar, is_envelope=False)
    left_out, changed = outcome.notes
    assert "They were left out: a0, a1," in left_out
    assert "They became others, as in Kafka Connect: int8." in changed


def test_each_task_has_a_note_with_its_first_record() -> None:
    from airflow_connect.runtime.reporting.notes import of_tasks

    outcome, _ = copy(PLAIN, [records('{"a":18446744073709551616}')], columnar=True)
    other = tuple(note.replace("partition 0", "partition 4") for note in outcome.notes)
    assert of_tasks([outcome.notes, other]) == [*outcome.notes, *other]


CASTS = {
    "type": "struct",
    "name": "All",
    "version": 3,
    "fields": [
        {"field": "long", "type": "int64"},
        {"field": "double", "type": "double"},
        {"field": "n", "type": "int16"},
    ],
}
CAST = {
    "value.converter": JSON,
    "value.converter.schema.content": json.dumps(CASTS),
    "format.class": "JsonFormat",
    "flush.size": "1000",
    "transforms": "narrow",
    "transforms.narrow.type": "org.apache.kafka.connect.transforms.Cast$Value",
}


@pytest.mark.parametrize("columnar", [True, False])
@pytest.mark.parametrize(
    ("spec", "value", "named"),
    [
        ("long:int32", {"long": 1 << 31}, "long"),
        ("long:int32", {"long": (1 << 31) - 1}, ""),
        ("long:int8,n:int8", {"long": -129, "n": 128}, "long, n"),
        ("double:int32", {"double": 3.7}, ""),  # Cutting the fraction is what such a cast means.
        ("double:int32", {"double": 2147483648.5}, "double"),
        ("double:int16", {"double": -32769.5}, "double"),
        ("double:int64", {"double": 1e19}, "double"),
        ("double:float32", {"double": 1e39}, "double"),
        ("double:float32", {"double": 0.1}, ""),
        ("double:float32", {"double": 1e-60}, "double"),
        ("long:float64,n:string,double:boolean", {"long": (1 << 53) + 1}, ""),
    ],
)
def test_numbers_that_do_not_fit_the_type_of_a_cast_are_counted(
    spec: str, value: dict[str, Any], named: str, columnar: bool
) -> None:
    given = [{"long": 1, "double": 1.5, "n": 1}, {"long": 1, "double": 1.5, "n": 1} | value]
    config = {**CAST, "transforms.narrow.spec": spec}
    outcome, in_columns = copy(config, [records(*map(json.dumps, given))], columnar=columnar)
    assert (outcome.error, in_columns) == ("", 2 if columnar and not named else 0)
    limit = "have values that do not fit the types that the transformation narrow gives them"
    where = f"They became others, as in Kafka Connect: {named}. The first is at offset 1 of partition 0. Records: 1."
    assert outcome.notes == ((f"Some records of the topic t {limit}. {where}",) if named else ())


@pytest.mark.parametrize("columnar", [True, False])
def test_numbers_without_a_schema_that_do_not_fit_a_cast_are_counted(columnar: bool) -> None:
    config = {**PLAIN, "transforms": "narrow", "transforms.narrow.type": CAST["transforms.narrow.type"]}
    outcome, _ = copy(
        {**config, "transforms.narrow.spec": "a:int8"},
        [records('{"a":1}', '{"a":200}', '{"a":1.5}')],
        columnar=columnar,
    )
    (note,) = outcome.notes
    assert outcome.error == "" and ": a. The first is at offset 1 of partition 0. Records: 1." in note

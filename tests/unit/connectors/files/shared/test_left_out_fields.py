"""Fields that hold something and are not in the files: the report names them and counts the records, on both paths."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from airflow_connect.api.record import KafkaRecord
from airflow_connect.layout.schema_compatibility import StorageSchemaCompatibility
from tests.unit.connectors.files.shared.staging import JSON, copy

INNER = {"type": "struct", "fields": [{"field": "n", "type": "int32"}]}
FIELDS = [
    {"field": "id", "type": "int64"},
    {"field": "inner", **INNER, "optional": True},
    {"field": "rows", "type": "array", "items": INNER, "optional": True},
]
CONTENT = {
    "value.converter": JSON,
    "value.converter.schema.content": json.dumps({"type": "struct", "name": "Order", "version": 3, "fields": FIELDS}),
    "format.class": "JsonFormat",
    "flush.size": "1000",
}
NOTE = "Some values of the topic t held fields that the schema Order (version 3) does not have. They were left out:"


def records(*values: Any, keys: list[bytes] | None = None) -> list[KafkaRecord]:
    return [
        KafkaRecord(
            topic="t",
            partition=0,
            offset=number,
            timestamp=1_700_000_000_000,
            key=keys[number] if keys else None,
            value=json.dumps(value).encode(),
        )
        for number, value in enumerate(values)
    ]


@pytest.mark.parametrize("columnar", [True, False])
def test_members_that_the_schema_does_not_have_are_counted_on_both_paths(columnar: bool) -> None:
    values = [
        {"id": 1},
        {"id": 2, "more": 1, "empty": None},
        {"id": 3, "inner": {"n": 1, "deep": "x"}, "rows": [{"n": 1}, {"n": 2, "a": []}, {"a": {}, "n": 3}]},
        {"id": 4, "inner": None, "empty": None},
    ]
    outcome, in_columns = copy(CONTENT, [records(*values)], columnar=columnar)
    assert (outcome.error, in_columns) == ("", 4 if columnar else 0)
    assert outcome.notes == (f"{NOTE} inner.deep, more, rows.a. Records: 2.",)


@pytest.mark.parametrize("columnar", [True, False])
def test_batch_that_goes_record_by_record_after_all_is_counted_once(columnar: bool) -> None:
    values = [{"id": 1, "more": 1}, {"id": "not an integer", "more": 1}, {"id": 3, "more": 2}]
    outcome, in_columns = copy(CONTENT, [records(*values)], columnar=columnar)
    assert (outcome.error, in_columns) == ("", 0)
    changed = (
        "Some values of the topic t have values that do not fit the types in the schema Order (version 3). They became"
        " others, as in Kafka Connect: id. The first is at offset 1 of partition 0. Records: 1."
    )
    assert sorted(outcome.notes) == sorted((f"{NOTE} more. Records: 3.", changed))


@pytest.mark.parametrize("columnar", [True, False])
def test_message_that_is_a_dead_letter_is_not_counted(columnar: bool) -> None:
    config = {**CONTENT, "errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dlq"}
    values = [{"more": 1}, {"id": 2}, {"inner": {"deep": 1, "n": 1}, "id": None}]
    outcome, _ = copy(config, [records(*values)], columnar=columnar)
    assert (len(outcome.dead_letters), outcome.notes) == (2, ())


@pytest.mark.parametrize("columnar", [True, False])
def test_names_without_end_are_not_listed_without_end(columnar: bool) -> None:
    values = [{"id": n, f"m{n:03}": 1, "x" * 500: 1} for n in range(150)]
    outcome, in_columns = copy(CONTENT, [records(*values)], columnar=columnar)
    assert in_columns == (150 if columnar else 0)
    (note,) = outcome.notes
    assert note.endswith(f"m018, {'x' * 100}... and more. Records: 150.")


@pytest.mark.parametrize("columnar", [True, False])
def test_members_of_keys_are_counted_too(columnar: bool) -> None:
    key = json.dumps({"type": "struct", "fields": FIELDS[:1]})
    config = {**CONTENT, "key.converter": JSON, "key.converter.schema.content": key}
    given = records({"id": 1}, {"id": 2, "more": 1}, keys=[b'{"id":1,"a":2}', b'{"id":2,"a":2}'])
    outcome, in_columns = copy(config, [given], columnar=columnar)
    assert in_columns == (2 if columnar else 0)
    keys = "Some keys of the topic t held fields that the schema does not have. They were left out: a. Records: 2."
    assert outcome.notes == (keys, f"{NOTE} more. Records: 1.")


@pytest.mark.parametrize("columnar", [True, False])
@pytest.mark.parametrize("schemas", ["false", "true"])
def test_text_after_the_document_is_counted(schemas: str, columnar: bool) -> None:
    given = records({"id": 1}, {"id": 2}, {"id": 3})
    given[1] = replace(given[1], value=b'{"id":2} {"id":22}')
    outcome, in_columns = copy({**CONTENT, "value.converter.schemas.enable": schemas}, [given], columnar=columnar)
    assert in_columns == (3 if columnar and schemas == "false" else 0)
    if schemas == "true":
        assert outcome.notes == (f"{NOTE} text after the JSON document. Records: 1.",)
    else:
        (note,) = outcome.notes
        what = "Some values of the topic t have text after the JSON document, such as a second document."
        assert note == f"{what} It was left out. Records: 1."


def enveloped(version: int, fields: list[dict[str, Any]], payload: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "struct", "name": "Order", "version": version, "fields": fields}
    return {"schema": schema, "payload": payload}


OLD = [
    {"field": "id", "type": "int64"},
    {"field": "inner", **INNER, "optional": True},
    {"field": "map", "type": "map", "keys": {"type": "string"}, "values": INNER, "optional": True},
]
WIDE = {"type": "struct", "fields": [*INNER["fields"], {"field": "deep", "type": "string", "optional": True}]}
NEW = [
    {"field": "id", "type": "int64"},
    {"field": "inner", **WIDE, "optional": True},
    {"field": "map", "type": "map", "keys": {"type": "string"}, "values": WIDE, "optional": True},
    {"field": "note", "type": "string", "optional": True},
]
PROJECTED = {
    "value.converter": JSON,
    "format.class": "JsonFormat",
    "flush.size": "3",
    "schema.compatibility": "FORWARD",
}
VALUES = [
    enveloped(1, OLD, {"id": 0}),
    enveloped(2, NEW, {"id": 1, "note": "x"}),
    enveloped(2, NEW, {"id": 2, "note": None, "inner": {"n": 1}, "map": {"a": {"n": 1}}}),
    enveloped(1, OLD, {"id": 3}),
    enveloped(2, NEW, {"id": 4, "inner": {"n": 1, "deep": "d"}, "map": {"a": {"n": 1}, "b": {"n": 1, "deep": "e"}}}),
]


@pytest.mark.parametrize("files", [{}, {"files.per.partition": "compact"}])
def test_fields_that_a_projection_drops_are_counted(files: dict[str, str]) -> None:
    config = {**PROJECTED, **files}
    outcome, _ = copy(config, [records(*VALUES)], columnar=True)
    assert outcome.error == ""
    note = (
        "Records of the topic t with the schema Order (version 2) were written with the schema Order (version 1), that "
        "of their file (schema.compatibility=FORWARD). Fields that it does not have were left out: inner.deep, "
        "map.deep, note. Records: 2."
    )
    assert outcome.notes == (note,)


def test_records_that_are_left_to_the_next_run_are_not_counted() -> None:
    outcome, _ = copy(PROJECTED, [records(*VALUES)], columnar=True, flush_on_end=False)
    assert [report.left for report in outcome.reports] == [2]
    assert [note.rpartition("left out: ")[2] for note in outcome.notes] == ["note. Records: 1."]


def test_records_with_the_schema_of_their_file_are_not_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Any] = []
    monkeypatch.setattr(
        StorageSchemaCompatibility, "find_dropped", lambda *values: looked.append(values) or frozenset()
    )
    config = {**CONTENT, "schema.compatibility": "FORWARD"}
    outcome, _ = copy(config, [records({"id": 1}, {"id": 2})], columnar=False)
    assert (outcome.error, looked) == ("", [])

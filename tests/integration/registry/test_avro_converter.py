"""AvroConverter on a real registry: ids, subjects, versions, references, compatibility."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from airflow_connect.api import schema as s
from airflow_connect.api.converter import SchemaAndValue
from airflow_connect.errors import DataError, SchemaError
from airflow_connect.registry.converters.avro_converter import AvroConverter
from tests.integration.registry.avro_messages import message

if TYPE_CHECKING:
    from tests.integration.registry.conftest import Registry

pytestmark = pytest.mark.integration
CONVERTER = AvroConverter
MakeConverter = Callable[..., AvroConverter]

ORDER = s.struct(("id", s.INT64), ("note", s.OPTIONAL_STRING), name="shop.Order")
RECORD = {"type": "record", "name": "shop.Order", "fields": [{"name": "id", "type": "long"}]}
JSON_SCHEMA = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}
WIDER = {**RECORD, "fields": [*RECORD["fields"], {"name": "city", "type": "string", "default": "?"}]}


def test_value_written_is_registered_and_read_back(
    make_converter: MakeConverter, schema_registry: Registry, unique_name: str
) -> None:
    value = {"id": 1, "note": None}
    data = make_converter().from_connect(unique_name, ORDER, value)
    assert schema_registry.versions(f"{unique_name}-value") == [1]
    assert make_converter().to_connect(unique_name, data) == SchemaAndValue(replace(ORDER, version=1), value)


def test_key_is_registered_under_its_own_subject(
    make_converter: MakeConverter, schema_registry: Registry, unique_name: str
) -> None:
    converter = make_converter(is_key=True)
    data = converter.from_connect(unique_name, s.STRING, "k")
    assert converter.to_connect(unique_name, data).value == "k"
    assert schema_registry.versions(f"{unique_name}-key") == [1]


def test_tombstone_is_null_both_ways(make_converter: MakeConverter) -> None:
    converter = make_converter()
    assert converter.to_connect("t", None) == SchemaAndValue(None, None)
    assert converter.from_connect("t", None, None) is None
    with pytest.raises(DataError, match="Found null value for non-optional schema"):
        converter.from_connect("t", ORDER, None)


def test_schemaless_value_is_written_as_anything(make_converter: MakeConverter, unique_name: str) -> None:
    converter = make_converter()
    data = converter.from_connect(unique_name, None, {"a": [1, None]})
    assert converter.to_connect(unique_name, data) == SchemaAndValue(None, {"a": [1, None]})


def test_version_of_each_schema_is_the_one_of_its_subject(
    make_converter: MakeConverter, schema_registry: Registry, unique_name: str
) -> None:
    ids = [schema_registry.register(f"{unique_name}-value", schema) for schema in (RECORD, WIDER)]
    messages = [message(ids[0], RECORD, {"id": 1}), message(ids[1], WIDER, {"id": 2, "city": "Ulm"})]
    converter = make_converter()
    found = [converter.to_connect(unique_name, data) for data in messages]
    assert [(r.schema.version, r.value) for r in found if r.schema] == [(1, {"id": 1}), (2, {"id": 2, "city": "Ulm"})]


def test_columns_pieces_are_runs_of_one_schema(
    make_converter: MakeConverter, schema_registry: Registry, unique_name: str
) -> None:
    ids = [schema_registry.register(f"{unique_name}-value", schema) for schema in (RECORD, WIDER)]
    old = [message(ids[0], RECORD, {"id": n}) for n in range(3)]
    new = [message(ids[1], WIDER, {"id": n, "city": f"city {n}"}) for n in range(2)]
    converter = make_converter()
    rows = pa.array([b"not looked at", *old, *new], pa.binary()).slice(1)
    pieces = converter.to_columns(unique_name, rows)
    assert pieces is not None
    assert [piece.schema for piece in pieces] == [converter.to_connect(unique_name, x[0]).schema for x in (old, new)]
    values = [value for piece in pieces for value in piece.values.to_pylist()]
    assert values == [converter.to_connect(unique_name, data).value for data in old + new]


def test_columns_message_that_is_not_plain_makes_none(
    make_converter: MakeConverter, schema_registry: Registry, unique_name: str
) -> None:
    schema_id = schema_registry.register(f"{unique_name}-value", RECORD)
    good, converter = message(schema_id, RECORD, {"id": 1}), make_converter()
    for bad in (b"", b"\0\0", b'{"id":1}', good + b"x", good[:-1], message(987_654, RECORD, {"id": 1})):
        assert converter.to_columns(unique_name, pa.array([good, bad], pa.binary())) is None
    turns = [good, message(schema_registry.register(f"{unique_name}-value", WIDER), WIDER, {"id": 1, "city": "x"})]
    assert converter.to_columns(unique_name, pa.array(turns * 20, pa.binary())) is None
    assert converter.to_columns(unique_name, pa.array([], pa.binary())) == []


def test_references_are_resolved(make_converter: MakeConverter, schema_registry: Registry, unique_name: str) -> None:
    address = {"type": "record", "name": "a.Address", "fields": [{"name": "city", "type": "string"}]}
    person = {"type": "record", "name": "a.Person", "fields": [{"name": "home", "type": "a.Address"}]}
    schema_registry.register(f"{unique_name}-address", address)
    reference = {"name": "a.Address", "subject": f"{unique_name}-address", "version": 1}
    schema_id = schema_registry.register(f"{unique_name}-value", person, [reference])
    whole = {**person, "fields": [{"name": "home", "type": address}]}
    data = message(schema_id, whole, {"home": {"city": "Ulm"}})
    converter = make_converter()
    found = converter.to_connect(unique_name, data)
    assert found.value == {"home": {"city": "Ulm"}}
    assert found.schema is not None and found.schema.fields[0].schema.name == "a.Address"
    pieces = converter.to_columns(unique_name, pa.array([data]))
    assert pieces is not None and pieces[0].values.to_pylist() == [found.value]


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [
        ("io.confluent.kafka.serializers.subject.TopicNameStrategy", "{topic}-value"),
        ("TopicRecordNameStrategy", "{topic}-shop.Order{tag}"),
        ("io.confluent.kafka.serializers.subject.RecordNameStrategy", "shop.Order{tag}"),
    ],
)
def test_subject_follows_its_strategy(
    make_converter: MakeConverter, schema_registry: Registry, unique_name: str, strategy: str, subject: str
) -> None:
    tag = unique_name.replace("-", "")
    schema = replace(ORDER, name=f"shop.Order{tag}")
    converter = make_converter(value_subject_name_strategy=strategy)
    data = converter.from_connect(unique_name, schema, {"id": 1, "note": "x"})
    assert schema_registry.versions(subject.format(topic=unique_name, tag=tag)) == [1]
    assert converter.to_connect(unique_name, data).value == {"id": 1, "note": "x"}


def test_record_name_strategy_value_that_is_no_record_is_an_error(make_converter: MakeConverter) -> None:
    converter = make_converter(value_subject_name_strategy="RecordNameStrategy")
    with pytest.raises(DataError, match="must only be a record schema"):
        converter.from_connect("t", s.STRING, "x")


def test_schema_of_another_subject_names_the_strategy(
    make_converter: MakeConverter, schema_registry: Registry, unique_name: str
) -> None:
    schema_id = schema_registry.register(f"{unique_name}-elsewhere", {**RECORD, "name": "x.Elsewhere"})
    data, converter = message(schema_id, RECORD, {"id": 1}), make_converter()
    with pytest.raises(DataError, match=rf"the subject {unique_name}-value does not have it.*strategy"):
        converter.to_connect(unique_name, data)
    assert converter.to_columns(unique_name, pa.array([data])) is None


def test_schemaless_message_of_deep_nesting_is_a_sentence(
    make_converter: MakeConverter, schema_registry: Registry, unique_name: str
) -> None:
    converter, depth = make_converter(), 20_000
    start = converter.from_connect(unique_name, None, 1)[:5]
    deep = start + (b"\0" * 7 + b"\x02\x02") * depth + b"\0" * 9 + b"\0\0" * depth
    with pytest.raises(DataError, match=r"is not Avro data with the schema .*RecursionError"):
        converter.to_connect(unique_name, deep)
    with pytest.raises(DataError, match="it ends too early"):
        converter.to_connect(unique_name, start + b"\0\0\x02")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "0 bytes, too few"),
        (b"\0\0\0\0", "4 bytes, too few"),
        (b'{"id":1}', "Unknown magic byte! .* JSON text"),
        (b"hello there", "Unknown magic byte! .* StringConverter"),
        (b"Obj\x01rest", "container file"),
        (b"\x01" + b"g" * 16, "GUID"),
        (b"\xff\xfe\x80\x81", "not Schema Registry's wire format"),
        (b"\0\x7f\xff\xff\xff\x02", "no schema with the id 2147483647: .*40403"),
    ],
)
def test_message_of_something_else_is_a_sentence(make_converter: MakeConverter, data: bytes, says: str) -> None:
    with pytest.raises(DataError, match=says):
        make_converter().to_connect("t", data)


def test_damaged_message_is_a_sentence(
    make_converter: MakeConverter, schema_registry: Registry, unique_name: str
) -> None:
    schema_id = schema_registry.register(f"{unique_name}-value", WIDER)
    good, converter = message(schema_id, WIDER, {"id": 1, "city": "Ulm"}), make_converter()
    with pytest.raises(DataError, match=f"not Avro data with the schema {schema_id}: it ends too early"):
        converter.to_connect(unique_name, good[:-2])
    with pytest.raises(DataError, match="has 3 more bytes after the value"):
        converter.to_connect(unique_name, good + b"abc")


def test_incompatible_schema_is_refused_with_the_registrys_reason(
    make_converter: MakeConverter, schema_registry: Registry, unique_name: str
) -> None:
    subject = f"{unique_name}-value"
    schema_registry.register(subject, RECORD)
    schema_registry.set_compatibility(subject, "BACKWARD")
    changed = s.struct(("id", s.STRING), name="shop.Order")
    with pytest.raises(SchemaError, match=rf"incompatible with an earlier schema for subject {subject}: .*STRING"):
        make_converter().from_connect(unique_name, changed, {"id": "x"})


def test_auto_register_off_needs_the_schema(
    make_converter: MakeConverter, schema_registry: Registry, unique_name: str
) -> None:
    converter = make_converter(auto_register_schemas="false")
    with pytest.raises(SchemaError, match=rf"not registered under the subject {unique_name}-value"):
        converter.from_connect(unique_name, ORDER, {"id": 1, "note": None})
    data = make_converter().from_connect(unique_name, ORDER, {"id": 1, "note": None})
    fresh = make_converter(auto_register_schemas="false")
    assert fresh.from_connect(unique_name, ORDER, {"id": 1, "note": None}) == data


def test_use_latest_version_writes_with_the_latest_schema(
    make_converter: MakeConverter, schema_registry: Registry, unique_name: str
) -> None:
    schema_id = schema_registry.register(f"{unique_name}-value", WIDER)
    converter = make_converter(auto_register_schemas="false", use_latest_version="true")
    small = s.struct(("id", s.INT64), name="shop.Order")
    data = converter.from_connect(unique_name, small, {"id": 4})
    assert data == message(schema_id, WIDER, {"id": 4, "city": "?"})
    with pytest.raises(SchemaError, match="the field id is string and would be read as long"):
        converter.from_connect(unique_name, s.struct(("id", s.STRING), name="shop.Order"), {"id": "x"})


def test_fields_that_the_latest_schema_does_not_have_are_named(
    make_converter: MakeConverter, schema_registry: Registry, unique_name: str
) -> None:
    schema_id = schema_registry.register(f"{unique_name}-value", RECORD)
    converter = make_converter(auto_register_schemas="false", use_latest_version="true")
    line = s.struct(("n", s.INT32), name="shop.Line")
    wide = s.struct(
        ("id", s.INT32), ("more", s.array(line)), ("note", replace(s.STRING, optional=True)), name="shop.Order"
    )
    value = {"id": 4, "more": [{"n": 1}], "note": None}
    assert converter.from_connect(unique_name, wide, value) == message(schema_id, RECORD, {"id": 4})
    assert converter.unwritten.found == {"more"}
    converter.unwritten.clear()
    assert converter.from_connect(unique_name, s.struct(("id", s.INT32), name="shop.Order"), {"id": 4})
    assert converter.unwritten.found == set()


def test_use_schema_id_writes_with_that_schema(
    make_converter: MakeConverter, schema_registry: Registry, unique_name: str
) -> None:
    schema_id = schema_registry.register(f"{unique_name}-other", RECORD)
    converter = make_converter(auto_register_schemas="false", use_schema_id=str(schema_id))
    small = s.struct(("id", s.INT32), name="shop.Order")
    assert converter.from_connect(unique_name, small, {"id": 4}) == message(schema_id, RECORD, {"id": 4})
    with pytest.raises(SchemaError, match=f"does not fit the schema {schema_id}: the value has the name Other"):
        converter.from_connect(unique_name, s.struct(("id", s.INT32), name="Other"), {"id": 4})


def test_value_that_does_not_fit_is_a_data_error(make_converter: MakeConverter, unique_name: str) -> None:
    with pytest.raises(DataError, match="does not fit its schema"):
        make_converter().from_connect(unique_name, ORDER, {"id": "x", "note": None})


def test_invalid_utf8_is_read_as_java_reads_it(
    make_converter: MakeConverter, schema_registry: Registry, unique_name: str
) -> None:
    schema_id = schema_registry.register(f"{unique_name}-value", '"string"')
    data = b"\0" + schema_id.to_bytes(4, "big") + b"\x04a\xff"
    converter = make_converter()
    assert converter.to_connect(unique_name, data).value == "a\ufffd"
    assert converter.to_columns(unique_name, pa.array([data])) is None


def test_json_schema_is_not_read_as_avro(
    make_converter: MakeConverter, schema_registry: Registry, unique_name: str
) -> None:
    schema_id = schema_registry.register(f"{unique_name}-value", JSON_SCHEMA, schemaType="JSON")
    with pytest.raises(DataError, match="of the kind JSON"):
        make_converter().to_connect(unique_name, b"\0" + schema_id.to_bytes(4, "big") + b"{}")

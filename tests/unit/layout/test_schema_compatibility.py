from dataclasses import replace

import pytest

from airflow_connect.api import schema as s
from airflow_connect.api.schema import Schema, Type
from airflow_connect.errors import SchemaError
from airflow_connect.layout.schema_compatibility import StorageSchemaCompatibility

NONE, BACKWARD, FORWARD, FULL = StorageSchemaCompatibility
V1 = s.struct(("id", s.INT32), name="Order", version=1)
V2 = s.struct(
    ("id", s.INT64), ("note", s.OPTIONAL_STRING), ("kind", replace(s.STRING, default="web")), name="Order", version=2
)


def one(schema: Schema, version: int = 1) -> Schema:
    return s.struct(("x", schema), version=version)


def test_unknown_names_mean_none():
    assert [StorageSchemaCompatibility.of(name) for name in ("BACKWARD", "FULL", "backward", "")] == [
        BACKWARD,
        FULL,
        NONE,
        NONE,
    ]


@pytest.mark.parametrize(
    ("mode", "newer_after_older", "older_after_newer"),
    [(NONE, True, True), (BACKWARD, True, False), (FULL, True, False), (FORWARD, False, True)],
)
def test_version_decides_when_a_new_file_starts(mode, newer_after_older, older_after_newer):
    older, newer = one(s.INT32, 1), one(s.INT32, 2)
    assert mode.should_change_file(newer, older) is newer_after_older
    assert mode.should_change_file(older, newer) is older_after_newer
    assert mode.should_change_file(older, older) is False
    assert mode.should_change_file(older, one(s.INT32, 1)) is False
    assert mode.should_change_file(None, None) is False


def test_none_starts_a_new_file_for_any_difference():
    assert NONE.should_change_file(one(s.INT32), s.struct(("x", s.INT32), version=1, name="named")) is True


@pytest.mark.parametrize("mode", list(StorageSchemaCompatibility))
def test_one_missing_schema_is_an_error(mode):
    for pair in ((None, V1), (V1, None)):
        with pytest.raises(SchemaError, match="Switch between schema-based and schema-less data is not supported"):
            mode.should_change_file(*pair)


@pytest.mark.parametrize("mode", [BACKWARD, FORWARD, FULL])
def test_versions_are_required_except_by_none(mode):
    bare = s.struct(("x", s.INT32))
    for pair in ((bare, V1), (V1, bare), (bare, bare)):
        with pytest.raises(SchemaError, match=f"Schema version required for {mode.value} compatibility"):
            mode.should_change_file(*pair)
    assert NONE.should_change_file(bare, bare) is False


@pytest.mark.parametrize(
    ("record", "current"),
    [
        (one(s.INT64), one(s.INT32)),
        (one(s.STRING), one(s.INT32)),
        (one(s.OPTIONAL_STRING), one(s.STRING)),
        (s.struct(version=1), one(s.STRING)),
        (one(replace(s.STRING, name="a")), one(replace(s.STRING, name="b"))),
        (one(s.decimal(2)), one(s.decimal(3))),
    ],
)
def test_schemas_that_cannot_be_projected_start_a_new_file_whatever_the_version(record, current):
    assert BACKWARD.should_change_file(record, current) is True
    assert FORWARD.should_change_file(record, current) is True


def test_older_record_is_promoted_and_completed():
    assert BACKWARD.project(V1, {"id": 5}, V2) == {"id": 5, "note": None, "kind": "web"}


def test_newer_record_loses_the_fields_that_the_file_does_not_have():
    wide = s.struct(("id", s.INT32), ("note", s.STRING), name="Order", version=2)
    assert FORWARD.project(wide, {"id": 5, "note": "x"}, V1) == {"id": 5}


def test_none_and_the_same_schema_leave_the_value_alone():
    value = {"id": 5}
    assert NONE.project(V1, value, V2) is value
    assert BACKWARD.project(V1, value, V1) is value
    assert BACKWARD.project(None, value, None) is value


def test_members_of_arrays_maps_and_structs_are_projected():
    def nested(number: Schema) -> Schema:
        inner = s.struct(("n", number))
        return s.struct(("list", s.array(inner)), ("map", s.map_of(s.STRING, number)), version=1)

    value = {"list": [{"n": 1}, {"n": 2}], "map": {"a": 3}}
    projected = BACKWARD.project(nested(s.INT8), value, nested(s.FLOAT64))
    assert projected == value
    assert [type(entry["n"]) for entry in projected["list"]] == [float, float]
    assert type(projected["map"]["a"]) is float


def test_integers_become_the_nearest_float():
    assert BACKWARD.project(one(s.INT32), {"x": 16777217}, one(s.FLOAT32)) == {"x": 16777216.0}


def test_default_of_the_file_stands_for_a_missing_optional_value():
    current = one(replace(s.STRING, default="none"))
    assert BACKWARD.project(one(s.OPTIONAL_STRING), {"x": None}, current) == {"x": "none"}
    assert BACKWARD.project(one(s.OPTIONAL_STRING), {"x": "a"}, current) == {"x": "a"}


def test_default_of_the_record_stands_for_a_missing_value():
    record = one(Schema(Type.STRING, optional=True, default="d"))
    assert BACKWARD.project(record, {"x": None}, one(replace(s.OPTIONAL_STRING, doc="wider"))) == {"x": "d"}


@pytest.mark.parametrize(
    ("record", "current", "message"),
    [
        (
            one(s.STRING),
            one(s.INT8),
            "Error projecting x: Schema type mismatch. source type: STRING and target type: INT8",
        ),
        (one(s.INT64), one(s.INT32), "Schema type mismatch. source type: INT64 and target type: INT32"),
        (one(replace(s.INT8, name="a")), one(s.INT8), "Schema name mismatch. source name: a and target name: None"),
        (
            one(s.OPTIONAL_INT8),
            one(s.INT8),
            "Writer schema is optional, however, target schema does not provide a default",
        ),
        (s.struct(version=1), one(s.INT8), "Required field `x` is missing from source schema"),
        (one(s.decimal(1)), one(s.decimal(2)), "Schema parameters not equal. source parameters: {'scale': '1'}"),
    ],
)
def test_values_that_cannot_be_projected_say_why(record, current, message):
    with pytest.raises(SchemaError) as caught:
        BACKWARD.project(record, {"x": None}, current)
    assert message in caught.value.message


def test_enum_symbols_of_the_record_must_be_among_those_of_the_file():
    def enum(*symbols: str) -> Schema:
        parameters = {"io.confluent.connect.avro.Enum": "Kind", **{f"Kind.{symbol}": symbol for symbol in symbols}}
        return one(replace(s.STRING, parameters=parameters))

    assert BACKWARD.project(enum("A"), {"x": "A"}, enum("A", "B")) == {"x": "A"}
    with pytest.raises(SchemaError, match="is not a subset of target parameters"):
        BACKWARD.project(enum("A", "C"), {"x": "A"}, enum("A", "B"))


def test_documentation_in_parameters_does_not_matter():
    old = one(replace(s.STRING, parameters={"connect.record.doc": "old", "p": "1"}))
    new = one(replace(s.STRING, parameters={"io.confluent.connect.avro.field.doc.x": "new", "p": "1"}))
    assert BACKWARD.project(old, {"x": "a"}, new) == {"x": "a"}

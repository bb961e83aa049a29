import pytest

from airflow_connect.api import schema as s
from airflow_connect.api.record import SinkRecord
from airflow_connect.errors import ConfigError, DataError
from airflow_connect.layout.timestamp_extractors import extractor

NOW = 1_700_000_000_000
NESTED = s.struct(("outer", s.struct(("at", s.INT64), optional=True)))


def record(value, schema=None, timestamp=None):
    return SinkRecord(topic="t", partition=1, value_schema=schema, value=value, offset=7, timestamp=timestamp)


def from_field(field, value, schema=None):
    return extractor("RecordField", field).extract_ms(record(value, schema), NOW)


def test_wallclock_is_the_clock_of_the_run():
    assert extractor("Wallclock", "").extract_ms(record(None, timestamp=5), NOW) == NOW


def test_record_is_the_timestamp_of_the_record_or_nothing():
    assert extractor("Record", "").extract_ms(record(None, timestamp=5), NOW) == 5
    assert extractor("Record", "").extract_ms(record(None), NOW) is None


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (s.INT32, 12345, 12345),
        (s.INT64, -1, -1),
        (s.timestamp(), 1735562096789, 1735562096789),
        (s.STRING, "1735562096789", 1735562096789),
        (s.STRING, "-5", -5),
        (s.STRING, "2024", 2024),  # digits are milliseconds, not a year
        (s.STRING, "2024-12-30T12:34:56.789Z", 1735562096789),
        (s.STRING, "2024-12-30", 1735516800000),
    ],
)
def test_struct_fields_of_all_supported_types_are_read(schema, value, expected):
    assert from_field("at", {"at": value}, s.struct(("at", schema))) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(5, 5), (5.9, 5), (-5.9, -5), (float("nan"), 0), (float("inf"), 2**63 - 1), (float("-inf"), -(2**63)), ("5", 5)],
)
def test_map_values_are_cut_to_whole_milliseconds_as_in_java(value, expected):
    assert from_field("at", {"at": value}) == expected


def test_nested_fields_are_reached_by_dots():
    assert from_field("outer.at", {"outer": {"at": 9}}, NESTED) == 9
    assert from_field("outer.at", {"outer": {"at": 9}}) == 9


def test_map_schema_is_read_like_a_map():
    assert from_field("at", {"at": 4}, s.map_of(s.STRING, s.INT64)) == 4


@pytest.mark.parametrize(
    ("field", "value", "schema", "message"),
    [
        ("at", None, None, "Error encoding partition."),
        ("at", "text", s.STRING, "Error encoding partition."),
        (
            "at",
            {"at": 1.5},
            s.struct(("at", s.FLOAT64)),
            "Error extracting timestamp from record field: at has type double",
        ),
        ("at", {"at": 1}, s.struct(("at", s.INT16)), "Error extracting timestamp from record field: at"),
        (
            "at",
            {"at": None},
            s.struct(("at", s.OPTIONAL_INT64)),
            "Error extracting timestamp from record field: at is null",
        ),
        ("no", {"at": 1}, s.struct(("at", s.INT64)), "The field named 'no' does not exist."),
        ("outer.no", {"outer": {"at": 1}}, NESTED, "The nested field named 'outer.no' does not exist."),
        ("outer.at", {"outer": None}, NESTED, "Error extracting timestamp from record field: outer.at is null"),
        ("a.b", {"a": {}}, None, "Unable to find nested field 'b'"),
        ("a", {}, None, "Error extracting timestamp from record field: a is missing"),
        ("a", {"a": True}, None, "Error extracting timestamp from record field: a has type bool"),
        ("a", {"a": [1]}, None, "Error extracting timestamp from record field: a has type list"),
        ("a", {"a": "noon"}, None, 'Invalid format: "noon"'),
        ("a", {"a": "9999999999999999999"}, None, 'For input string: "9999999999999999999"'),
    ],
)
def test_records_without_a_usable_timestamp_say_why_and_where(field, value, schema, message):
    with pytest.raises(DataError) as caught:
        from_field(field, value, schema)
    assert message in caught.value.message
    assert "t-1@7" in caught.value.message


def test_unknown_extractor_is_refused_and_class_names_are_known():
    with pytest.raises(ConfigError, match=r"Invalid timestamp extractor: com\.example\.Mine") as caught:
        extractor("com.example.Mine", "")
    assert caught.value.config_path == "timestamp.extractor"
    for name in ("Wallclock", "Record", "RecordField"):
        short = extractor(name, "at")
        assert type(extractor(short.java_class, "at")) is type(short)

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.api import schema as s
from airflow_connect.api.record import SinkRecord
from airflow_connect.errors import ConfigError, DataError
from airflow_connect.layout.partitioners import (
    Affix,
    DefaultPartitioner,
    FieldPartitioner,
    SchemaAffixPartitioner,
    TimeBasedPartitioner,
    TombstonePartitioner,
    daily_partitioner,
    hourly_partitioner,
)
from airflow_connect.layout.time.date_patterns import compile_pattern
from airflow_connect.layout.time.time_zones import Zone
from airflow_connect.layout.timestamp_extractors import extractor

NOW = 1_700_000_000_000  # 2023-11-14T22:13:20Z
RECORD = extractor("Record", "")
HOUR, DAY = 3_600_000, 86_400_000
ORDER = s.struct(("id", s.INT64), ("country", s.OPTIONAL_STRING), ("paid", s.BOOLEAN), name="shop.Order")


def record(value=None, schema=None, timestamp=None, partition=3):
    return SinkRecord(
        topic="orders", partition=partition, value_schema=schema, value=value, offset=7, timestamp=timestamp
    )


def time_based(duration=HOUR, path="'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH", zone="UTC", source=RECORD):
    return TimeBasedPartitioner.from_texts(duration, path, "en", zone, source)


def test_default_directory_is_the_kafka_partition():
    assert DefaultPartitioner().directory(record(), NOW) == "partition=3"
    assert DefaultPartitioner().timestamp_ms(record(timestamp=1), NOW) is None
    assert not DefaultPartitioner().is_time_based


@pytest.mark.parametrize(
    ("fields", "value", "expected"),
    [
        (["id"], {"id": 5, "country": "de", "paid": True}, "id=5"),
        (["country", "paid"], {"id": 5, "country": "de", "paid": False}, "country=de/paid=false"),
        (["country"], {"id": 5, "country": None, "paid": True}, "country=null"),
        # As in Confluent's connector, the text shares the directory of null.
        (["country"], {"id": 5, "country": "null", "paid": True}, "country=null"),
        (["country"], {"id": 5, "country": "", "paid": True}, "country="),
        (["country"], {"id": 5, "country": "a/../b", "paid": True}, "country=a%2F..%2Fb"),
    ],
)
def test_field_directory_names_fields_and_values(fields, value, expected):
    assert FieldPartitioner(fields).directory(record(value, ORDER), NOW) == expected


@pytest.mark.parametrize(("outer", "expected"), [({"inner": 4}, "outer.inner=4"), (None, "outer.inner=null")])
def test_nested_field_keeps_its_dotted_name(outer, expected):
    schema = s.struct(("outer", s.struct(("inner", s.INT8), optional=True)))
    assert FieldPartitioner(["outer.inner"]).directory(record({"outer": outer}, schema), NOW) == expected


@pytest.mark.parametrize(
    ("value", "schema", "message"),
    [
        ({"id": 1}, None, "Error encoding partition."),
        ("text", s.STRING, "Error encoding partition."),
        (None, None, "Error encoding partition."),
        ({"id": 1.5}, s.struct(("id", s.FLOAT64)), "Error encoding partition. Type double"),
        ({"id": 1}, s.struct(("id", s.date())), "Error encoding partition. Type org.apache.kafka.connect.data.Date"),
        ({"x": 1}, s.struct(("x", s.INT8)), "The field named 'id' does not exist."),
    ],
)
def test_records_without_the_field_fail_with_confluents_words_and_the_offset(value, schema, message):
    with pytest.raises(DataError) as caught:
        FieldPartitioner(["id"]).directory(record(value, schema), NOW)
    assert message in caught.value.message
    assert "orders-3@7" in caught.value.message


@pytest.mark.parametrize("fields", [[], [""], [" "], ["a", ""], ["a..b"], [".a"]])
def test_field_names_must_not_be_empty(fields):
    with pytest.raises(ConfigError) as caught:
        FieldPartitioner(fields)
    assert caught.value.config_path == "partition.field.name"


def test_daily_and_hourly_directories_have_confluents_paths():
    assert daily_partitioner("en", "UTC", RECORD).directory(record(timestamp=NOW), 0) == "year=2023/month=11/day=14"
    hourly = hourly_partitioner("en", "Asia/Tokyo", RECORD, "_")
    assert hourly.directory(record(timestamp=NOW), 0) == "year=2023_month=11_day=15_hour=07"


def test_wallclock_directory_is_that_of_the_runs_clock():
    partitioner = daily_partitioner("en", "UTC", extractor("Wallclock", ""))
    assert partitioner.directory(record(timestamp=5), NOW) == "year=2023/month=11/day=14"
    assert partitioner.timestamp_ms(record(timestamp=5), NOW) == NOW


def test_buckets_begin_where_they_begin_at_joda(recorded):
    iso = "yyyy-MM-dd'T'HH:mm:ss.SSSZZ"
    for row in recorded("bucket"):
        partitioner = time_based(row["duration"], iso, row["zone"])
        text = compile_pattern(iso, "en", Zone.of(row["zone"]))
        for ms, bucket in zip(row["ms"], row["buckets"], strict=True):
            assert partitioner.directory_of_timestamp(ms) == text(bucket), (row["zone"], row["duration"], ms)


def test_both_hours_of_the_same_name_share_a_directory_when_daylight_saving_ends():
    partitioner = time_based(zone="Europe/Berlin")
    hours = [partitioner.directory_of_timestamp(1729981800000 + hour * HOUR)[-7:] for hour in range(4)]
    assert hours == ["hour=00", "hour=01", "hour=02", "hour=02"]  # 22:30Z, 23:30Z, 00:30Z, 01:30Z on 2024-10-27


def test_record_without_timestamp_fails_with_confluents_words():
    with pytest.raises(DataError, match=r"Unable to determine timestamp using timestamp\.extractor io\.confluent"):
        time_based().directory(record(), NOW)


@pytest.mark.parametrize(
    ("changes", "config_path", "message"),
    [
        ({"duration": 0}, "partition.duration.ms", "needs to be a positive"),
        ({"duration": -1}, "partition.duration.ms", "needs to be a positive"),
        ({"path": ""}, "path.format", "Path format cannot be empty."),
        ({"path": "/"}, "path.format", "Path format cannot be empty."),
        ({"path": "'..'/YYYY"}, "path.format", "must not contain"),
        ({"path": "year='YYYY'"}, "path.format", "Illegal pattern component"),
        ({"zone": ""}, "timezone", "Timezone cannot be empty."),
        ({"zone": "Mars/Olympus"}, "timezone", "is not recognised"),
    ],
)
def test_wrong_settings_name_their_key(changes, config_path, message):
    with pytest.raises(ConfigError, match=message) as caught:
        time_based(**changes)
    assert caught.value.config_path == config_path


def test_trailing_delimiter_of_the_path_is_dropped():
    assert time_based(path="YYYY/").directory_of_timestamp(NOW) == "2023"


ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "Pacific/Apia", "-03:30"])
PATHS = st.sampled_from(["'y'=YYYY/'m'=MM/'d'=dd/'h'=HH/'m'=mm", "YYYY", "'s'=ss.SSS", "yyyy-MM-dd'T'HHZ"])
DURATIONS = st.sampled_from([1, 1000, 60_000, 5_400_000, HOUR, 7 * HOUR, DAY, 30 * DAY])
TIMESTAMPS = st.lists(
    st.one_of(
        st.integers(NOW, NOW + 1000),
        st.integers(1_697_000_000_000, 1_712_000_000_000),
        st.integers(-DAY, DAY),
        st.integers(-(2**63), 2**63 - 1),
    ),
    max_size=40,
)


@given(TIMESTAMPS, ZONES, PATHS, DURATIONS)
def test_directories_of_many_timestamps_equal_the_directories_of_each(timestamps, zone, path, duration):
    partitioner = time_based(duration, path, zone)
    codes, names = partitioner.directories_of_timestamps(np.array(timestamps, dtype=np.int64))
    assert codes.dtype == np.int32
    assert len(set(names)) == len(names)
    assert [names[code] for code in codes] == [partitioner.directory_of_timestamp(ms) for ms in timestamps]


@given(TIMESTAMPS, ZONES, PATHS, DURATIONS)
def test_regex_matches_every_time_based_directory(timestamps, zone, path, duration):
    partitioner = time_based(duration, path, zone)
    regex = re.compile(partitioner.directory_regex())
    assert all(regex.fullmatch(partitioner.directory_of_timestamp(ms)) for ms in timestamps)


@given(st.lists(st.one_of(st.text(), st.integers(), st.booleans(), st.none()), min_size=2, max_size=2))
def test_regex_matches_every_field_directory(values):
    partitioner = FieldPartitioner(["a.b", "c"])
    assert re.fullmatch(partitioner.directory_regex(), partitioner.directory_of_values(values))


def test_regexes_refuse_directories_of_others():
    assert not re.fullmatch(DefaultPartitioner().directory_regex(), "partition=01")
    assert not re.fullmatch(FieldPartitioner(["a", "b"]).directory_regex(), "a=1/b=2/c=3")
    assert not re.fullmatch(FieldPartitioner(["a.b"]).directory_regex(), "axb=1")
    assert not re.fullmatch(time_based().directory_regex(), "year=2024/month=1/day=01/hour=00")


@pytest.mark.parametrize(
    ("affix", "expected"),
    [
        (Affix.PREFIX, "schema_name=shop.Order/id=5"),
        (Affix.SUFFIX, "id=5/schema_name=shop.Order"),
        (Affix.NONE, "id=5"),
    ],
)
def test_schema_affix_stands_where_the_type_says(affix, expected):
    partitioner = SchemaAffixPartitioner(FieldPartitioner(["id"]), affix)
    assert partitioner.directory(record({"id": 5}, ORDER), NOW) == expected
    assert re.fullmatch(partitioner.directory_regex(), expected)


def test_missing_and_nameless_schemas_are_called_null():
    partitioner = SchemaAffixPartitioner(DefaultPartitioner(), Affix.PREFIX)
    assert partitioner.directory(record({}), NOW) == "schema_name=null/partition=3"
    assert partitioner.directory(record(5, s.INT8), NOW) == "schema_name=null/partition=3"


def test_tombstones_have_their_own_directory_and_everything_else_keeps_its_own():
    inner = SchemaAffixPartitioner(time_based(), Affix.PREFIX)
    partitioner = TombstonePartitioner(inner, "tombstone")
    assert partitioner.directory(record(None, timestamp=NOW), NOW) == "tombstone"
    assert partitioner.directory(record({}, timestamp=NOW), NOW) == inner.directory(record({}, timestamp=NOW), NOW)
    assert partitioner.is_time_based
    assert partitioner.timestamp_ms(record(None, timestamp=NOW), 0) == NOW
    for directory in ("tombstone", "schema_name=null/year=2023/month=11/day=14/hour=22"):
        assert re.fullmatch(partitioner.directory_regex(), directory)


def test_tombstone_without_the_field_of_its_timestamp_has_none():
    inner = SchemaAffixPartitioner(time_based(source=extractor("RecordField", "at")), Affix.SUFFIX)
    assert TombstonePartitioner(inner, "tombstone").timestamp_ms(record(None, timestamp=NOW), NOW) is None


@pytest.mark.parametrize("name", ["", "..", "a/../b"])
def test_tombstone_directory_must_be_one(name):
    with pytest.raises(ConfigError) as caught:
        TombstonePartitioner(DefaultPartitioner(), name)
    assert caught.value.config_path == "tombstone.encoded.partition"

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.api.errors import ConfigError, DataError
from airflow_connect.layout.object_names import (
    HEADERS,
    KEYS,
    NameSettings,
    ObjectName,
    is_legal_topic,
    keys_extension,
    object_key,
    parse_object_key,
    under_renamed_topic,
    without_topic,
)

DEFAULT = NameSettings()


def test_key_has_the_grammar_of_confluent():
    key = object_key("partition=12", "test-topic", 12, 0, ".avro", DEFAULT)
    assert key == "topics/test-topic/partition=12/test-topic+12+0000000000.avro"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (NameSettings(topics_dir=""), "t/d/t+3+0000000042.json"),
        (NameSettings(topics_dir="  "), "t/d/t+3+0000000042.json"),
        (NameSettings(topics_dir="a/b", pad_width=0), "a/b/t/d/t+3+42.json"),
        (NameSettings(directory_delimiter="_", file_delimiter="#", pad_width=3), "topics_t_d_t#3#042.json"),
        (NameSettings(pad_width=1), "topics/t/d/t+3+42.json"),
    ],
)
def test_settings_change_the_key(names, expected):
    assert object_key("d", "t", 3, 42, ".json", names) == expected


def test_keys_and_headers_come_before_the_extension():
    assert keys_extension(".avro", KEYS) == ".keys.avro"
    assert keys_extension(".snappy.parquet", HEADERS) == ".headers.snappy.parquet"


TOPICS = st.from_regex("[A-Za-z0-9._-]{1,20}", fullmatch=True).filter(lambda topic: topic not in (".", ".."))
SETTINGS = st.builds(
    NameSettings,
    topics_dir=st.sampled_from(["topics", "", "a/b", "raw data", "t+0+0"]),
    directory_delimiter=st.sampled_from(["/", "_", "|", "--"]),
    file_delimiter=st.sampled_from(["+", "#", "-", "/"]),
    pad_width=st.integers(0, 20),
)
DIRECTORIES = st.sampled_from(["partition=0", "f=a/g=+1+2", "year=2024/month=01", "x_y=_", "f=", "f=a--b"])


@given(DIRECTORIES, TOPICS, st.integers(0, 10**6), st.integers(0, 2**63 - 1), SETTINGS)
def test_key_of_a_known_topic_is_read_back(directory, topic, partition, start, names):
    for extension in (".avro", ".keys.avro", ".snappy.parquet", ".json.gz", ""):
        key = object_key(directory, topic, partition, start, extension, names)
        assert parse_object_key(key, names, topic) == ObjectName(topic, directory, partition, start, extension)


@given(DIRECTORIES, TOPICS, st.integers(0, 100), st.integers(0, 10**12))
def test_key_with_slashes_is_read_back_without_knowing_the_topic(directory, topic, partition, start):
    key = object_key(directory, topic, partition, start, ".json", DEFAULT)
    assert parse_object_key(key, DEFAULT) == ObjectName(topic, directory, partition, start, ".json")


@pytest.mark.parametrize(
    "key",
    [
        "other/t/partition=0/t+0+0000000000.avro",
        "topics/t/partition=0/u+0+0000000000.avro",
        "topics/t/partition=0/t+0+0.avro",
        "topics/t/partition=0/t+00+0000000000.avro",
        "topics/t/partition=0/t+0+00000000000.avro",
        "topics/t/partition=0/t+0.avro",
        "topics/t/t+0+0000000000.avro",
        "topics/t/partition=0/_SUCCESS",
        "",
    ],
)
def test_keys_of_others_are_not_taken_for_ours(key):
    assert parse_object_key(key, DEFAULT) is None


def test_key_under_a_renamed_topic_has_both_names():
    directory = under_renamed_topic("merged", "a=1/b=2")
    key = object_key(directory, "old.topic", 3, 42, ".json", DEFAULT)
    assert key == "topics/merged/a=1/b=2/old.topic+3+0000000042.json"
    assert (without_topic(directory), without_topic("a=1/b=2")) == ("a=1/b=2", "a=1/b=2")


@pytest.mark.parametrize("topic", ["a", "A-1_b.c", "...", "x" * 249])
def test_topic_that_kafka_allows_is_legal(topic):
    assert is_legal_topic(topic)


@pytest.mark.parametrize("topic", ["", ".", "..", "a/b", "a b", "a\\b", "é", "a\n", "\0", "x" * 250, "²"])
def test_topic_that_kafka_does_not_allow_is_not_legal(topic):
    assert not is_legal_topic(topic)


def test_key_of_1024_bytes_fits_and_one_more_does_not():
    room = 1024 - len(object_key("", "t", 0, 0, ".json", DEFAULT))
    assert len(object_key("d" * room, "t", 0, 0, ".json", DEFAULT)) == 1024
    with pytest.raises(DataError, match="longer than 1024 bytes") as caught:
        object_key("é" * (room // 2 + 1), "t", 0, 0, ".json", DEFAULT)
    assert caught.value.code == "data.key_too_long"


@pytest.mark.parametrize(
    ("settings", "config_path"),
    [
        ({"pad_width": -1}, "filename.offset.zero.pad.width"),
        ({"topics_dir": "a/../b"}, "topics.dir"),
        ({"directory_delimiter": ""}, "directory.delim"),
        ({"file_delimiter": "0"}, "file.delim"),
    ],
)
def test_settings_that_make_ambiguous_keys_are_refused(settings, config_path):
    with pytest.raises(ConfigError) as caught:
        NameSettings(**settings)
    assert caught.value.config_path == config_path

import pytest

from airflow_connect.errors import ConfigError, DataError
from airflow_connect.layout.names.object_names import (
    HEADERS,
    KEYS,
    NameSettings,
    is_legal_topic,
    keys_extension,
    object_key,
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

"""The prefix of a message, subjects, and the keys that registry converters share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.errors import ConfigError, DataError
from airflow_connect.registry.converters.avro_converter import AvroConverter
from airflow_connect.registry.settings import WritingSettings, shared_keys
from airflow_connect.registry.subject_names import subject_names
from airflow_connect.registry.wire_format import PREFIX_BYTES, prefix, read_schema_id

URL = {"schema.registry.url": "http://127.0.0.1:1"}


def own_names(topic: str, is_key: bool, record_name: str | None) -> str:
    """A strategy as a third party may write it."""
    return f"{topic}/{record_name}/{is_key}"


@given(st.integers(0, (1 << 32) - 1), st.binary(max_size=9))
def test_prefix_is_read_back(schema_id: int, data: bytes) -> None:
    assert len(prefix(schema_id)) == PREFIX_BYTES
    assert read_schema_id(prefix(schema_id) + data) == schema_id


@given(st.binary(max_size=80).filter(lambda data: len(data) < PREFIX_BYTES or data[0] != 0))
def test_read_schema_id_any_other_bytes_are_a_data_error_without_the_data(data: bytes) -> None:
    with pytest.raises(DataError) as caught:
        read_schema_id(data)
    assert caught.value.code in ("data.truncated", "data.magic_byte")
    assert caught.value.suggestion


@pytest.mark.parametrize(
    ("name", "subject"),
    [
        ("TopicNameStrategy", "t-key"),
        ("io.confluent.kafka.serializers.subject.RecordNameStrategy", "n.R"),
        ("TopicRecordNameStrategy", "t-n.R"),
        (f"{__name__}:own_names", "t/n.R/True"),
    ],
)
def test_subject_names_java_names_short_names_and_own_functions(name: str, subject: str) -> None:
    assert subject_names(name, "key.subject.name.strategy")("t", True, "n.R") == subject


@pytest.mark.parametrize("name", ["OtherStrategy", "no.such.module:name", "airflow_connect.errors:__name__"])
def test_subject_names_unknown_name_is_a_config_error(name: str) -> None:
    with pytest.raises(ConfigError, match=r"cannot be loaded|no such subject name strategy"):
        subject_names(name, "value.subject.name.strategy")


def test_writing_settings_take_the_strategy_of_key_or_value() -> None:
    parsed = shared_keys().parse({**URL, "key.subject.name.strategy": "RecordNameStrategy", "use.schema.id": "7"})
    key, value = WritingSettings(parsed, True), WritingSettings(parsed, False)
    assert (key.subject("t", "n.R"), value.subject("t", "n.R")) == ("n.R", "t-value")
    assert (key.use_id, key.auto_register, key.normalize) == (7, True, False)


@pytest.mark.parametrize(
    ("misspelled", "known"),
    [
        ("schema.registry.urls", "schema.registry.url"),
        ("auto.register.schema", "auto.register.schemas"),
        ("flatten.singleton.unions", "flatten.singleton.union"),
        ("enhanced.avro.schemas.support", "enhanced.avro.schema.support"),
    ],
)
def test_config_def_unknown_key_has_the_nearest_known_name(misspelled: str, known: str) -> None:
    assert [tuple(found) for found in AvroConverter.config_def.unknown_keys([misspelled])] == [(misspelled, known)]


def test_config_def_secrets_are_passwords() -> None:
    assert {"basic.auth.user.info", "bearer.auth.token", "schema.registry.ssl.key.password", "sasl.jaas.config"} <= (
        AvroConverter.config_def.secret_names
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [("auto.register.schemas", "maybe"), ("use.schema.id", "x"), ("value.subject.name.strategy", "None"),
     ("connect.meta.data", "1"), ("max.retries", "-1"), ("schemas.cache.config", "many")],
)  # fmt: skip
def test_configure_wrong_value_names_its_key(key: str, value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        AvroConverter().configure({**URL, key: value})
    assert caught.value.config_path == key

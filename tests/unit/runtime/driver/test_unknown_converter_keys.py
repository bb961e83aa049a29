"""Keys of converters that their converter does not know are named, with the key that was probably meant."""

from __future__ import annotations

import pytest

from airflow_connect.runtime.driver.entry import validate_connector
from airflow_connect.runtime.spec import RunSpec

WORKER = {"bootstrap.servers": "broker:9092", "key.converter": "StringConverter", "value.converter": "JsonConverter"}
CONNECTOR = {
    "name": "orders",
    "connector.class": "S3SinkConnector",
    "topics": "orders",
    "s3.bucket.name": "bucket",
    "s3.region": "eu-central-1",
    "format.class": "ParquetFormat",
    "storage.class": "S3Storage",
    "flush.size": "10",
    "value.converter": "AvroConverter",
    "value.converter.schema.registry.url": "http://registry:8081",
}


def test_validate_unknown_key_of_a_converter_names_the_nearest() -> None:
    typo = {"value.converter.auto.register.schema": "false"}
    (finding,) = validate_connector(RunSpec({**CONNECTOR, **typo}, WORKER))
    assert (finding["key"], finding["level"]) == ("value.converter.auto.register.schema", "unknown")
    assert finding["suggestion"] == "Did you mean value.converter.auto.register.schemas?"


def test_validate_known_keys_and_families_of_a_converter_have_no_findings() -> None:
    known = {
        "value.converter.enhanced.avro.schema.support": "true",
        "value.converter.request.header.X-Tenant": "a",
        "value.converter.schema.registry.ssl.truststore.password": "x",
    }
    assert validate_connector(RunSpec({**CONNECTOR, **known}, WORKER)) == []


def test_validate_strategy_without_its_part_names_that_of_the_value() -> None:
    (finding,) = validate_connector(
        RunSpec({**CONNECTOR, "value.converter.subject.name.strategy": "RecordNameStrategy"}, WORKER)
    )
    assert finding["suggestion"] == "Did you mean value.converter.value.subject.name.strategy?"


def test_validate_strategy_without_its_part_names_that_of_the_key() -> None:
    of_key = {
        "key.converter": "AvroConverter",
        "key.converter.schema.registry.url": "http://registry:8081",
        "key.converter.subject.name.strategy": "RecordNameStrategy",
    }
    (finding,) = validate_connector(RunSpec({**CONNECTOR, **of_key}, WORKER))
    assert finding["suggestion"] == "Did you mean key.converter.key.subject.name.strategy?"


def test_validate_misspelt_key_of_the_json_converter_is_named() -> None:
    json_keys = {"value.converter": "JsonConverter", "value.converter.strict.type": "true"}
    connector = {key: value for key, value in CONNECTOR.items() if not key.startswith("value.converter")}
    (finding,) = validate_connector(RunSpec({**connector, **json_keys}, WORKER))
    assert (finding["level"], finding["suggestion"]) == ("unknown", "Did you mean value.converter.strict.types?")


@pytest.mark.parametrize("converter", ["StringConverter", "ByteArrayConverter", "LongConverter", "BooleanConverter"])
def test_validate_strict_types_beside_a_converter_without_it_is_named(converter: str) -> None:
    others = {key: value for key, value in CONNECTOR.items() if not key.startswith("value.converter.")}
    config = {**others, "value.converter": converter, "value.converter.strict.types": "true"}
    found = validate_connector(RunSpec({**config, "format.class": "JsonFormat"}, WORKER))
    assert [(f["key"], f["level"]) for f in found] == [("value.converter.strict.types", "unknown")]


def test_validate_key_of_the_string_converter_is_known() -> None:
    config = {"key.converter": "StringConverter", "key.converter.converter.encoding": "UTF-16"}
    assert validate_connector(RunSpec({**CONNECTOR, **config}, WORKER)) == []


def test_check_converters_names_unknown_keys_of_a_run_in_one_note() -> None:
    from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration

    typos = {
        "value.converter.auto.register.schema": "geheim",
        "flush.on.edn": "geheim",
        "header.converter": "SimpleHeaderConverter",
        "header.converter.zone": "geheim",
    }
    assert SinkConfiguration.from_spec(RunSpec(CONNECTOR, WORKER)).check_converters() == ()
    (note,) = SinkConfiguration.from_spec(RunSpec({**CONNECTOR, **typos}, WORKER)).check_converters()
    assert note == (
        "3 unknown keys have no effect: flush.on.edn (did you mean flush.on.end?), value.converter.auto.register.schema"
        " (did you mean value.converter.auto.register.schemas?), header.converter.zone."
    )

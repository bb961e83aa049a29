"""Keys of converters that their converter does not know are named, with the key that was probably meant."""

from __future__ import annotations

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

"""What is meant to differ from Kafka Connect and no recording shows: docs/transformations.md lists it."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest

from airflow_connect.api import schema as schemas
from airflow_connect.api.record import SinkRecord
from airflow_connect.api.schema import Schema, struct
from airflow_connect.errors import ConfigError, DataError
from airflow_connect.transforms.fields.cast import Cast
from airflow_connect.transforms.fields.flatten import Flatten
from airflow_connect.transforms.fields.insert_field import InsertField
from airflow_connect.transforms.fields.mask_field import MaskField
from airflow_connect.transforms.fields.timestamp_converter import TimestampConverter


def record(schema: Schema | None, value: object) -> SinkRecord:
    return SinkRecord(topic="orders", partition=3, offset=9, value_schema=schema, value=value)


def mask(**config: str) -> MaskField.Value:
    transformation = MaskField.Value()
    transformation.configure({"fields": "price", **config})
    return transformation


def convert(**config: str) -> TimestampConverter.Value:
    transformation = TimestampConverter.Value()
    transformation.configure(
        {"target.type": "Timestamp"} | {key.replace("_", "."): text for key, text in config.items()}
    )
    return transformation


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, "0.00"),
        ({"replacement": "7"}, "7.00"),
        ({"replacement": "-7.5"}, "-7.50"),
        ({"replacement": "1e2"}, "100.00"),
        # More digits than the scale has: the converter says that the scale is wrong, as in Connect.
        ({"replacement": "1.125"}, "1.125"),
    ],
)
def test_mask_decimal_takes_the_scale_of_the_schema(config: dict[str, str], expected: str) -> None:
    schema = struct(("price", schemas.decimal(2)))
    masked = mask(**config).apply(record(schema, {"price": Decimal("19.99")}))
    assert str(masked.value["price"]) == expected


def test_mask_decimal_without_schema_is_zero() -> None:
    assert str(mask().apply(record(None, {"price": Decimal("19.99")})).value["price"]) == "0"


def test_convert_text_without_format_asks_for_one() -> None:
    with pytest.raises(DataError, match=r"no pattern is configured\. Set format to the pattern"):
        convert().apply(record(schemas.STRING, "2023-11-14"))


def test_convert_schemaless_date_beyond_year_9999_says_so() -> None:
    with pytest.raises(DataError, match=r"outside the years 1 to 9999\. Check unix\.precision"):
        convert().apply(record(None, 1_700_000_000_000_000))
    assert convert().apply(record(schemas.INT64, 1_700_000_000_000_000)).value == 1_700_000_000_000_000


def test_convert_schemaless_dates_are_datetimes_in_utc() -> None:
    moment = datetime.datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=datetime.UTC)
    assert convert().apply(record(None, 1_700_000_000_123)).value == moment
    assert convert(target_type="unix").apply(record(None, moment)).value == 1_700_000_000_123
    assert convert(target_type="Date").apply(record(None, moment)).value == moment.replace(
        hour=0, minute=0, second=0, microsecond=0
    )


def test_convert_week_letters_can_be_written_but_not_read() -> None:
    weeks = convert(target_type="string", format="YYYY-'W'ww")
    assert weeks.apply(record(schemas.INT64, 1_700_000_000_123)).value == "2023-W46"
    with pytest.raises(DataError, match="pattern letter Y"):
        convert(format="YYYY-'W'ww").apply(record(schemas.STRING, "2023-W46"))


@pytest.mark.parametrize("spec", ["id:decimal", "id:int32:int64", "id:"])
def test_cast_wrong_spec_blames_the_key_spec(spec: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Cast.Value().configure({"spec": spec})
    assert caught.value.config_path == "spec"


def test_insert_static_field_without_value_names_the_field() -> None:
    with pytest.raises(ConfigError) as caught:
        InsertField.Value().configure({"static.field": "source!"})
    assert caught.value.config_path == "static.value"
    assert "static field: source." in caught.value.message


@pytest.mark.parametrize("value", [{"a": {"b": 1}, "a.b": 2}, {"a.b": 2, "a": {"b": 1}}])
def test_flatten_refuses_two_members_of_one_name(value: object) -> None:
    flatten = Flatten.Value()
    flatten.configure({})
    with pytest.raises(DataError, match=r"Two members of the flattened record would have the name a\.b"):
        flatten.apply(record(None, value))

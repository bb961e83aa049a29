"""Fields that a converter of a source leaves out are counted once for each record that was converted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from airflow_connect.api import schema as s
from airflow_connect.api.record import SourceRecord
from airflow_connect.api.schema import Schema
from airflow_connect.config.resolved.source import load_source_config
from airflow_connect.converters.unread import Unread
from airflow_connect.errors import DataError
from airflow_connect.runtime.executor.converting import ConversionError
from airflow_connect.runtime.executor.source.converting import SourceRecordConverter
from airflow_connect.runtime.reporting.notes import Notes

ORDER = s.struct(("id", s.INT64), name="Order")


class Narrow:
    """Writes `id` only, and refuses 0 after it has named what is left out."""

    def configure(self, config: Mapping[str, str], is_key: bool = False) -> None:
        self.unwritten = Unread()

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes:
        self.unwritten.add_members(value, ("id",), "")
        if not value["id"]:
            raise DataError("0 is refused.")
        return str(value["id"]).encode()


def test_records_of_which_something_is_left_out_are_counted() -> None:
    connector = {
        "name": "c",
        "connector.class": "FileStreamSource",
        "file": "f",
        "topic": "t",
        "value.converter": f"{__name__}:Narrow",
        "key.converter": "StringConverter",
    }
    converter = SourceRecordConverter(load_source_config(connector, {"bootstrap.servers": "x:1"}))

    def convert(**value: Any) -> None:
        converter.convert(
            SourceRecord(topic="t", value=value, value_schema=ORDER, source_partition={}, source_offset={})
        )

    convert(id=1)
    convert(id=2, more=1)
    with pytest.raises(ConversionError, match="0 is refused"):
        convert(id=0, other=1)
    convert(id=3, less=1)
    convert(id=4, empty=None)
    notes = Notes()
    converter.unwritten.tell(notes)
    (note,) = notes.sentences
    assert note == (
        "Some values of the topic t held fields of the schema Order that the schema with which they were written does"
        " not have (use.latest.version, use.schema.id). They were left out: less, more. Records: 2."
    )


def test_numbers_that_do_not_fit_a_cast_of_a_source_are_counted() -> None:
    connector = {
        "name": "c",
        "connector.class": "FileStreamSource",
        "file": "f",
        "topic": "t",
        "value.converter": "JsonConverter",
        "key.converter": "StringConverter",
        "transforms": "narrow,drop",
        "transforms.narrow.type": "org.apache.kafka.connect.transforms.Cast$Value",
        "transforms.narrow.spec": "id:int8",
        "transforms.drop.type": "org.apache.kafka.connect.transforms.Filter",
        "transforms.drop.predicate": "dropped",
        "predicates": "dropped",
        "predicates.dropped.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
        "predicates.dropped.pattern": "dropped",
    }
    converter = SourceRecordConverter(load_source_config(connector, {"bootstrap.servers": "x:1"}))
    for topic, number in (("dropped", 200), ("t", 1), ("t", 200), ("t", -129), ("t", 2)):
        converter.convert(
            SourceRecord(topic=topic, value={"id": number}, value_schema=ORDER, source_partition={}, source_offset={})
        )
    notes = Notes()
    converter.unwritten.tell(notes)
    (note,) = notes.sentences
    assert note == (
        "Some records of the topic t have values that do not fit the types that the transformation narrow gives them."
        " They became others, as in Kafka Connect: id. Records: 2."
    )


@pytest.mark.parametrize(("encoding", "counted"), [("UTF-8", 1), ("ISO-8859-1", 3), ("UTF-16", 1), ("GBK", 2)])
def test_characters_that_an_encoding_lacks_are_counted(encoding: str, counted: int) -> None:
    """They became question marks, and no report said so."""
    connector = {
        "name": "c",
        "connector.class": "FileStreamSource",
        "file": "f",
        "topic": "t",
        "key.converter": "StringConverter",
        "value.converter": "StringConverter",
        "value.converter.converter.encoding": encoding,
    }
    converter = SourceRecordConverter(load_source_config(connector, {"bootstrap.servers": "x:1"}))
    for text in ("a", "why?", "\u4e2d", "half \ud83d", "\u0f3f"):  # The last one has the byte of a question mark.
        converter.convert(
            SourceRecord(topic="t", value=text, value_schema=s.STRING, source_partition={}, source_offset={})
        )
    notes = Notes()
    converter.unwritten.tell(notes)
    (note,) = notes.sentences
    assert note == (
        "Some values of the topic t have characters that the encoding of the converter lacks. They became question"
        f" marks, as in Kafka Connect, so different texts may be equal. Records: {counted}."
    )

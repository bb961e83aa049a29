"""The suite of transformations: ours pass it, and it finds what is wrong with a bad one."""

# ruff: noqa: RUF012 (the suite declares its attributes)

from __future__ import annotations

from typing import Any

import pytest

from airflow_connect.api import SinkRecord, Transformation
from airflow_connect.testing import TransformationConformance

PERSON = SinkRecord(topic="people", partition=1, offset=5, key="k", value={"name": "Ada", "born": 1815})


class TestReplaceField(TransformationConformance):
    transformation_class = "org.apache.kafka.connect.transforms.ReplaceField$Value"
    config = {"exclude": "born"}
    cases = [(PERSON, {"value": {"name": "Ada"}})]


class TestRegexRouter(TransformationConformance):
    transformation_class = "RegexRouter"
    config = {"regex": "(.*)le", "replacement": "$1x"}
    cases = [(PERSON, {"topic": "peopx"}), (PERSON.changed(topic="other"), {})]


class TestFilter(TransformationConformance):
    transformation_class = "org.apache.kafka.connect.transforms.Filter"
    cases = [(PERSON, None)]


class TestInsertField(TransformationConformance):
    transformation_class = "org.apache.kafka.connect.transforms.InsertField$Value"
    config = {"offset.field": "at"}
    cases = [(PERSON, {"value": {"name": "Ada", "born": 1815, "at": 5}})]


class Bad(Transformation):
    """Changes the record that it is given, and forgets where it is from."""

    def apply(self, record: Any) -> Any:
        record.value["seen"] = record.value.get("seen", 0) + 1
        return SinkRecord(topic=record.topic, partition=0, offset=0, value=record.value)


class OfBad(TransformationConformance):
    transformation_class = f"{__name__}:Bad"
    wrong_configs = [({"key": "wrong"}, "key")]

    @property
    def cases(self) -> Any:
        return [(PERSON.changed(value={"a": 1}), {"value": {"a": 1}})]


@pytest.mark.parametrize(
    "name",
    [
        "test_record_becomes_what_it_should",
        "test_input_is_not_changed",
        "test_book_keeping_of_sink_records_is_kept",
    ],
)
def test_suite_finds_what_a_bad_transformation_does(name: str):
    with pytest.raises(AssertionError):
        getattr(OfBad(), name)(Bad())


def test_suite_wants_cases_and_configurations_that_are_refused():
    with pytest.raises(AssertionError, match="List some records"):
        TransformationConformance().test_there_are_cases()
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        OfBad().test_wrong_configuration_names_the_key()

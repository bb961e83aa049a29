"""Schemas on their way to the driver."""

from __future__ import annotations

from concurrent.futures import CancelledError, Future
from dataclasses import replace

import pytest

from airflow_connect.api import schema as connect
from airflow_connect.api.schema import struct
from airflow_connect.api.staging import StagedFile
from airflow_connect.connectors.files.shared.value_schemas import (
    gather_unique,
    schema_of_text,
    schema_text,
    with_schema,
)
from airflow_connect.errors import UnavailableError

SCHEMA = struct(
    ("id", replace(connect.INT64, default=5, doc="é")),
    ("amount", connect.decimal(2, optional=True)),
    ("texts", connect.map_of(connect.STRING, connect.array(connect.date()))),
    name="shop.Order",
    version=3,
)


def _file(key: str, partition: int = 0, value_schema: str = "") -> StagedFile:
    return StagedFile(key, "t", partition, 0, 1, 1, 1, {}, "value", value_schema)


@pytest.mark.parametrize("schema", [SCHEMA, connect.OPTIONAL_STRING, None])
def test_text_of_a_schema_means_the_schema(schema):
    assert schema_of_text(schema_text(schema)) == schema


def test_staged_file_gets_its_schema_when_it_is_there():
    staged: Future[StagedFile] = Future()
    told = with_schema(staged, "null")
    assert not told.done()
    staged.set_result(_file("a"))
    assert told.result(0) == _file("a", value_schema="null")


def test_failure_and_cancellation_of_an_upload_come_through():
    failed: Future[StagedFile] = Future()
    told = with_schema(failed, "null")
    failed.set_exception(UnavailableError("away"))
    with pytest.raises(UnavailableError, match="away"):
        told.result(0)
    cancelled: Future[StagedFile] = Future()
    told = with_schema(cancelled, "null")
    cancelled.cancel()
    with pytest.raises(CancelledError):
        told.result(0)


def test_each_schema_is_told_once_for_each_partition():
    files = [_file("a", 0, "x"), _file("b", 0, "x"), _file("c", 0, "y"), _file("d", 1, "x"), _file("e", 0, "x")]
    assert [(f.key, f.value_schema) for f in gather_unique(files)] == [
        ("a", "x"), ("b", ""), ("c", "y"), ("d", "x"), ("e", ""),
    ]  # fmt: skip


def test_document_of_a_file_has_the_schema_only_where_there_is_one():
    plain, told = _file("a"), _file("a", value_schema="null")
    assert "value_schema" not in plain.to_json()
    assert [StagedFile.from_json(f.to_json()) for f in (plain, told)] == [plain, told]

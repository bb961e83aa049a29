"""Schemas of values, sent from tasks to the driver as text, along with a staged file."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import replace
from functools import lru_cache

from airflow_connect.api.schema import Schema
from airflow_connect.api.staging import StagedFile
from airflow_connect.converters.json.reader import ReadOptions, payload_reader
from airflow_connect.converters.json.schema import schema_from_json, schema_to_json
from airflow_connect.converters.json.text import parse_exact
from airflow_connect.converters.json.writer import WriterOptions, value_writer


@lru_cache(maxsize=1000)
def schema_text(schema: Schema | None) -> str:
    """A schema as JsonConverter writes it; `null` for none."""
    return schema_to_json(schema, lambda s, default: value_writer(s, WriterOptions())(default))


def schema_of_text(text: str) -> Schema | None:
    """Inverse of `schema_text`.

    Raises:
        DataError: it is not a schema.
    """
    return schema_from_json(parse_exact(text.encode()), lambda s, default: payload_reader(s, ReadOptions())(default))


def with_schema(staged: Future[StagedFile], text: str) -> Future[StagedFile]:
    """The staged file with `value_schema`, as soon as it is staged."""
    told: Future[StagedFile] = Future()

    def tell(done: Future[StagedFile]) -> None:
        if done.cancelled():
            told.cancel()
            return
        error = done.exception()
        if error is not None:
            told.set_exception(error)
        else:
            told.set_result(replace(done.result(), value_schema=text))

    staged.add_done_callback(tell)
    return told


def gather_unique(files: Iterable[StagedFile]) -> list[StagedFile]:
    """The files; each schema is kept only on the first file of its topic-partition that has it.

    When a partition is copied again, its first file is the same, whatever else the task copies.
    """
    seen: set[tuple[str, int, str]] = set()
    found = []
    for file in files:
        known = (file.topic, file.partition, file.value_schema)
        found.append(replace(file, value_schema="") if file.value_schema and known in seen else file)
        seen.add(known)
    return found

"""Record keys and headers as values that every format can write: `store.kafka.keys`, `store.kafka.headers`.

Parquet files have named columns, so keys and headers are wrapped in structs there. The other formats write a key
unchanged and the headers as an array. A header's value becomes a string, because headers of one file may have
different types. Source: Confluent's S3 sink (the names `RecordKey` and `RecordHeaders`; header
values as in Connect's `Values.convertToString`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from airflow_connect.api.schema import OPTIONAL_STRING, STRING, Schema, array, struct
from airflow_connect.converters.header_text import header_text

if TYPE_CHECKING:
    from airflow_connect.api.record import Header
    from airflow_connect.formats.format import Format

_HEADER = struct(("key", STRING), ("value", OPTIONAL_STRING), name="RecordHeader")
HEADERS_SCHEMA = array(_HEADER)
"""Headers for all formats except Parquet."""
WRAPPED_HEADERS_SCHEMA = struct(("headers", HEADERS_SCHEMA), name="RecordHeaders")
"""Headers for Parquet."""


def wants_struct(written_by: Format) -> bool:
    """Whether a format has columns, so that a value must be a struct."""
    return written_by.extension.endswith(".parquet")


def wrap_key_for(written_by: Format, key_schema: Schema | None, key: Any) -> tuple[Schema | None, Any]:
    """Schema and value of a key for one format: in `RecordKey{key}` for Parquet, else unchanged.

    A key without a schema stays so, and the format refuses it with its own error.
    """
    if key_schema is None or not wants_struct(written_by):
        return key_schema, key
    return key_schema_for(written_by, key_schema), {"key": key}


def key_schema_for(written_by: Format, key_schema: Schema) -> Schema:
    """The schema of `wrap_key_for` alone."""
    return _record_key(key_schema) if wants_struct(written_by) else key_schema


@lru_cache(maxsize=1000)
def _record_key(key_schema: Schema) -> Schema:
    return struct(("key", key_schema), name="RecordKey")


def headers_value(headers: Sequence[Header]) -> tuple[Schema, list[dict[str, Any]]]:
    """Schema and value of a record's headers, in order, including repeated ones.

    Raises:
        DataError: a value that has no text.
    """
    return HEADERS_SCHEMA, [{"key": h.key, "value": stored_header_text(h.schema, h.value)} for h in headers]


def headers_value_for(written_by: Format, headers: Sequence[Header]) -> tuple[Schema, Any]:
    """As `headers_value`, in `RecordHeaders{headers}` for Parquet.

    Raises:
        DataError: a value that has no text.
    """
    _, value = headers_value(headers)
    return headers_schema_for(written_by), {"headers": value} if wants_struct(written_by) else value


def headers_schema_for(written_by: Format) -> Schema:
    """The schema of `headers_value_for` alone."""
    return WRAPPED_HEADERS_SCHEMA if wants_struct(written_by) else HEADERS_SCHEMA


def stored_header_text(schema: Schema | None, value: Any) -> str | None:
    """A header's value as Connect's `Values.convertToString` writes it; None stays None.

    Raises:
        DataError: a value that has no text.
    """
    return None if value is None else header_text(schema, value)

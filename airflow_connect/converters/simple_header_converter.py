"""SimpleHeaderConverter: Connect's default header converter, text whose type is guessed from its content."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from airflow_connect.api.config.config_def import ConfigDef
from airflow_connect.api.converter import NULL, SchemaAndValue
from airflow_connect.api.schema import Schema
from airflow_connect.converters.header_text import header_text, parse_header_text
from airflow_connect.errors import DataError


class SimpleHeaderConverter:
    """org.apache.kafka.connect.storage.SimpleHeaderConverter. It has no configuration; the time zone is UTC.

    The type of a header depends on its text. To pass headers through unchanged use ByteArrayConverter.
    """

    config_def: ClassVar[ConfigDef] = ConfigDef()

    def configure(self, config: Mapping[str, str]) -> None:
        """Nothing to configure."""

    def to_connect_header(self, topic: str, name: str, data: bytes | None) -> SchemaAndValue:
        """The narrowest type that the UTF-8 text can be; `null` and no bytes at all are (None, None).

        Raises:
            DataError: lists and maps are nested too deeply.
        """
        if data is None:
            return NULL
        return parse_header_text(data.decode("utf-8", "replace"))

    def from_connect_header(self, topic: str, name: str, schema: Schema | None, value: Any) -> bytes | None:
        """The value as UTF-8 text; None stays None.

        Raises:
            DataError: a value that a header cannot hold.
        """
        if value is None:
            return None
        try:
            return header_text(schema, value).encode("utf-8", "replace")
        except RecursionError as error:
            raise DataError(
                f"The value of header {name} is nested too deeply to be written.", suggestion="Flatten it."
            ) from error

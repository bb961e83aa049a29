"""StringConverter: text in and out; what is not text is written as Java's `toString()` would print it."""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_connect.api.columns import ValueColumns
from airflow_connect.api.converter import SchemaAndValue
from airflow_connect.api.errors import ConfigError, DataError
from airflow_connect.api.schema import OPTIONAL_STRING, Schema
from airflow_connect.converters.java_text import java_string

if TYPE_CHECKING:
    import pyarrow as pa

ENCODING = "converter.encoding"


class StringConverter:
    """org.apache.kafka.connect.storage.StringConverter.

    Configuration: `converter.encoding` (default `UTF-8`) for both directions. As in Java, bytes that are not
    valid in the encoding become U+FFFD, and characters that it lacks become `?`: reading text never fails.
    """

    def __init__(self) -> None:
        self._encoding = "utf-8"
        self._is_utf16 = False

    def configure(self, config: Mapping[str, str], is_key: bool = False) -> None:
        """Take `converter.encoding`.

        Raises:
            ConfigError: no such encoding.
        """
        name = config.get(ENCODING) or "UTF-8"
        try:
            codec = codecs.lookup(name)
        except (LookupError, ValueError):
            codec = None
        # codecs.lookup also knows codecs that are no character sets, such as `hex`.
        if codec is None or not getattr(codec, "_is_text_encoding", True):
            raise ConfigError(
                f"Unsupported encoding {name} in configuration {ENCODING}.",
                suggestion="Use a character set such as UTF-8, UTF-16 or ISO-8859-1.",
                config_path=ENCODING,
            )
        # Java's UTF-16 without a byte order mark is big-endian; Python's is the machine's.
        self._is_utf16 = codec.name == "utf-16"
        self._encoding = codec.name

    @property
    def is_utf8(self) -> bool:
        """Whether text is written as UTF-8."""
        return self._encoding == "utf-8"

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """The text with schema optional STRING; a tombstone keeps that schema."""
        if data is None:
            return SchemaAndValue(OPTIONAL_STRING, None)
        if self._is_utf16 and not data.startswith((codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE)):
            data = codecs.BOM_UTF16_BE + data
        return SchemaAndValue(OPTIONAL_STRING, data.decode(self._encoding, "replace"))

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """The text of the value in the encoding; None stays None.

        Raises:
            DataError: nested too deeply.
        """
        if value is None:
            return None
        try:
            text = value if type(value) is str else java_string(schema, value)
        except RecursionError as error:
            raise DataError("A value is nested too deeply to be written as text.", suggestion="Flatten it.") from error
        if self._is_utf16:
            return codecs.BOM_UTF16_BE + text.encode("utf-16-be", "replace")
        return text.encode(self._encoding, "replace")

    def to_columns(self, topic: str, data: pa.BinaryArray) -> Sequence[ValueColumns] | None:
        """The messages as a column of text; None when one is not valid UTF-8, or the encoding is another."""
        if self._encoding != "utf-8":
            return None
        import pyarrow as pa

        try:
            return [ValueColumns(OPTIONAL_STRING, data.cast(pa.string()))]
        except pa.ArrowInvalid:
            # Reading puts U+FFFD in place of what is not valid, which Arrow cannot.
            return None

    def to_connect_header(self, topic: str, name: str, data: bytes | None) -> SchemaAndValue:
        """As `to_connect`."""
        return self.to_connect(topic, data)

    def from_connect_header(self, topic: str, name: str, schema: Schema | None, value: Any) -> bytes | None:
        """As `from_connect`."""
        return self.from_connect(topic, schema, value)

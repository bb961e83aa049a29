"""StringConverter: text in both directions; other values are written as Java's `toString()` prints them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_connect.api.columns import ValueColumns
from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Type
from airflow_connect.api.converter import SchemaAndValue
from airflow_connect.api.schema import OPTIONAL_STRING, Schema
from airflow_connect.converters.java_text import java_string
from airflow_connect.converters.unread import NOT_DECODED, NOT_ENCODED, Unread
from airflow_connect.errors import ConfigError, DataError
from airflow_connect.java.charsets import UTF_8, charset, is_java_name

if TYPE_CHECKING:
    import pyarrow as pa

ENCODING = "converter.encoding"
_REPLACEMENT = "\ufffd"


class StringConverter:
    """org.apache.kafka.connect.storage.StringConverter.

    Configuration: `converter.encoding` (default `UTF-8`), Java's name of a character set, for both directions. As in
    Java, bytes that are not valid in it become U+FFFD, and characters that it lacks become `?`: reading text never
    fails.

    Attributes:
        unread: tells of bytes that were not valid.
        unwritten: tells of characters that the encoding lacks.
    """

    config_def: ClassVar[ConfigDef] = ConfigDef().define(
        ConfigKey(ENCODING, Type.STRING, "UTF-8", "Java's name of the character set.")
    )

    known_schemas: ClassVar[Sequence[Schema]] = (OPTIONAL_STRING,)

    def __init__(self) -> None:
        self._charset = UTF_8
        self.unread, self.unwritten = Unread(), Unread()

    def configure(self, config: Mapping[str, str], is_key: bool = False) -> None:
        """Take `converter.encoding`.

        Raises:
            ConfigError: Java has no such character set, or it is not supported here.
        """
        name = config.get(ENCODING) or "UTF-8"
        found = charset(name)
        if found is None:
            reason = (
                "Java knows it, but it is not supported here" if is_java_name(name) else "Java has none of that name"
            )
            raise ConfigError(
                f"Unsupported encoding {name} in configuration {ENCODING}: {reason}.",
                suggestion="Use Java's name of a character set, such as UTF-8, UTF-16, ISO-8859-1 or GBK.",
                config_path=ENCODING,
            )
        self._charset = found

    @property
    def is_utf8(self) -> bool:
        """Whether text is written as UTF-8."""
        return self._charset is UTF_8

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """The text with schema optional STRING; a tombstone keeps that schema."""
        if data is None:
            return SchemaAndValue(OPTIONAL_STRING, None)
        text = self._charset.decode(data)
        if _REPLACEMENT in text and self._charset.encode(text) != data:
            self.unread.add(NOT_DECODED)
        return SchemaAndValue(OPTIONAL_STRING, text)

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
        if self.is_utf8:
            try:
                return text.encode()
            except UnicodeEncodeError:  # Half of a surrogate pair.
                self.unwritten.add(NOT_ENCODED)
                return self._charset.encode(text)
        data = self._charset.encode(text)
        if not text.isascii() and self._charset.decode(data) != text:
            self.unwritten.add(NOT_ENCODED)
        return data

    def to_columns(self, topic: str, data: pa.BinaryArray) -> Sequence[ValueColumns] | None:
        """The messages as a column of text; None if one is not valid UTF-8, or the encoding is different."""
        if not self.is_utf8:
            return None
        import pyarrow as pa

        try:
            return [ValueColumns(OPTIONAL_STRING, data.cast(pa.string()))]
        except pa.ArrowInvalid:
            # Reading replaces invalid bytes by U+FFFD, which Arrow cannot do.
            return None

    def to_connect_header(self, topic: str, name: str, data: bytes | None) -> SchemaAndValue:
        """As `to_connect`, but what is not valid is not told."""
        return SchemaAndValue(OPTIONAL_STRING, None if data is None else self._charset.decode(data))

    def from_connect_header(self, topic: str, name: str, schema: Schema | None, value: Any) -> bytes | None:
        """As `from_connect`."""
        return self.from_connect(topic, schema, value)

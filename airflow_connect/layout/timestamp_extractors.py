"""The timestamp by which a record is partitioned: wall clock, record, or a field of its value.

Source: Confluent storage-common (TimeBasedPartitioner and its extractors); the error texts are theirs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Protocol

from airflow_connect.api.record import SinkRecord
from airflow_connect.api.schema import TIMESTAMP, Schema, Type
from airflow_connect.errors import ConfigError, DataError
from airflow_connect.java.numbers import integer_text, shown_number
from airflow_connect.layout.time.iso_timestamps import parse_iso_ms

_EPOCH_MS = re.compile(r"-?[0-9]{1,19}")
_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1
_INT64_DIGITS = 19


class TimestampExtractor(Protocol):
    """Finds a record's timestamp."""

    @property
    def java_class(self) -> str:
        """Name of the class that Confluent's messages show."""
        ...

    @property
    def needs_value(self) -> bool:
        """Whether a record without a value has no timestamp."""
        ...

    def extract_ms(self, record: SinkRecord, now_ms: int) -> int | None:
        """Milliseconds since the epoch, or None if the record has no timestamp.

        Raises:
            DataError: the record should have one, but does not.
        """
        ...


class WallclockTimestampExtractor:
    """The run's frozen clock: all records have the same timestamp (`Plan.created_ms`)."""

    java_class = "io.confluent.connect.storage.partitioner.TimeBasedPartitioner$WallclockTimestampExtractor"
    needs_value = False

    def extract_ms(self, record: SinkRecord, now_ms: int) -> int | None:
        """The clock."""
        return now_ms


class RecordTimestampExtractor:
    """Kafka's timestamp: creation or log append time, as the topic is configured."""

    java_class = "io.confluent.connect.storage.partitioner.TimeBasedPartitioner$RecordTimestampExtractor"
    needs_value = False

    def extract_ms(self, record: SinkRecord, now_ms: int) -> int | None:
        """The record's timestamp."""
        return record.timestamp


class RecordFieldTimestampExtractor:
    """A field of the value, `a.b.c` inside structs or maps.

    Struct fields: Timestamp, INT64 and INT32 (milliseconds since the epoch), STRING. Map values: numbers,
    text. Text: an integer (milliseconds), or ISO-8601 (time/iso_timestamps.py).
    """

    java_class = "io.confluent.connect.storage.partitioner.TimeBasedPartitioner$RecordFieldTimestampExtractor"
    needs_value = True

    def __init__(self, field: str) -> None:
        """Read `field`, `timestamp.field`."""
        self.field = field
        self.path = field.split(".")

    def extract_ms(self, record: SinkRecord, now_ms: int) -> int | None:
        """The field's timestamp."""
        value, schema = record.value, record.value_schema
        if not isinstance(value, Mapping):
            raise DataError(
                f"Error encoding partition. The value of {record.where} is neither a struct nor a map.",
                suggestion="timestamp.extractor=RecordField reads fields: use another one or a converter.",
            )
        try:
            if schema is None or schema.type is Type.MAP:
                return self.of_map(value)
            return self._of_struct(value, schema)
        except DataError as error:
            raise DataError(f"{error.message} ({record.where})", suggestion=error.suggestion) from error

    def _of_struct(self, value: Mapping[str, Any], schema: Schema) -> int:
        found, field_schema = struct_field(value, schema, self.path)
        if found is None:
            raise self._failed("is null")
        if field_schema.name == TIMESTAMP or field_schema.type in (Type.INT32, Type.INT64):
            return int(found)
        if field_schema.type is Type.STRING:
            return text_ms(found)
        raise self._failed(f"has type {field_schema.type.value}")

    def of_map(self, value: Mapping[str, Any]) -> int:
        """The timestamp in a map or a schemaless object.

        Raises:
            DataError: it has no timestamp.
        """
        found: Any = value
        # A member with dots in its name, as Flatten makes it, counts if the first part alone is not a member.
        is_flat = self.path[0] not in value and self.field in value
        for name in [self.field] if is_flat else self.path:
            if not isinstance(found, Mapping) or found.get(name) is None:
                raise self._failed(f": Unable to find nested field '{name}'" if len(self.path) > 1 else "is missing")
            found = found[name]
        if isinstance(found, str):
            return text_ms(found)
        if isinstance(found, bool) or not hasattr(found, "__int__"):
            raise self._failed(f"has type {type(found).__name__}")
        return _long(found)

    def _failed(self, why: str) -> DataError:
        return DataError(f"Error extracting timestamp from record field: {self.field} {why}")


def struct_field(value: Mapping[str, Any] | None, schema: Schema, path: list[str]) -> tuple[Any, Schema]:
    """Value and schema of the field at `path` inside a struct; the value is None below a null parent.

    If there is none, a field of the struct may have this name with its dots, as Flatten makes it.

    Raises:
        DataError: the schema has no such field.
    """
    current: Any = value
    root = schema
    for name in path:
        field = schema.field(name) if schema.type is Type.STRUCT else None
        if field is None:
            dotted = ".".join(path)
            if len(path) > 1 and root.type is Type.STRUCT and root.field(dotted) is not None:
                return struct_field(value, root, [dotted])
            kind = "nested field" if len(path) > 1 else "field"
            raise DataError(f"The {kind} named '{dotted}' does not exist.")
        current = None if current is None else current.get(name)
        schema = field.schema
        if current is None and schema.default is not None:
            current = schema.default
    return current, schema


def extractor(name: str, field: str) -> TimestampExtractor:
    """The extractor called `name`: `Wallclock`, `Record`, `RecordField`, or Confluent's class name of these.

    Args:
        name: `timestamp.extractor`.
        field: `timestamp.field`.
    """
    kinds: dict[str, TimestampExtractor] = {
        "Wallclock": WallclockTimestampExtractor(),
        "Record": RecordTimestampExtractor(),
        "RecordField": RecordFieldTimestampExtractor(field),
    }
    found = kinds.get(name) or next((kind for kind in kinds.values() if kind.java_class == name), None)
    if found is None:
        raise ConfigError(
            f"Invalid timestamp extractor: {name}",
            suggestion="Use Wallclock, Record or RecordField.",
            config_path="timestamp.extractor",
        )
    return found


def text_ms(text: str) -> int:
    """Milliseconds since the epoch of text: an integer, or ISO-8601.

    Raises:
        DataError: it is neither.
    """
    if _EPOCH_MS.fullmatch(text):
        return _long(int(text))
    return parse_iso_ms(text)


def _long(number: Any) -> int:
    """Java's `Number.longValue`: fractions are cut, NaN is 0, infinities are the ends of the range."""
    if isinstance(number, float) and not math.isfinite(number):
        return 0 if math.isnan(number) else _INT64_MAX if number > 0 else _INT64_MIN
    # 1E999999999 must not be written out.
    is_too_long = isinstance(number, Decimal) and number.adjusted() >= _INT64_DIGITS
    whole = 0 if is_too_long else int(number)
    if is_too_long or not _INT64_MIN <= whole <= _INT64_MAX:
        shown = shown_number(str(number) if is_too_long else integer_text(whole))
        raise DataError(f'For input string: "{shown}": a timestamp must fit into 64 bits.')
    return whole

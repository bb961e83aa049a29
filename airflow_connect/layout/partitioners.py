"""From a record to its directory below `topics.dir/<topic>`: deterministic, and safe in a path.

Source: Confluent storage-common (DefaultPartitioner, FieldPartitioner, TimeBasedPartitioner,
DailyPartitioner, HourlyPartitioner) and S3 sink (SchemaPartitioner, TombstoneSupportedPartitioner). Field
values are escaped (names/escaping.py), which is the only difference.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from airflow_connect.api.record import SinkRecord
from airflow_connect.api.schema import Schema, Type
from airflow_connect.errors import ConfigError, DataError
from airflow_connect.layout.names.escaping import escape, escaped_pattern
from airflow_connect.layout.time.date_patterns import DatePattern, compile_pattern
from airflow_connect.layout.time.time_zones import DAY_MS, HOUR_MS, Zone
from airflow_connect.layout.timestamp_extractors import TimestampExtractor, struct_field

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from airflow_connect.layout.file_system_names import NameRules

_CACHED_DIRECTORIES = 100_000
_INTEGERS = (Type.INT8, Type.INT16, Type.INT32, Type.INT64)


class Partitioner(Protocol):
    """Finds the directory of a record."""

    @property
    def is_time_based(self) -> bool:
        """Whether directories depend on time, so that record timestamps may rotate files."""
        ...

    def timestamp_ms(self, record: SinkRecord, now_ms: int) -> int | None:
        """The record's timestamp, or None if the partitioner is not time-based or the record has none.

        Raises:
            DataError: the record must have a timestamp but does not.
        """
        ...

    def directory(self, record: SinkRecord, now_ms: int) -> str:
        """Directory of the record, without delimiters at its ends.

        Args:
            record: the converted record.
            now_ms: the run's clock (`Plan.created_ms`).

        Raises:
            DataError: the record has no directory; Confluent calls it a PartitionException.
        """
        ...

    def directory_regex(self) -> str:
        """Regular expression that fully matches exactly the directories of this partitioner."""
        ...


class DefaultPartitioner:
    """`partition=<Kafka partition>`."""

    is_time_based = False

    def timestamp_ms(self, record: SinkRecord, now_ms: int) -> int | None:
        """Not time-based."""
        return None

    def directory(self, record: SinkRecord, now_ms: int) -> str:
        """Directory of the record."""
        return self.directory_of_partition(record.partition)

    def directory_of_partition(self, partition: int) -> str:
        """Directory of every record of a Kafka partition."""
        return f"partition={partition}"

    def directory_regex(self) -> str:
        """`partition=` and a number."""
        return "partition=(?:0|[1-9][0-9]*)"


class FieldPartitioner:
    """`f1=v1/f2=v2`: values of fields of a struct, dots reaching into nested structs."""

    is_time_based = False

    def __init__(self, fields: Sequence[str], delimiter: str = "/", rules: NameRules | None = None) -> None:
        """Partition by `fields`, `partition.field.name`; `rules`: of the file system."""
        if not fields or any(not name.strip() or "" in name.split(".") for name in fields):
            raise ConfigError(
                f"partition.field.name={','.join(fields)!r} must name fields, without empty names.",
                config_path="partition.field.name",
            )
        self.fields = tuple(name.strip() for name in fields)
        self.delimiter = delimiter
        self.rules = rules
        self._forbidden = rules.forbidden if rules else ""
        self.paths = [name.split(".") for name in self.fields]

    def timestamp_ms(self, record: SinkRecord, now_ms: int) -> int | None:
        """Not time-based."""
        return None

    def directory(self, record: SinkRecord, now_ms: int) -> str:
        """Directory of the record."""
        value, schema = record.value, record.value_schema
        if not isinstance(value, Mapping) or schema is None or schema.type is not Type.STRUCT:
            raise DataError(
                f"Error encoding partition. Value of {record.where} is not Struct type.",
                suggestion="FieldPartitioner needs a schema: JsonConverter with schemas.enable=true.",
            )
        try:
            found = [struct_field(value, schema, path) for path in self.paths]
            return self.directory_of_values([_field_value(*pair) for pair in found])
        except DataError as error:
            message = f"{error.message} ({record.where})"
            raise DataError(message, code=error.code, suggestion=error.suggestion) from error

    def directory_of_values(self, values: Sequence[str | int | bool | None]) -> str:
        """Directory of records whose fields have these values, in the order of `fields`."""
        pairs = zip(self.fields, values, strict=True)
        escaped = (f"{name}={escape(_text(value), self.delimiter, self._forbidden)}" for name, value in pairs)
        directory = self.delimiter.join(escaped)
        if self.rules is not None:
            self.rules.check(directory)
        return directory

    def directory_regex(self) -> str:
        """Each name with any escaped text."""
        text = escaped_pattern(self.delimiter, self._forbidden)
        return re.escape(self.delimiter).join(f"{re.escape(name)}={text}" for name in self.fields)


class TimeBasedPartitioner:
    """Text of the start of the time bucket that holds the record's timestamp.

    A bucket starts at a multiple of the duration in *local* time, so hours and days of the zone are buckets;
    the two hours of the same name at the end of daylight saving share a directory.
    """

    is_time_based = True

    def __init__(
        self,
        duration_ms: int,
        pattern: DatePattern,
        timestamp_extractor: TimestampExtractor,
        delimiter: str = "/",
    ) -> None:
        """Use `from_texts` for settings as text.

        Args:
            duration_ms: length of a bucket, `partition.duration.ms`, > 0.
            pattern: compiled `path.format`, in the partitioner's zone.
            timestamp_extractor: where the timestamp comes from.
            delimiter: `directory.delim`.
        """
        if duration_ms <= 0:
            raise ConfigError(
                f"Invalid value {duration_ms} for configuration partition.duration.ms:"
                " Partition duration needs to be a positive.",
                config_path="partition.duration.ms",
            )
        self.duration_ms = duration_ms
        self.pattern = pattern
        self.zone = pattern.zone
        self.extractor = timestamp_extractor
        self.delimiter = delimiter
        self._names: dict[int, str] = {}
        if {".", ".."} & set(re.split(r"[/\\]", pattern(0))):
            raise ConfigError(
                f"path.format={pattern.pattern!r} must not contain '.' or '..' as a part.",
                config_path="path.format",
            )

    @classmethod
    def from_texts(
        cls,
        duration_ms: int,
        path_format: str,
        locale: str,
        zone: str,
        timestamp_extractor: TimestampExtractor,
        delimiter: str = "/",
    ) -> TimeBasedPartitioner:
        """A partitioner from `partition.duration.ms`, `path.format`, `locale` and `timezone` as written.

        Raises:
            ConfigError: one of them is blank or wrong.
        """
        if not path_format.strip() or path_format == delimiter:
            raise _blank("Path format", "path.format", path_format)
        if not locale.strip():
            raise _blank("Locale", "locale", locale)
        if not zone.strip():
            raise _blank("Timezone", "timezone", zone)
        pattern = compile_pattern(path_format.removesuffix(delimiter), locale, Zone.of(zone))
        return cls(duration_ms, pattern, timestamp_extractor, delimiter)

    def timestamp_ms(self, record: SinkRecord, now_ms: int) -> int | None:
        """The extractor's result."""
        return self.extractor.extract_ms(record, now_ms)

    def directory(self, record: SinkRecord, now_ms: int) -> str:
        """Directory of the record."""
        timestamp_ms = self.extractor.extract_ms(record, now_ms)
        if timestamp_ms is None:
            raise DataError(
                f"Unable to determine timestamp using timestamp.extractor {self.extractor.java_class}"
                f" for record: {record.where}",
                suggestion="The record carries no timestamp; use another timestamp.extractor.",
            )
        return self.directory_of_timestamp(timestamp_ms)

    def directory_of_timestamp(self, timestamp_ms: int) -> str:
        """Directory of records with this timestamp (milliseconds since the epoch)."""
        return self._directory_of_bucket(_bucket(self.zone.local_ms(timestamp_ms), self.duration_ms))

    def directories_of_timestamps(self, timestamps_ms: NDArray[np.int64]) -> tuple[NDArray[np.int32], list[str]]:
        """Directories of many records at once; equal to `directory_of_timestamp` of each.

        Args:
            timestamps_ms: int64[n], milliseconds since the epoch.

        Returns:
            codes int32[n] and names, with `names[codes[i]]` the directory of record i; names are distinct.
        """
        import numpy as np

        from airflow_connect.layout.dense_codes import dense_codes

        offsets = self.zone.offsets_of(timestamps_ms)
        # Near the ends of 64 bits the sum could wrap around; such timestamps are garbage, but equal garbage
        # on both paths.
        if len(timestamps_ms) and not -(1 << 62) < int(np.min(timestamps_ms)) <= int(np.max(timestamps_ms)) < 1 << 62:
            each = [self.directory_of_timestamp(int(timestamp)) for timestamp in timestamps_ms]
            names = list(dict.fromkeys(each))
            numbers = {name: number for number, name in enumerate(names)}
            return np.array([numbers[name] for name in each], dtype=np.int32), names
        local = timestamps_ms + offsets
        # Java's division cuts towards zero: the buckets before and after 1970-01-01 (local) are one.
        quotients = local // self.duration_ms
        if int(np.min(local, initial=0)) < 0:
            quotients += (local < 0) & (local % self.duration_ms != 0)
        codes, buckets = dense_codes(quotients)
        every = [self._directory_of_bucket(int(bucket) * self.duration_ms) for bucket in buckets]
        numbers = {}
        lookup = np.array([numbers.setdefault(name, len(numbers)) for name in every], dtype=np.int32)
        return lookup[codes], list(numbers)

    def directory_regex(self) -> str:
        """The pattern's own expression."""
        return self.pattern.regex

    def _directory_of_bucket(self, local_ms: int) -> str:
        name = self._names.get(local_ms)
        if name is None:
            if len(self._names) >= _CACHED_DIRECTORIES:  # bounds memory when timestamps are garbage
                self._names.clear()
            name = self._names[local_ms] = self.pattern(self.zone.instant_ms(local_ms))
        return name


def daily_partitioner(
    locale: str, zone: str, timestamp_extractor: TimestampExtractor, delimiter: str = "/"
) -> TimeBasedPartitioner:
    """Confluent's DailyPartitioner: `year=2024/month=12/day=30`."""
    path = delimiter.join(["'year'=YYYY", "'month'=MM", "'day'=dd"])
    return TimeBasedPartitioner.from_texts(DAY_MS, path, locale, zone, timestamp_extractor, delimiter)


def hourly_partitioner(
    locale: str, zone: str, timestamp_extractor: TimestampExtractor, delimiter: str = "/"
) -> TimeBasedPartitioner:
    """Confluent's HourlyPartitioner: `year=2024/month=12/day=30/hour=23`."""
    path = delimiter.join(["'year'=YYYY", "'month'=MM", "'day'=dd", "'hour'=HH"])
    return TimeBasedPartitioner.from_texts(HOUR_MS, path, locale, zone, timestamp_extractor, delimiter)


# The values of `partitioner.class`.
DailyPartitioner = daily_partitioner
HourlyPartitioner = hourly_partitioner


class Affix(Enum):
    """`s3.schema.partition.affix.type`."""

    NONE = "NONE"
    PREFIX = "PREFIX"
    SUFFIX = "SUFFIX"


class WrappingPartitioner:
    """Takes the time from another partitioner; the subclass changes that partitioner's directories."""

    def __init__(self, inner: Partitioner, delimiter: str) -> None:
        """Wrap `inner`; `delimiter`: between the parts of a directory."""
        self.inner = inner
        self.delimiter = delimiter

    @property
    def is_time_based(self) -> bool:
        """As the wrapped one."""
        return self.inner.is_time_based

    def timestamp_ms(self, record: SinkRecord, now_ms: int) -> int | None:
        """As the wrapped one."""
        return self.inner.timestamp_ms(record, now_ms)


class SchemaAffixPartitioner(WrappingPartitioner):
    """`schema_name=<name>`, or `schema_name=null`, before or after the directory of another partitioner."""

    def __init__(self, inner: Partitioner, affix: Affix, delimiter: str = "/") -> None:
        """Wrap `inner`."""
        super().__init__(inner, delimiter)
        self.affix = affix

    def directory(self, record: SinkRecord, now_ms: int) -> str:
        """Directory of the record."""
        schema = record.value_schema
        name = None if schema is None else schema.name
        affix = f"schema_name={'null' if name is None else escape(name, self.delimiter)}"
        return self._join(affix, self.inner.directory(record, now_ms))

    def directory_regex(self) -> str:
        """Both parts."""
        return self._join(f"schema_name={escaped_pattern(self.delimiter)}", f"(?:{self.inner.directory_regex()})", True)

    def _join(self, affix: str, directory: str, is_regex: bool = False) -> str:
        if self.affix is Affix.NONE:
            return directory
        parts = (affix, directory) if self.affix is Affix.PREFIX else (directory, affix)
        return (re.escape(self.delimiter) if is_regex else self.delimiter).join(parts)


class TombstonePartitioner:
    """Records whose value is null go to a separate directory (`behavior.on.null.values=write`)."""

    def __init__(self, inner: Partitioner, tombstone_directory: str) -> None:
        """Wrap `inner`; `tombstone_directory` is `tombstone.encoded.partition`."""
        if not tombstone_directory.strip() or {".", ".."} & set(re.split(r"[/\\]", tombstone_directory)):
            raise ConfigError(
                f"tombstone.encoded.partition={tombstone_directory!r} cannot be a directory name.",
                config_path="tombstone.encoded.partition",
            )
        self.inner = inner
        self.tombstone_directory = tombstone_directory

    @property
    def is_time_based(self) -> bool:
        """As the wrapped one."""
        return self.inner.is_time_based

    def timestamp_ms(self, record: SinkRecord, now_ms: int) -> int | None:
        """As the wrapped one; None for a record without the value that would contain the timestamp.

        Confluent's sink fails on such a record although it could write it.
        """
        extractor = getattr(innermost(self.inner), "extractor", None)
        if record.value is None and extractor is not None and extractor.needs_value:
            return None
        return self.inner.timestamp_ms(record, now_ms)

    def directory(self, record: SinkRecord, now_ms: int) -> str:
        """Directory of the record."""
        return self.tombstone_directory if record.value is None else self.inner.directory(record, now_ms)

    def directory_regex(self) -> str:
        """Either."""
        return f"(?:{re.escape(self.tombstone_directory)}|{self.inner.directory_regex()})"


def innermost(partitioner: Partitioner) -> Partitioner:
    """The partitioner inside those that change the directory of another one."""
    while (inner := getattr(partitioner, "inner", None)) is not None:
        partitioner = inner
    return partitioner


def _bucket(local_ms: int, duration_ms: int) -> int:
    """Start of the bucket; towards zero, as Java divides."""
    bucket = abs(local_ms) // duration_ms * duration_ms
    return -bucket if local_ms < 0 else bucket


def _field_value(value: Any, schema: Schema) -> str | int | bool | None:
    if schema.type in _INTEGERS and (
        schema.name is None or not schema.name.startswith("org.apache.kafka.connect.data.")
    ):
        return None if value is None else int(value)
    if schema.type in (Type.STRING, Type.BOOLEAN):
        return value  # type: ignore[no-any-return]
    kind = schema.name or schema.type.value
    raise DataError(
        f"Error encoding partition. Type {kind} is not supported as a partition key.",
        suggestion="Partition by integers, strings or booleans; convert dates with TimestampConverter.",
    )


def _text(value: str | int | bool | None) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def _blank(what: str, key: str, value: str) -> ConfigError:
    return ConfigError(
        f"Invalid value {value} for configuration {key}: {what} cannot be empty.",
        code="config.required",
        config_path=key,
    )

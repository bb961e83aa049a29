"""Describes tables and their partitions, and finds the partition of a file; pure functions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from airflow_connect.errors import ConfigError, DataError
from airflow_connect.hive.columns import Column, FileKind
from airflow_connect.layout.file_system_names import HDFS
from airflow_connect.layout.names.escaping import unescape

TOPIC = "${topic}"
NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_TEXT_INPUT = "org.apache.hadoop.mapred.TextInputFormat"
_TEXT_OUTPUT = "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat"
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]")
# FileUtils.charToEscape of Hive: what the name of a partition shows as %XX.
_ESCAPED_IN_NAMES = re.compile(r"""[\x01-\x1f"#%'*/:=?\\\x7f{}\[\]^]""")


@dataclass(frozen=True, slots=True)
class FileClasses:
    """Hive's classes for a kind of file.

    Attributes:
        serde: makes rows.
        input_format, output_format: read and write files.
        parameters: of the serde.
    """

    serde: str
    input_format: str
    output_format: str
    parameters: Mapping[str, str] = field(default_factory=dict)


_HIVE = "org.apache.hadoop.hive"
FILE_CLASSES: Mapping[FileKind, FileClasses] = {
    FileKind.AVRO: FileClasses(
        f"{_HIVE}.serde2.avro.AvroSerDe",
        f"{_HIVE}.ql.io.avro.AvroContainerInputFormat",
        f"{_HIVE}.ql.io.avro.AvroContainerOutputFormat",
    ),
    FileKind.JSON: FileClasses("org.apache.hive.hcatalog.data.JsonSerDe", _TEXT_INPUT, _TEXT_OUTPUT),
    FileKind.ORC: FileClasses(
        f"{_HIVE}.ql.io.orc.OrcSerde", f"{_HIVE}.ql.io.orc.OrcInputFormat", f"{_HIVE}.ql.io.orc.OrcOutputFormat"
    ),
    FileKind.PARQUET: FileClasses(
        f"{_HIVE}.ql.io.parquet.serde.ParquetHiveSerDe",
        f"{_HIVE}.ql.io.parquet.MapredParquetInputFormat",
        f"{_HIVE}.ql.io.parquet.MapredParquetOutputFormat",
    ),
    # One column takes the whole line, whatever is in it.
    FileKind.TEXT: FileClasses(
        f"{_HIVE}.serde2.lazy.LazySimpleSerDe",
        _TEXT_INPUT,
        _TEXT_OUTPUT,
        {"serialization.format": "1", "serialization.last.column.takes.rest": "true"},
    ),
}
"""Source: the classes that `STORED AS` selects; for JSON those of Hive before 4, Trino and Athena."""


@dataclass(frozen=True, slots=True)
class Table:
    """An external table.

    Attributes:
        database, name: lower case.
        location: URL of the topic's directory.
        kind: format of the files.
        columns: of the files, without partition columns.
        partition_columns: names, all of type string as Confluent's partitioners declare them.
        properties: further table properties.
    """

    database: str
    name: str
    location: str
    kind: FileKind
    columns: tuple[Column, ...]
    partition_columns: tuple[str, ...]
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def full_name(self) -> str:
        """`database.name`."""
        return f"{self.database}.{self.name}"


@dataclass(frozen=True, slots=True)
class Partition:
    """A directory of a table: its values, in the order of the partition columns, and its URL."""

    values: tuple[str, ...]
    location: str

    def name(self, columns: Sequence[str]) -> str:
        """What the metastore calls it: `year=2024/month=05`. Source: Hive's Warehouse.makePartName."""
        return "/".join(f"{c}={_escaped(v)}" for c, v in zip(columns, self.values, strict=True))


def _escaped(value: str) -> str:
    return _ESCAPED_IN_NAMES.sub(lambda match: f"%{ord(match.group()):02X}", value)


@dataclass(frozen=True, slots=True)
class FilePartition:
    """The table and the partition that a file belongs to.

    Attributes:
        directory: the table's directory, as in the file's key.
        partition: the file's directory, as in its key.
        names, values: the pairs in the directory's name.
    """

    directory: str
    partition: str
    names: tuple[str, ...]
    values: tuple[str, ...]

    @property
    def topic(self) -> str:
        """The last part of the table's directory: the topic's name after all transformations."""
        return self.directory.rpartition("/")[2]


def file_partition(key: str) -> FilePartition:
    """Table and partition of a file, from its key.

    The pairs `name=value` at the end of the directory are the partition: no topic's name holds `=`, so the directory
    before them is the topic's.

    Raises:
        DataError: the file is in a directory without such a pair.
    """
    parts = key.split("/")[:-1]
    first = len(parts)
    while first and "=" in parts[first - 1]:
        first -= 1
    if first == len(parts):
        raise DataError(
            f"The file {key} is in a directory that is not named `name=value`, so Hive has no partition for it.",
            code="hive.partition",
            suggestion="Choose a partitioner or a path.format such as 'year'=YYYY/'month'=MM.",
        )
    pairs = [part.split("=", 1) for part in parts[first:]]
    return FilePartition(
        directory="/".join(parts[:first]),
        partition="/".join(parts),
        names=tuple(partition_column(name) for name, _ in pairs),
        values=tuple(unescape(value, forbidden=HDFS.forbidden) or NULL_PARTITION for _, value in pairs),
    )


def partition_column(name: str) -> str:
    """The column for a name in a directory; Hive's names have no dots, as nested fields do."""
    return _NOT_IN_NAMES.sub("_", name).lower()


def table_name(pattern: str, topic: str) -> str:
    """`hive.table.name` for a topic, in Hive's characters.

    Hive allows letters, digits and `_`; anything else becomes `_`, as Confluent's HiveMetaStore.tableNameConverter does
    with dots and dashes.

    Raises:
        ConfigError: nothing remains that could be a name.
    """
    name = _NOT_IN_NAMES.sub("_", pattern.replace(TOPIC, topic)).lower()
    if not name.strip("_"):
        raise ConfigError(
            f"hive.table.name={pattern} gives the topic {topic} the table name {name!r}, which has no letter or digit.",
            code="hive.table_name",
            suggestion="Set hive.table.name to something like t_${topic}.",
            config_path="hive.table.name",
        )
    return name


def is_same_location(one: str, other: str) -> bool:
    """Whether two URLs mean one directory, `file:/a` and `file:///a/` for instance."""
    return _normal(one) == _normal(other)


def _normal(url: str) -> tuple[str, str, str]:
    parts = urlsplit(url)
    return parts.scheme.lower(), parts.netloc.lower(), re.sub("/+", "/", parts.path).rstrip("/")

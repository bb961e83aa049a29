"""Keys of the JDBC sink: names, defaults and messages of Confluent's, and ours.

Source: io.confluent.connect.jdbc.sink.JdbcSinkConfig of kafka-connect-jdbc 10.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Importance, Problem, Type
from airflow_connect.api.config.validators import EnumString, Lambda, Range
from airflow_connect.api.config.values import invalid
from airflow_connect.config.keys import sink as sink_keys
from airflow_connect.databases.keys import connection_keys

INSERT_MODE = "insert.mode"
PK_MODE = "pk.mode"
PK_FIELDS = "pk.fields"
FIELDS_WHITELIST = "fields.whitelist"
DELETE_ENABLED = "delete.enabled"
AUTO_CREATE = "auto.create"
AUTO_EVOLVE = "auto.evolve"
TABLE_NAME_FORMAT = "table.name.format"
TABLE_TYPES = "table.types"
BATCH_SIZE = "batch.size"
MAX_RETRIES = "max.retries"
RETRY_BACKOFF_MS = "retry.backoff.ms"
REPLACE_NULL = "replace.null.with.default"
STRING_COLUMN = "string.output.value.column.name"
DATE_TIMEZONE = "date.timezone"
PRECISION_MODE = "timestamp.precision.mode"
TIMESTAMP_FIELDS = "timestamp.fields.list"
HOLDLOCK = "mssql.use.merge.holdlock"
TRIM_LOG = "trim.sensitive.log"
NULL_VALUES = "behavior.on.null.values"
OFFSETS_TABLE = "offsets.table.name"

INSERT, UPSERT, UPDATE = "insert", "upsert", "update"
NONE, KAFKA, RECORD_KEY, RECORD_VALUE = "none", "kafka", "record_key", "record_value"
DEFAULT_OFFSETS_TABLE = "airflow_connect_offsets"
TOPIC_PLACEHOLDER = "${topic}"
KNOWN_TABLE_TYPES = ("TABLE", "PARTITIONED TABLE", "VIEW")
_WRITES, _MAPPING, _DDL, _RETRIES, _OURS = "Writes", "Data Mapping", "DDL Support", "Retries", "Exactly once"


@cache
def config_def() -> ConfigDef:
    """Every key of the sink."""
    definition = sink_keys.sink_keys().include(connection_keys())
    high, medium, low = Importance.HIGH, Importance.MEDIUM, Importance.LOW
    definition.define(
        ConfigKey(
            INSERT_MODE, Type.STRING, INSERT,
            "insert: rows are inserted. upsert: a row replaces the one with the same primary key. update: rows with the"
            " same primary key are updated; without one, nothing happens.",
            EnumString(INSERT, UPSERT, UPDATE), high, _WRITES,
        ),
        ConfigKey(
            BATCH_SIZE, Type.INT, 3000, "Maximum number of rows of one statement.", Range(0), medium, _WRITES,
        ),
        ConfigKey(
            DELETE_ENABLED, Type.BOOLEAN, False,
            "Whether a record without value deletes the row with its key. Needs pk.mode=record_key.",
            None, medium, _WRITES,
        ),
        ConfigKey(
            NULL_VALUES, Type.STRING, "fail",
            "What happens to a record without value that does not delete a row. fail: it cannot be written, and"
            " errors.tolerance applies. ignore: it is dropped. (Confluent's sink always fails.)",
            EnumString("fail", "ignore"), low, _WRITES,
        ),
        ConfigKey(
            TABLE_TYPES, Type.LIST, "TABLE",
            "Types of tables that may be written to. TABLE includes partitioned tables.",
            Lambda(_check_types, f"any of {', '.join(KNOWN_TABLE_TYPES)}"), low, _WRITES,
        ),
        ConfigKey(
            TABLE_NAME_FORMAT, Type.STRING, TOPIC_PLACEHOLDER,
            "Name of the table, in which ${topic} stands for the record's topic: kafka_${topic}, or"
            " my_schema.${topic}. For a date in the name, use the transformation TimestampRouter.",
            Lambda(_check_table_format, "a table name, may contain ${topic}"), medium, _MAPPING,
        ),
        ConfigKey(
            PK_MODE, Type.STRING, NONE,
            "Where the primary key is from. none: there is none. kafka: topic, partition and offset. record_key: the"
            " record's key, a struct or a primitive. record_value: fields of the value.",
            EnumString(NONE, KAFKA, RECORD_KEY, RECORD_VALUE), high, _MAPPING,
        ),
        ConfigKey(
            PK_FIELDS, Type.LIST, "",
            "Columns of the primary key. With kafka: three names, by default __connect_topic,"
            " __connect_partition and __connect_offset. With record_key: one name for a primitive key; fields of a"
            " struct, by default all. With record_value: fields of the value, by default all.",
            None, medium, _MAPPING,
        ),
        ConfigKey(
            FIELDS_WHITELIST, Type.LIST, "",
            "Fields of the value that become columns; by default all. Fields of the primary key are always written.",
            None, medium, _MAPPING,
        ),
        ConfigKey(
            STRING_COLUMN, Type.STRING, "record_value",
            "Column for values that are a single string, such as those of StringConverter.", None, low, _MAPPING,
        ),
        ConfigKey(
            REPLACE_NULL, Type.BOOLEAN, True,
            "Whether a null value is replaced by the default in the schema of its field.", None, low, _MAPPING,
        ),
        ConfigKey(
            DATE_TIMEZONE, Type.STRING, "DB_TIMEZONE",
            "Time zone of dates. DB_TIMEZONE: a date is midnight UTC, seen from db.timezone, so that west of Greenwich"
            " it is the day before, as with Confluent's sink. UTC: dates stay what they are.",
            EnumString("db_timezone", "utc"), medium, _MAPPING,
        ),
        ConfigKey(
            PRECISION_MODE, Type.STRING, "microseconds",
            "Unit of the fields in timestamp.fields.list. Digits below a microsecond are cut off.",
            EnumString("microseconds", "nanoseconds"), low, _MAPPING,
        ),
        ConfigKey(
            TIMESTAMP_FIELDS, Type.LIST, "",
            "Fields of the value, INT64 or strings of digits, that are written as timestamps: units of"
            " timestamp.precision.mode since 1970.", None, low, _MAPPING,
        ),
        ConfigKey(
            AUTO_CREATE, Type.BOOLEAN, False, "Whether missing tables are created.", None, medium, _DDL,
        ),
        ConfigKey(
            AUTO_EVOLVE, Type.BOOLEAN, False,
            "Whether missing columns are added, if their fields are optional or have a default.", None, medium, _DDL,
        ),
        ConfigKey(
            HOLDLOCK, Type.BOOLEAN, True, "Whether MERGE uses HOLDLOCK on SQL Server.", None, low, _WRITES,
        ),
        ConfigKey(
            TRIM_LOG, Type.BOOLEAN, False, "Whether values are left out of log messages.", None, low, _RETRIES,
            ignored="Values are never logged.",
        ),
        ConfigKey(
            MAX_RETRIES, Type.INT, 10,
            "How often a transaction is repeated after an error that may pass, such as a deadlock.",
            Range(0), medium, _RETRIES,
        ),
        ConfigKey(
            RETRY_BACKOFF_MS, Type.INT, 3000, "Milliseconds between two tries.", Range(0), medium, _RETRIES,
        ),
        ConfigKey(
            OFFSETS_TABLE, Type.STRING, DEFAULT_OFFSETS_TABLE,
            "Table in the target database that keeps the offsets of what was written, so that every record is written"
            " exactly once. It is created if missing. Empty: there is none. Then insert.mode=upsert with a primary key"
            " writes records that come again over themselves, and everything else delivers at least once.",
            None, medium, _OURS,
        ),
    )  # fmt: skip
    definition.define_rule((DELETE_ENABLED, PK_MODE), _deletes_need_keys)
    definition.define_rule((INSERT_MODE, PK_MODE), _modes_need_keys)
    return definition.define_rule((PK_FIELDS, PK_MODE), _key_fields_fit)


def _deletes_need_keys(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if parsed[DELETE_ENABLED] and parsed[PK_MODE].lower() != RECORD_KEY:
        yield Problem(
            DELETE_ENABLED,
            "Primary key mode must be 'record_key' when delete support is enabled",
            f"Set {PK_MODE}={RECORD_KEY}, or {DELETE_ENABLED}=false.",
        )


def _modes_need_keys(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    mode = parsed[INSERT_MODE].lower()
    if mode != INSERT and parsed[PK_MODE].lower() == NONE:
        yield Problem(
            PK_MODE,
            f"{INSERT_MODE}={mode} requires a primary key, but {PK_MODE} is {NONE}.",
            f"Set {PK_MODE} to {RECORD_KEY}, {RECORD_VALUE} or {KAFKA}.",
        )


def _key_fields_fit(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    names = parsed[PK_FIELDS]
    if parsed[PK_MODE].lower() == KAFKA and names and len(names) != 3:
        yield Problem(
            PK_FIELDS,
            f"PK mode is {KAFKA}, so {PK_FIELDS} must name three columns, for topic, partition and offset,"
            f" but it has {len(names)}: {','.join(names)}.",
            f"Name three columns, or remove {PK_FIELDS}.",
        )


def _check_types(name: str, value: Any) -> None:
    unknown = [kind for kind in value or () if kind.upper() not in KNOWN_TABLE_TYPES]
    if unknown or not value:
        raise invalid(name, value, f"It must name some of {', '.join(KNOWN_TABLE_TYPES)}")


def _check_table_format(name: str, value: Any) -> None:
    text = value or ""
    if not text.strip():
        raise invalid(name, value, "The name of a table cannot be empty")
    if "${" in text.replace(TOPIC_PLACEHOLDER, ""):
        raise invalid(name, value, "Only ${topic} is replaced; for dates use the transformation TimestampRouter")

"""Keys of the JDBC sink: names, defaults and messages of Confluent's, and ours.

Source: io.confluent.connect.jdbc.sink.JdbcSinkConfig of kafka-connect-jdbc 10.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Importance, Problem, Rule, Type
from airflow_connect.api.config.typed import KeyGroup, TypedConfig, TypedKey
from airflow_connect.api.config.validators import EnumString, Lambda, Range
from airflow_connect.api.config.values import invalid
from airflow_connect.config.keys import sink as sink_keys
from airflow_connect.databases.keys import DEFAULT_OFFSETS_TABLE, connection_keys

INSERT, UPSERT, UPDATE = "insert", "upsert", "update"
NONE, KAFKA, RECORD_KEY, RECORD_VALUE = "none", "kafka", "record_key", "record_value"
TOPIC_PLACEHOLDER = "${topic}"
KNOWN_TABLE_TYPES = ("TABLE", "PARTITIONED TABLE", "VIEW")
_WRITES, _MAPPING, _DDL = KeyGroup("Writes"), KeyGroup("Data Mapping"), KeyGroup("DDL Support")
_RETRIES, _OURS = KeyGroup("Retries"), KeyGroup("Exactly once")


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


class JdbcSinkKeys(TypedConfig):
    """Every key of the sink."""

    insert_mode = _WRITES.high.text(
        "insert.mode",
        INSERT,
        "insert: rows are inserted. upsert: a row replaces the one with the same primary key. update: rows with the"
        " same primary key are updated; without one, nothing happens.",
        EnumString(INSERT, UPSERT, UPDATE),
    ).to(str.lower)
    batch_rows = _WRITES.medium.integer("batch.size", 3000, "Maximum number of rows of one statement.", Range(0)).to(
        lambda rows: rows or 1
    )
    deletes = _WRITES.medium.boolean(
        "delete.enabled",
        False,
        "Whether a record without value deletes the row with its key. Needs pk.mode=record_key.",
    )
    ignores_null = _WRITES.low.text(
        "behavior.on.null.values",
        "fail",
        "What happens to a record without value that does not delete a row. fail: it cannot be written, and"
        " errors.tolerance applies. ignore: it is dropped. (Confluent's sink always fails.)",
        EnumString("fail", "ignore"),
    ).to(lambda chosen: chosen.lower() == "ignore")
    table_types = _WRITES.low.words(
        "table.types",
        "TABLE",
        "Types of tables that may be written to. TABLE includes partitioned tables.",
        Lambda(_check_types, f"any of {', '.join(KNOWN_TABLE_TYPES)}"),
    ).to(lambda types: frozenset(kind.upper() for kind in types))
    table_format = _MAPPING.medium.text(
        "table.name.format",
        TOPIC_PLACEHOLDER,
        "Name of the table, in which ${topic} stands for the record's topic: kafka_${topic}, or"
        " my_schema.${topic}. For a date in the name, use the transformation TimestampRouter.",
        Lambda(_check_table_format, "a table name, may contain ${topic}"),
    ).to(str.strip)
    pk_mode = _MAPPING.high.text(
        "pk.mode",
        NONE,
        "Where the primary key is from. none: there is none. kafka: topic, partition and offset. record_key: the"
        " record's key, a struct or a primitive. record_value: fields of the value.",
        EnumString(NONE, KAFKA, RECORD_KEY, RECORD_VALUE),
    ).to(str.lower)
    pk_fields = _MAPPING.medium.words(
        "pk.fields",
        "",
        "Columns of the primary key. With kafka: three names, by default __connect_topic,"
        " __connect_partition and __connect_offset. With record_key: one name for a primitive key; fields of a"
        " struct, by default all. With record_value: fields of the value, by default all.",
    )
    whitelist = _MAPPING.medium.words(
        "fields.whitelist",
        "",
        "Fields of the value that become columns; by default all. Fields of the primary key are always written.",
    ).to(frozenset)
    string_column = _MAPPING.low.text(
        "string.output.value.column.name",
        "record_value",
        "Column for values that are a single string, such as those of StringConverter.",
    )
    replaces_null = _MAPPING.low.boolean(
        "replace.null.with.default", True, "Whether a null value is replaced by the default in the schema of its field."
    )
    dates_in_utc = _MAPPING.medium.text(
        "date.timezone",
        "DB_TIMEZONE",
        "Time zone of dates. DB_TIMEZONE: a date is midnight UTC, seen from db.timezone, so that west of Greenwich"
        " it is the day before, as with Confluent's sink. UTC: dates stay what they are.",
        EnumString("db_timezone", "utc"),
    ).to(lambda chosen: chosen.lower() == "utc")
    precision_mode = _MAPPING.low.text(
        "timestamp.precision.mode",
        "microseconds",
        "Unit of the fields in timestamp.fields.list. Digits below a microsecond are cut off.",
        EnumString("microseconds", "nanoseconds"),
    ).to(str.lower)
    timestamp_fields = _MAPPING.low.words(
        "timestamp.fields.list",
        "",
        "Fields of the value, INT64 or strings of digits, that are written as timestamps: units of"
        " timestamp.precision.mode since 1970.",
    ).to(frozenset)
    creates = _DDL.medium.boolean("auto.create", False, "Whether missing tables are created.")
    evolves = _DDL.medium.boolean(
        "auto.evolve", False, "Whether missing columns are added, if their fields are optional or have a default."
    )
    holdlock = _WRITES.low.boolean("mssql.use.merge.holdlock", True, "Whether MERGE uses HOLDLOCK on SQL Server.")
    retries = _RETRIES.medium.integer(
        "max.retries",
        10,
        "How often a transaction is repeated after an error that may pass, such as a deadlock.",
        Range(0),
    )
    backoff_ms = _RETRIES.medium.integer("retry.backoff.ms", 3000, "Milliseconds between two tries.", Range(0))
    offsets_table = _OURS.medium.text(
        "offsets.table.name",
        DEFAULT_OFFSETS_TABLE,
        "Table in the target database that keeps the offsets of what was written, so that every record is written"
        " exactly once. It is created if missing. Empty: there is none. Then insert.mode=upsert with a primary key"
        " writes records that come again over themselves, and everything else delivers at least once.",
    ).to(lambda name: (name or "").strip())

    @classmethod
    def define(cls, definition: ConfigDef) -> None:
        """After the keys of every sink and those of every database."""
        definition.include(sink_keys.sink_keys()).include(connection_keys())
        super().define(definition)
        definition.define(
            ConfigKey(
                "trim.sensitive.log", Type.BOOLEAN, False, "Whether values are left out of log messages.", None,
                Importance.LOW, "Retries", ignored="Values are never logged.",
            )
        )  # fmt: skip

    @classmethod
    def checks(cls) -> Iterable[tuple[Sequence[TypedKey[Any]], Rule]]:
        """What several keys must have together."""
        yield (cls.deletes, cls.pk_mode), _deletes_need_keys
        yield (cls.insert_mode, cls.pk_mode), _modes_need_keys
        yield (cls.pk_fields, cls.pk_mode), _key_fields_fit


Keys = JdbcSinkKeys


def _deletes_need_keys(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if Keys.deletes.of(parsed) and Keys.pk_mode.of(parsed) != RECORD_KEY:
        yield Problem(
            Keys.deletes.name,
            "Primary key mode must be 'record_key' when delete support is enabled",
            f"Set {Keys.pk_mode}={RECORD_KEY}, or {Keys.deletes}=false.",
        )


def _modes_need_keys(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    mode = Keys.insert_mode.of(parsed)
    if mode != INSERT and Keys.pk_mode.of(parsed) == NONE:
        yield Problem(
            Keys.pk_mode.name,
            f"{Keys.insert_mode}={mode} requires a primary key, but {Keys.pk_mode} is {NONE}.",
            f"Set {Keys.pk_mode} to {RECORD_KEY}, {RECORD_VALUE} or {KAFKA}.",
        )


def _key_fields_fit(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    fields = Keys.pk_fields
    names = fields.of(parsed)
    if Keys.pk_mode.of(parsed) == KAFKA and names and len(names) != 3:
        yield Problem(
            fields.name,
            f"PK mode is {KAFKA}, so {fields} must name three columns, for topic, partition and offset,"
            f" but it has {len(names)}: {','.join(names)}.",
            f"Name three columns, or remove {fields}.",
        )

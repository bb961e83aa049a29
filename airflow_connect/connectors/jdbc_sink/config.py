"""Typed configuration of the JDBC sink."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from airflow_connect.config.keys import sink as sink_keys
from airflow_connect.connectors.jdbc_sink import keys
from airflow_connect.databases.settings import ConnectionSettings

KAFKA_COLUMNS = ("__connect_topic", "__connect_partition", "__connect_offset")


@dataclass(frozen=True, slots=True)
class MappingConfig:
    """How records become rows.

    Attributes:
        table_format: `table.name.format`.
        pk_mode, pk_fields: where primary keys are from; `pk_fields` may be empty.
        whitelist: fields of the value that are written; empty: all.
        string_column: column for values that are a string.
        replaces_null: `replace.null.with.default`.
        dates_in_utc: `date.timezone` is UTC.
        timestamp_fields: fields that hold timestamps as numbers.
        per_second: units of those fields in a second.
    """

    table_format: str
    pk_mode: str
    pk_fields: tuple[str, ...]
    whitelist: frozenset[str]
    string_column: str
    replaces_null: bool
    dates_in_utc: bool
    timestamp_fields: frozenset[str]
    per_second: int


@dataclass(frozen=True, slots=True)
class JdbcSinkConfig:
    """Configuration of one sink.

    Attributes:
        name: of the connector.
        connection: how to reach the database.
        mapping: how records become rows.
        insert_mode: `insert`, `upsert` or `update`.
        deletes: whether a record without value deletes a row.
        ignores_null: whether other records without value are dropped.
        creates, evolves: whether tables are created and altered.
        table_types: types of tables that may be written to, in upper case.
        batch_rows: maximum number of rows of a statement.
        retries, backoff_ms: repetitions of a transaction.
        holdlock: for SQL Server.
        offsets_table: name of the offsets table; "": there is none.
        tolerates: whether records that cannot be written are skipped (`errors.tolerance=all`).
    """

    name: str
    connection: ConnectionSettings
    mapping: MappingConfig
    insert_mode: str
    deletes: bool
    ignores_null: bool
    creates: bool
    evolves: bool
    table_types: frozenset[str]
    batch_rows: int
    retries: int
    backoff_ms: int
    holdlock: bool
    offsets_table: str
    tolerates: bool

    @classmethod
    def from_config(cls, raw: Mapping[str, str]) -> JdbcSinkConfig:
        """Read a connector configuration.

        Raises:
            ConfigError: a key is wrong.
        """
        parsed = keys.config_def().parse(raw)
        pk_mode = parsed[keys.PK_MODE].lower()
        pk_fields = tuple(parsed[keys.PK_FIELDS])
        nanoseconds = parsed[keys.PRECISION_MODE].lower() == "nanoseconds"
        mapping = MappingConfig(
            table_format=parsed[keys.TABLE_NAME_FORMAT].strip(),
            pk_mode=pk_mode,
            pk_fields=pk_fields or (KAFKA_COLUMNS if pk_mode == keys.KAFKA else ()),
            whitelist=frozenset(parsed[keys.FIELDS_WHITELIST]),
            string_column=parsed[keys.STRING_COLUMN],
            replaces_null=parsed[keys.REPLACE_NULL],
            dates_in_utc=parsed[keys.DATE_TIMEZONE].lower() == "utc",
            timestamp_fields=frozenset(parsed[keys.TIMESTAMP_FIELDS]),
            per_second=1_000_000_000 if nanoseconds else 1_000_000,
        )
        return cls(
            name=parsed[sink_keys.NAME],
            connection=ConnectionSettings.from_parsed(parsed, raw),
            mapping=mapping,
            insert_mode=parsed[keys.INSERT_MODE].lower(),
            deletes=parsed[keys.DELETE_ENABLED],
            ignores_null=parsed[keys.NULL_VALUES].lower() == "ignore",
            creates=parsed[keys.AUTO_CREATE],
            evolves=parsed[keys.AUTO_EVOLVE],
            table_types=frozenset(kind.upper() for kind in parsed[keys.TABLE_TYPES]),
            batch_rows=parsed[keys.BATCH_SIZE] or 1,
            retries=parsed[keys.MAX_RETRIES],
            backoff_ms=parsed[keys.RETRY_BACKOFF_MS],
            holdlock=parsed[keys.HOLDLOCK],
            offsets_table=(parsed[keys.OFFSETS_TABLE] or "").strip(),
            tolerates=str(raw.get("errors.tolerance") or "none").strip().lower() == "all",
        )

"""Typed configuration of the JDBC sink."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from airflow_connect.config.keys import sink as sink_keys
from airflow_connect.connectors.jdbc.sink import keys
from airflow_connect.connectors.jdbc.sink.keys import JdbcSinkKeys
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


class JdbcSinkConfig(JdbcSinkKeys):
    """Configuration of one sink."""

    @property
    def name(self) -> str:
        """Of the connector."""
        return str(self.parsed[sink_keys.NAME])

    @cached_property
    def connection(self) -> ConnectionSettings:
        """How to reach the database."""
        return ConnectionSettings.from_parsed(self.parsed, self.raw)

    @cached_property
    def mapping(self) -> MappingConfig:
        """How records become rows."""
        return MappingConfig(
            table_format=self.table_format,
            pk_mode=self.pk_mode,
            pk_fields=self.pk_fields or (KAFKA_COLUMNS if self.pk_mode == keys.KAFKA else ()),
            whitelist=self.whitelist,
            string_column=self.string_column,
            replaces_null=self.replaces_null,
            dates_in_utc=self.dates_in_utc,
            timestamp_fields=self.timestamp_fields,
            per_second=1_000_000_000 if self.precision_mode == "nanoseconds" else 1_000_000,
        )

    @property
    def finds_rows_by_key(self) -> bool:
        """Whether records change or delete rows that have a key of their own, which another topic may have, too."""
        has_keys = self.pk_mode in (keys.RECORD_KEY, keys.RECORD_VALUE)
        return has_keys and (self.insert_mode != keys.INSERT or self.deletes)

    @property
    def tolerates(self) -> bool:
        """Whether records that cannot be written are skipped (`errors.tolerance=all`)."""
        return str(self.raw.get("errors.tolerance") or "none").strip().lower() == "all"

"""The typed configuration of the JDBC source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from airflow_connect.connectors.jdbc_source.settings import names
from airflow_connect.connectors.jdbc_source.settings.keys import jdbc_source_keys
from airflow_connect.connectors.jdbc_source.settings.rules import mapped_columns
from airflow_connect.databases.settings import ConnectionSettings
from airflow_connect.java.patterns.compiled import JavaPattern, compile_java_pattern

_Mapped = tuple[tuple[JavaPattern, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class JdbcSourceConfig:
    """What the source takes from its configuration.

    Attributes:
        connection: how to reach the database.
        mode: one of the modes in `names`.
        query: a SELECT instead of tables, or "".
        query_suffix: appended to every statement, or "".
        whitelist, blacklist: names of tables.
        include, exclude: patterns of full names.
        catalog, schema: None selects all.
        table_types: as JDBC names them.
        incrementing, timestamps: columns for all tables; "" and () if there are none.
        incrementing_by_table, timestamps_by_table: columns by a pattern of full names.
        initial_ms: where tables without offset begin; -1: now; None: at their beginning.
        delay_ms, lookback_ms: see the keys.
        lookback_rows: rows that are remembered.
        checks_null: `validate.non.null`.
        numeric_mapping, granularity: see the keys.
        out_of_range: `values.out.of.range`.
        prefix: of topics.
        batch_rows: rows of a batch.
        changed_only: `bulk.changed.only`.
        split_rows: `table.split.min.rows`.
        retries: of a statement; -1: no limit of its own.
        read_timeout_ms: without a sign of life of the database.
    """

    connection: ConnectionSettings = field(repr=False)
    mode: str
    query: str = field(repr=False)
    query_suffix: str
    whitelist: tuple[str, ...]
    blacklist: tuple[str, ...]
    include: tuple[JavaPattern, ...]
    exclude: tuple[JavaPattern, ...]
    catalog: str | None
    schema: str | None
    table_types: tuple[str, ...]
    incrementing: str
    timestamps: tuple[str, ...]
    incrementing_by_table: _Mapped
    timestamps_by_table: _Mapped
    initial_ms: int | None
    delay_ms: int
    lookback_ms: int
    lookback_rows: int
    checks_null: bool
    numeric_mapping: str
    granularity: str
    out_of_range: str
    prefix: str
    batch_rows: int
    changed_only: bool
    split_rows: int
    retries: int
    read_timeout_ms: int

    @classmethod
    def from_config(cls, raw: Mapping[str, str]) -> JdbcSourceConfig:
        """Check and type a configuration.

        Raises:
            ConfigError: names every wrong key.
        """
        parsed = jdbc_source_keys().parse(raw)
        masked = parsed[names.QUERY_MASKED]
        isolation = parsed[names.ISOLATION].upper().replace("_", " ")
        mapping = parsed[names.NUMERIC_MAPPING]
        if mapping is None:
            mapping = "precision_only" if parsed[names.NUMERIC_PRECISION_MAPPING] else "none"
        connection = ConnectionSettings.from_parsed(parsed, raw, "" if isolation == "DEFAULT" else isolation)
        if masked is not None and masked.value:
            connection = replace(connection, address=replace(connection.address, hides_statements=True))
        return cls(
            connection=connection,
            mode=parsed[names.MODE].lower(),
            query=parsed[names.QUERY] or (masked.value if masked is not None else ""),
            query_suffix=parsed[names.QUERY_SUFFIX],
            whitelist=tuple(parsed[names.TABLE_WHITELIST]),
            blacklist=tuple(parsed[names.TABLE_BLACKLIST]),
            include=tuple(compile_java_pattern(text) for text in parsed[names.TABLE_INCLUDE]),
            exclude=tuple(compile_java_pattern(text) for text in parsed[names.TABLE_EXCLUDE]),
            catalog=parsed[names.CATALOG_PATTERN],
            schema=parsed[names.SCHEMA_PATTERN],
            table_types=tuple(kind.upper() for kind in parsed[names.TABLE_TYPES]),
            incrementing=parsed[names.INCREMENTING_COLUMN],
            timestamps=tuple(column for column in parsed[names.TIMESTAMP_COLUMNS] if column),
            incrementing_by_table=tuple(mapped_columns(names.INCREMENTING_MAPPING, parsed[names.INCREMENTING_MAPPING])),
            timestamps_by_table=tuple(mapped_columns(names.TIMESTAMP_MAPPING, parsed[names.TIMESTAMP_MAPPING])),
            initial_ms=parsed[names.TIMESTAMP_INITIAL],
            delay_ms=parsed[names.TIMESTAMP_DELAY_MS],
            lookback_ms=parsed[names.LOOKBACK_MS],
            lookback_rows=parsed[names.LOOKBACK_MAX_ROWS],
            checks_null=parsed[names.VALIDATE_NON_NULL],
            numeric_mapping=mapping.lower(),
            granularity=parsed[names.TIMESTAMP_GRANULARITY].lower(),
            out_of_range=parsed[names.VALUES_OUT_OF_RANGE].lower(),
            prefix=parsed[names.TOPIC_PREFIX],
            batch_rows=parsed[names.BATCH_MAX_ROWS],
            changed_only=parsed[names.BULK_CHANGED_ONLY],
            split_rows=parsed[names.SPLIT_ROWS],
            retries=parsed[names.QUERY_RETRIES],
            read_timeout_ms=parsed[names.READ_TIMEOUT_MS],
        )

    @property
    def uses_timestamps(self) -> bool:
        """Whether rows are found by timestamps."""
        return self.mode in (names.TIMESTAMP, names.TIMESTAMP_INCREMENTING)

    @property
    def uses_incrementing(self) -> bool:
        """Whether rows are found by a growing number."""
        return self.mode in (names.INCREMENTING, names.TIMESTAMP_INCREMENTING)

    @property
    def stage_of_rows(self) -> str:
        """The key because of which rows are read one by one, although the database could return columns; or ""."""
        if self.connection.address.database != "postgresql":
            return ""
        if self.lookback_ms:
            return names.LOOKBACK_MS
        return names.BULK_CHANGED_ONLY if self.changed_only else ""

    def timestamp_columns(self, table: str) -> tuple[str, ...]:
        """The timestamp columns of a table, by its full name; () if none is configured for it."""
        mapped = _mapped(self.timestamps_by_table, table)
        return self.timestamps if mapped is None else mapped

    def incrementing_column(self, table: str) -> str:
        """The incrementing column of a table; "": it is the one that the database numbers itself."""
        mapped = _mapped(self.incrementing_by_table, table)
        return self.incrementing if mapped is None else mapped[0]


def _mapped(mapping: _Mapped, table: str) -> tuple[str, ...] | None:
    return next((columns for pattern, columns in mapping if pattern.fullmatch(table)), None)

"""Names of the JDBC source's keys, and the words that their values may be."""

from __future__ import annotations

MODE = "mode"
BULK, TIMESTAMP, INCREMENTING, TIMESTAMP_INCREMENTING = "bulk", "timestamp", "incrementing", "timestamp+incrementing"
INCREMENTING_COLUMN, TIMESTAMP_COLUMNS = "incrementing.column.name", "timestamp.column.name"
INCREMENTING_MAPPING, TIMESTAMP_MAPPING = "incrementing.column.mapping", "timestamp.columns.mapping"
TIMESTAMP_INITIAL, TIMESTAMP_DELAY_MS = "timestamp.initial", "timestamp.delay.interval.ms"
TIMESTAMP_GRANULARITY, VALIDATE_NON_NULL = "timestamp.granularity", "validate.non.null"
LOOKBACK_MS, LOOKBACK_MAX_ROWS = "timestamp.lookback.ms", "timestamp.lookback.max.rows"
BULK_CHANGED_ONLY = "bulk.changed.only"
ISOLATION = "transaction.isolation.mode"
TABLE_WHITELIST, TABLE_BLACKLIST = "table.whitelist", "table.blacklist"
TABLE_INCLUDE, TABLE_EXCLUDE = "table.include.list", "table.exclude.list"
CATALOG_PATTERN, SCHEMA_PATTERN, TABLE_TYPES = "catalog.pattern", "schema.pattern", "table.types"
QUERY, QUERY_MASKED, QUERY_SUFFIX, QUERY_RETRIES = "query", "query.masked", "query.suffix", "query.retry.attempts"
NUMERIC_MAPPING, NUMERIC_PRECISION_MAPPING = "numeric.mapping", "numeric.precision.mapping"
TOPIC_PREFIX, BATCH_MAX_ROWS, POLL_INTERVAL_MS = "topic.prefix", "batch.max.rows", "poll.interval.ms"
SPLIT_ROWS, READ_TIMEOUT_MS = "table.split.min.rows", "read.timeout.ms"
DEFAULT_BATCH_ROWS = 1000
VALUES_OUT_OF_RANGE = "values.out.of.range"
FAIL, NULL, CLAMP = "fail", "null", "clamp"

MAPPINGS = ("none", "precision_only", "best_fit", "best_fit_eager_double")
LOGICAL = "connect_logical"
GRANULARITIES = (
    LOGICAL, "micros_long", "micros_string", "micros_iso_datetime_string", "nanos_long", "nanos_string",
    "nanos_iso_datetime_string",
)  # fmt: skip
ISOLATIONS = (
    "default", "read_uncommitted", "read_committed", "repeatable_read", "serializable", "sql_server_snapshot",
)  # fmt: skip

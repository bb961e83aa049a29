"""The words that values of the JDBC source's keys may be."""

from __future__ import annotations

BULK, TIMESTAMP, INCREMENTING, TIMESTAMP_INCREMENTING = "bulk", "timestamp", "incrementing", "timestamp+incrementing"
"""Modes."""
DEFAULT_BATCH_ROWS = 1000
FAIL, NULL, CLAMP, CONTINUE = "fail", "null", "clamp", "continue"

MAPPINGS = ("none", "precision_only", "best_fit", "best_fit_eager_double")
LOGICAL = "connect_logical"
GRANULARITIES = (
    LOGICAL, "micros_long", "micros_string", "micros_iso_datetime_string", "nanos_long", "nanos_string",
    "nanos_iso_datetime_string",
)  # fmt: skip
ISOLATIONS = (
    "default", "read_uncommitted", "read_committed", "repeatable_read", "serializable", "sql_server_snapshot",
)  # fmt: skip

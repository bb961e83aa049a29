"""Definitions of the JDBC source's keys.

Source: io.confluent.connect.jdbc.source.JdbcSourceConnectorConfig (10.9) and its validation for names, types, defaults
and valid values. Keys at the end of the list are ours.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from airflow_connect.api.config.config_def import REQUIRED, ConfigDef, ConfigKey, Importance, Type
from airflow_connect.api.config.validators import EnumString, Lambda, NonEmptyString, Range
from airflow_connect.api.config.values import invalid
from airflow_connect.connectors.jdbc_source.settings import rules
from airflow_connect.connectors.jdbc_source.settings.names import (
    BATCH_MAX_ROWS,
    BULK,
    BULK_CHANGED_ONLY,
    CATALOG_PATTERN,
    CLAMP,
    FAIL,
    GRANULARITIES,
    INCREMENTING,
    INCREMENTING_COLUMN,
    INCREMENTING_MAPPING,
    ISOLATION,
    ISOLATIONS,
    LOOKBACK_MAX_ROWS,
    LOOKBACK_MS,
    MAPPINGS,
    MODE,
    NULL,
    NUMERIC_MAPPING,
    NUMERIC_PRECISION_MAPPING,
    POLL_INTERVAL_MS,
    QUERY,
    QUERY_MASKED,
    QUERY_RETRIES,
    QUERY_SUFFIX,
    READ_TIMEOUT_MS,
    SCHEMA_PATTERN,
    SPLIT_ROWS,
    TABLE_BLACKLIST,
    TABLE_EXCLUDE,
    TABLE_INCLUDE,
    TABLE_TYPES,
    TABLE_WHITELIST,
    TIMESTAMP,
    TIMESTAMP_COLUMNS,
    TIMESTAMP_DELAY_MS,
    TIMESTAMP_GRANULARITY,
    TIMESTAMP_INCREMENTING,
    TIMESTAMP_INITIAL,
    TIMESTAMP_MAPPING,
    TOPIC_PREFIX,
    VALIDATE_NON_NULL,
    VALUES_OUT_OF_RANGE,
)
from airflow_connect.databases.keys import connection_keys
from airflow_connect.java.patterns.compiled import compile_java_pattern
from airflow_connect.java.patterns.nodes import PatternError

_WHICH, _MODE, _VALUES, _FLOW = "Tables", "Mode", "Values", "Flow"
_RUNS = "A run reads what is new and ends; the schedule of the DAG decides how often."


@cache
def jdbc_source_keys() -> ConfigDef:
    """Every key of the JDBC source; those of every source are added by the runtime."""
    definition = connection_keys().define(
        *_table_keys(), *_mode_keys(), *_timestamp_keys(), *_value_keys(), *_flow_keys(), *_ignored_keys()
    )
    for names, rule in rules.RULES:
        definition.define_rule(names, rule)
    return definition


def _table_keys() -> list[ConfigKey]:
    high, medium, low = Importance.HIGH, Importance.MEDIUM, Importance.LOW
    return [
        ConfigKey(
            TABLE_WHITELIST, Type.LIST, "",
            "Tables to copy: names, with or without schema. Empty, without any other selection: all tables.",
            None, medium, _WHICH,
        ),
        ConfigKey(
            TABLE_BLACKLIST, Type.LIST, "", "Tables to leave out. May not be combined with table.whitelist.",
            None, medium, _WHICH,
        ),
        ConfigKey(
            TABLE_INCLUDE, Type.LIST, "",
            "Java regular expressions, such as shop\\.public\\..*, for the full names of tables to copy.",
            Lambda(_check_patterns, "regular expressions"), medium, _WHICH,
        ),
        ConfigKey(
            TABLE_EXCLUDE, Type.LIST, "",
            "Java regular expressions that match the full names of tables to leave out, of those in"
            " table.include.list.",
            Lambda(_check_patterns, "regular expressions"), medium, _WHICH,
        ),
        ConfigKey(
            CATALOG_PATTERN, Type.STRING, None,
            "Catalog of the tables: the name of a database of MySQL or MariaDB, without wildcards. Empty selects tables"
            " without a catalog. Unset: the database of connection.url.",
            None, medium, _WHICH,
        ),
        ConfigKey(
            SCHEMA_PATTERN, Type.STRING, None,
            "Schemas of the tables, a pattern of SQL: % is any text, _ one character. Unset: all schemas except"
            " those of"
            " the database itself.",
            None, high, _WHICH,
        ),
        ConfigKey(
            TABLE_TYPES, Type.LIST, "TABLE",
            "Types of tables: TABLE, VIEW, MATERIALIZED VIEW, PARTITIONED TABLE, FOREIGN TABLE, SYSTEM TABLE. Other"
            " types of JDBC select nothing.",
            Lambda(_check_not_empty, "types of tables"), low, _WHICH,
        ),
        ConfigKey(
            QUERY, Type.STRING, "",
            "A SELECT to copy instead of tables. Except in mode bulk, a WHERE clause is appended to it, so it must not"
            " have one of its own; use a subquery or a join.",
            None, medium, _WHICH,
        ),
        ConfigKey(
            QUERY_MASKED, Type.PASSWORD, None, "Like query, but never shown. Only one of both may be set.",
            None, medium, _WHICH,
        ),
        ConfigKey(
            QUERY_SUFFIX, Type.STRING, "",
            "Text that is appended to each statement, such as FOR READ ONLY. A LIMIT makes a run end early; the next"
            " one continues.",
            None, low, _WHICH,
        ),
    ]  # fmt: skip


def _mode_keys() -> list[ConfigKey]:
    high, medium = Importance.HIGH, Importance.MEDIUM
    return [
        ConfigKey(
            MODE, Type.STRING, REQUIRED,
            "How new rows are found. bulk: each run copies whole tables. incrementing: by a column that only"
            " grows, which"
            " finds new rows but no changed ones. timestamp: by columns with the time of the last change."
            " timestamp+incrementing: by both.",
            EnumString(BULK, TIMESTAMP, INCREMENTING, TIMESTAMP_INCREMENTING), high, _MODE,
            dependents=(INCREMENTING_COLUMN, TIMESTAMP_COLUMNS, INCREMENTING_MAPPING, TIMESTAMP_MAPPING),
        ),
        ConfigKey(
            BULK_CHANGED_ONLY, Type.BOOLEAN, False,
            "Mode bulk: send only those ranges of some 10,000 rows in which a row was added, changed or deleted since"
            " the last run. Each run still reads whole tables, in the order of their primary key, and keeps a hash of"
            " each range in the offsets. A table whose primary key is not one column with whole numbers is sent as a"
            " whole.",
            None, medium, _MODE, recommender=rules.ForModes(BULK),
        ),
        ConfigKey(
            INCREMENTING_COLUMN, Type.STRING, "",
            "Column that grows with every new row. Empty: the table's column that the database numbers itself.",
            None, medium, _MODE, recommender=rules.ForModes(INCREMENTING, TIMESTAMP_INCREMENTING),
        ),
        ConfigKey(
            TIMESTAMP_COLUMNS, Type.LIST, "",
            "Columns with the time of the last change; of several, the first that is not null counts (COALESCE).",
            None, medium, _MODE, recommender=rules.ForModes(TIMESTAMP, TIMESTAMP_INCREMENTING),
        ),
        ConfigKey(
            INCREMENTING_MAPPING, Type.LIST, "",
            "Incrementing columns by table: regular expression of full names, colon, column. The first match counts.",
            Lambda(rules.check_incrementing_mapping, "regex:column"), medium, _MODE,
            recommender=rules.ForModes(INCREMENTING, TIMESTAMP_INCREMENTING),
        ),
        ConfigKey(
            TIMESTAMP_MAPPING, Type.LIST, "",
            "Timestamp columns by table: regular expression of full names, colon, columns as [first|second].",
            Lambda(rules.check_timestamp_mapping, "regex:[column|column]"), medium, _MODE,
            recommender=rules.ForModes(TIMESTAMP, TIMESTAMP_INCREMENTING),
        ),
    ]  # fmt: skip


def _timestamp_keys() -> list[ConfigKey]:
    medium, high, low = Importance.MEDIUM, Importance.HIGH, Importance.LOW
    return [
        ConfigKey(
            TIMESTAMP_INITIAL, Type.LONG, None,
            "Milliseconds since the epoch from which a table without an offset is read; -1: the database's time at the"
            " first run. Unset: from its beginning.",
            None, low, _MODE,
        ),
        ConfigKey(
            TIMESTAMP_DELAY_MS, Type.LONG, 0,
            "Milliseconds before the database's current time at which a run ends, so that transactions which are still"
            " open then can commit first.",
            Range(0), high, _MODE,
        ),
        ConfigKey(
            VALIDATE_NON_NULL, Type.BOOLEAN, True,
            "Whether a table is refused if its incrementing column, or all of its timestamp columns, may be null. Rows"
            " with null there are never copied; the report has their number.",
            None, low, _MODE,
        ),
        ConfigKey(
            LOOKBACK_MS, Type.LONG, 0,
            "Milliseconds before the last offset from which rows are read again, to find those that were"
            " committed late."
            " Rows that were sent are recognised by primary key and content and are not sent again. 0: off. Only for"
            " tables with a primary key.",
            Range(0), medium, _MODE,
        ),
        ConfigKey(
            LOOKBACK_MAX_ROWS, Type.INT, 10_000,
            "Largest number of rows of a table that timestamp.lookback.ms remembers, at 24 bytes each in the offset. If"
            " more rows are in the window, the oldest are forgotten, the window begins after them, and the report says"
            " so.",
            Range(1, 20_000), low, _MODE,
        ),
        ConfigKey(
            ISOLATION, Type.STRING, "DEFAULT", "Isolation level of the transactions that read.",
            EnumString(*ISOLATIONS), low, _MODE,
        ),
    ]  # fmt: skip


def _value_keys() -> list[ConfigKey]:
    medium, low = Importance.MEDIUM, Importance.LOW
    return [
        ConfigKey(
            TOPIC_PREFIX, Type.STRING, REQUIRED,
            "What the names of topics begin with: the name of the table follows. With query it is the whole name.",
            NonEmptyString(), Importance.HIGH, _VALUES,
        ),
        ConfigKey(
            NUMERIC_MAPPING, Type.STRING, None,
            "How NUMERIC columns are mapped. none: always Decimal. precision_only: integers of up to 18 digits become"
            " INT8 to INT64. best_fit: those, and FLOAT64 for up to 18 digits with fraction. best_fit_eager_double:"
            " FLOAT64 for everything with a fraction.",
            Lambda(_check_mapping, ", ".join(MAPPINGS)), low, _VALUES,
        ),
        ConfigKey(
            NUMERIC_PRECISION_MAPPING, Type.BOOLEAN, False,
            "Old form of numeric.mapping: true is precision_only. numeric.mapping takes precedence.",
            None, low, _VALUES,
        ),
        ConfigKey(
            TIMESTAMP_GRANULARITY, Type.STRING, "connect_logical",
            "How timestamps are written: connect_logical (milliseconds), or as micro- or nanoseconds in an INT64, as a"
            " text with the same number, or as a date and time in db.timezone.",
            EnumString(*GRANULARITIES), low, _VALUES,
        ),
        ConfigKey(
            VALUES_OUT_OF_RANGE, Type.STRING, FAIL,
            "What becomes of a value that its field cannot hold: dates before year 1 or after 9999, infinite ones,"
            " dates with zeros (MySQL), infinity and NaN in a NUMERIC, numbers above INT64, times beyond a day. fail:"
            " the table is not copied any further, and the run fails. null: null is written. clamp: the nearest value"
            " that fits; fails where there is none. The report has the number of such values of each column. For"
            " 0000-00-00, zeroDateTimeBehavior in connection.url takes precedence.",
            EnumString(FAIL, NULL, CLAMP), medium, _VALUES,
        ),
        ConfigKey(
            BATCH_MAX_ROWS, Type.INT, 1000,
            "Largest number of rows of a batch, which is one transaction with transaction.boundary=poll; rows with the"
            " same timestamp stay together. Also the number of rows that are fetched from the database at once."
            " Where rows"
            " are processed in columns, only values below the default limit a batch.",
            Range(1), medium, _FLOW,
        ),
    ]  # fmt: skip


def _flow_keys() -> list[ConfigKey]:
    return [
        ConfigKey(
            SPLIT_ROWS, Type.INT, 500_000,
            "A table that has about this many rows, or more, is divided into ranges that several tasks read, when it is"
            " copied for the first time, and in mode bulk. At most tasks.max tasks read. The plan shows the ranges.",
            Range(1), Importance.LOW, _FLOW,
        ),
        ConfigKey(
            QUERY_RETRIES, Type.INT, -1,
            "How often a statement that failed for a temporary reason is repeated; -1: until the run's own time"
            " limit for"
            " such failures (errors.retry.timeout, at least a minute).",
            Range(-1), Importance.LOW, _FLOW,
        ),
        ConfigKey(
            READ_TIMEOUT_MS, Type.LONG, 1_800_000,
            "How long the database may send nothing to a task that reads. After that the task closes the connection"
            " and repeats the statement, as after every failure that may pass. It must be longer than a statement takes"
            " until its first row, such as the time to sort a large table.",
            Range(1), Importance.LOW, _FLOW,
        ),
    ]  # fmt: skip


def _ignored_keys() -> list[ConfigKey]:
    low = Importance.LOW
    return [
        ConfigKey(POLL_INTERVAL_MS, Type.INT, 5000, "Pause between two polls.", None, low, _FLOW, ignored=_RUNS),
        ConfigKey(
            "table.poll.interval.ms", Type.LONG, 60_000, "How often to look for new tables.", None, low, _FLOW,
            ignored="Each run looks for tables once, when it begins.",
        ),
        ConfigKey(
            "table.monitoring.startup.polling.limit.ms", Type.LONG, 10_000, "Time limit of the first look for tables.",
            None, low, _FLOW, ignored="Each run looks for tables once, when it begins, and waits for the result.",
        ),
        ConfigKey(
            "max.buffer.size", Type.INT, 0, "Number of records that are buffered.", None, low, _FLOW,
            ignored="Rows are streamed; batch.max.rows limits how many are in memory.",
        ),
        ConfigKey(
            "poll.linger.ms", Type.LONG, 5000, "How long a poll waits for rows.", None, low, _FLOW, ignored=_RUNS,
        ),
    ]  # fmt: skip


def _check_patterns(name: str, value: Any) -> None:
    for text in value or ():
        try:
            compile_java_pattern(text)
        except PatternError as error:
            raise invalid(name, text, f"It is not a regular expression: {error}") from None


def _check_not_empty(name: str, value: Any) -> None:
    if not value or not all(value):
        raise invalid(name, value, "Write at least one type, such as TABLE")


def _check_mapping(name: str, value: Any) -> None:
    if value is not None:
        EnumString(*MAPPINGS).check(name, value)

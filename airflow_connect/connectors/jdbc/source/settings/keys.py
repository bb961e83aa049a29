"""The keys of the JDBC source.

Source: io.confluent.connect.jdbc.source.JdbcSourceConnectorConfig (10.9) and its validation for names, types, defaults
and valid values. Keys at the end of the list are ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow_connect.api.config.config_def import REQUIRED, ConfigDef, ConfigKey, Importance, Type
from airflow_connect.api.config.typed import KeyGroup, TypedConfig
from airflow_connect.api.config.validators import EnumString, Lambda, NonEmptyString, Range
from airflow_connect.api.config.values import invalid
from airflow_connect.connectors.jdbc.source.settings.mapped_columns import (
    check_mapping,
    column_by_table,
    columns_by_table,
)
from airflow_connect.connectors.jdbc.source.settings.names import (
    BULK,
    CLAMP,
    CONTINUE,
    FAIL,
    GRANULARITIES,
    INCREMENTING,
    ISOLATIONS,
    MAPPINGS,
    NULL,
    TIMESTAMP,
    TIMESTAMP_INCREMENTING,
)
from airflow_connect.databases.keys import connection_keys
from airflow_connect.java.patterns.compiled import JavaPattern, compile_java_pattern
from airflow_connect.java.patterns.nodes import PatternError

_WHICH, _MODE = KeyGroup("Tables"), KeyGroup("Mode")
_VALUES, _FLOW = KeyGroup("Values"), KeyGroup("Flow")
_RUNS = "A run reads what is new and ends; the schedule of the DAG decides how often."


class ForModes:
    """Shows a key in some modes only."""

    def __init__(self, *modes: str) -> None:
        """`modes`: those in which the key has an effect."""
        self._modes = modes

    def valid_values(self, name: str, parsed: Mapping[str, Any]) -> Sequence[Any]:
        """None to recommend."""
        return ()

    def visible(self, name: str, parsed: Mapping[str, Any]) -> bool:
        """Whether the mode uses the key."""
        return str(parsed.get("mode") or "").lower() in self._modes


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


def _patterns(texts: Sequence[str]) -> tuple[JavaPattern, ...]:
    return tuple(compile_java_pattern(text) for text in texts)


class JdbcSourceKeys(TypedConfig):
    """Every key of the JDBC source; those of every source are added by the runtime."""

    whitelist = _WHICH.medium.words(
        "table.whitelist",
        "",
        "Tables to copy: names, with or without schema. Empty, without any other selection: all tables.",
    )
    blacklist = _WHICH.medium.words(
        "table.blacklist", "", "Tables to leave out. May not be combined with table.whitelist."
    )
    include = _WHICH.medium.words(
        "table.include.list",
        "",
        "Java regular expressions, such as shop\\.public\\..*, for the full names of tables to copy.",
        Lambda(_check_patterns, "regular expressions"),
    ).to(_patterns)
    exclude = _WHICH.medium.words(
        "table.exclude.list",
        "",
        "Java regular expressions that match the full names of tables to leave out, of those in table.include.list.",
        Lambda(_check_patterns, "regular expressions"),
    ).to(_patterns)
    catalog = _WHICH.medium.optional_text(
        "catalog.pattern",
        "Catalog of the tables: the name of a database of MySQL or MariaDB, without wildcards. Empty selects tables"
        " without a catalog. Unset: the database of connection.url.",
    )
    schema = _WHICH.high.optional_text(
        "schema.pattern",
        "Schemas of the tables, a pattern of SQL: % is any text, _ one character. Unset: all schemas except"
        " those of"
        " the database itself.",
    )
    table_types = _WHICH.low.words(
        "table.types",
        "TABLE",
        "Types of tables: TABLE, VIEW, MATERIALIZED VIEW, PARTITIONED TABLE, FOREIGN TABLE, SYSTEM TABLE. Other"
        " types of JDBC select nothing.",
        Lambda(_check_not_empty, "types of tables"),
    ).to(lambda types: tuple(kind.upper() for kind in types))
    plain_query = _WHICH.medium.text(
        "query",
        "",
        "A SELECT to copy instead of tables. Except in mode bulk, it becomes a subquery with a condition for new rows,"
        " and must not end with a LIMIT: see query.suffix.",
    )
    masked_query = _WHICH.medium.password(
        "query.masked", None, "Like query, but never shown. Only one of both may be set."
    )
    query_suffix = _WHICH.low.text(
        "query.suffix",
        "",
        "Text that is appended to each statement, such as FOR READ ONLY. A LIMIT makes a run end early; the next"
        " one continues.",
    )
    mode = _MODE.high.text(
        "mode",
        REQUIRED,
        "How new rows are found. bulk: each run copies whole tables. incrementing: by a column that only"
        " grows, which"
        " finds new rows but no changed ones. timestamp: by columns with the time of the last change."
        " timestamp+incrementing: by both.",
        EnumString(BULK, TIMESTAMP, INCREMENTING, TIMESTAMP_INCREMENTING),
        dependents=(
            "incrementing.column.name",
            "timestamp.column.name",
            "incrementing.column.mapping",
            "timestamp.columns.mapping",
        ),
    ).to(str.lower)
    changed_only = _MODE.medium.boolean(
        "bulk.changed.only",
        False,
        "Mode bulk: send only those ranges of some 10,000 rows in which a row was added, changed or deleted since"
        " the last run. Each run still reads whole tables, in the order of their primary key, and keeps a hash of"
        " each range in the offsets. A table whose primary key is not one column with whole numbers is sent as a"
        " whole.",
        recommender=ForModes(BULK),
    )
    incrementing = _MODE.medium.text(
        "incrementing.column.name",
        "",
        "Column that grows with every new row. Empty: the table's column that the database numbers itself.",
        recommender=ForModes(INCREMENTING, TIMESTAMP_INCREMENTING),
    )
    timestamps = _MODE.medium.words(
        "timestamp.column.name",
        "",
        "Columns with the time of the last change; of several, the first that is not null counts (COALESCE).",
        recommender=ForModes(TIMESTAMP, TIMESTAMP_INCREMENTING),
    ).to(lambda columns: tuple(column for column in columns if column))
    incrementing_by_table = _MODE.medium.words(
        "incrementing.column.mapping",
        "",
        "Incrementing columns by table: regular expression of full names, colon, column. The first match counts.",
        Lambda(check_mapping, "regex:column"),
        recommender=ForModes(INCREMENTING, TIMESTAMP_INCREMENTING),
    ).to(column_by_table)
    timestamps_by_table = _MODE.medium.words(
        "timestamp.columns.mapping",
        "",
        "Timestamp columns by table: regular expression of full names, colon, columns as [first|second].",
        Lambda(check_mapping, "regex:[column|column]"),
        recommender=ForModes(TIMESTAMP, TIMESTAMP_INCREMENTING),
    ).to(columns_by_table)
    initial_ms = _MODE.low.optional_long(
        "timestamp.initial",
        "Milliseconds since the epoch after which a table without an offset is read; -1: the database's time at the"
        " first run. Unset: from its beginning.",
    )
    delay_ms = _MODE.high.long(
        "timestamp.delay.interval.ms",
        0,
        "Milliseconds before the database's current time at which a run ends, so that transactions which are still"
        " open then can commit first.",
        Range(0),
    )
    checks_null = _MODE.low.boolean(
        "validate.non.null",
        True,
        "Whether a table is refused if its incrementing column, or all of its timestamp columns, may be null. Rows"
        " with null there are never copied; the report has their number.",
    )
    lookback_ms = _MODE.medium.long(
        "timestamp.lookback.ms",
        0,
        "Milliseconds before the last offset from which rows are read again, to find those that were"
        " committed late."
        " Rows that were sent are recognised by primary key and content and are not sent again. 0: off. Only for"
        " tables with a primary key.",
        Range(0),
    )
    lookback_rows = _MODE.low.integer(
        "timestamp.lookback.max.rows",
        10_000,
        "Largest number of rows of a table that timestamp.lookback.ms remembers, at 24 bytes each in the offset. If"
        " more rows are in the window, the oldest are forgotten, the window begins after them, and the report says"
        " so.",
        Range(1, 20_000),
    )
    recreated = _MODE.low.text(
        "table.recreated",
        FAIL,
        "What to do if a table of PostgreSQL was dropped and created again since the last run, and has rows at or below"
        " the offset. fail: it is not copied, and the run fails. continue: these rows are taken as copied, which is"
        " right if the table was rebuilt with its rows; the report has their number.",
        EnumString(FAIL, CONTINUE),
        recommender=ForModes(INCREMENTING, TIMESTAMP, TIMESTAMP_INCREMENTING),
    ).to(str.lower)
    isolation = _MODE.low.text(
        "transaction.isolation.mode",
        "DEFAULT",
        "Isolation level of the transactions that read.",
        EnumString(*ISOLATIONS),
    ).to(str.lower)
    prefix = _VALUES.high.text(
        "topic.prefix",
        REQUIRED,
        "What the names of topics begin with: the name of the table follows. With query it is the whole name.",
        NonEmptyString(),
    )
    mapping_of_numbers = _VALUES.low.optional_text(
        "numeric.mapping",
        "How NUMERIC columns are mapped. none: always Decimal. precision_only: integers of up to 18 digits become"
        " INT8 to INT64. best_fit: those, and FLOAT64 for up to 18 digits with fraction. best_fit_eager_double:"
        " FLOAT64 for everything with a fraction.",
        Lambda(_check_mapping, ", ".join(MAPPINGS)),
    )
    maps_precision = _VALUES.low.boolean(
        "numeric.precision.mapping",
        False,
        "Old form of numeric.mapping: true is precision_only. numeric.mapping takes precedence.",
    )
    granularity = _VALUES.low.text(
        "timestamp.granularity",
        "connect_logical",
        "How timestamps are written: connect_logical (milliseconds), or as micro- or nanoseconds in an INT64, as a"
        " text with the same number, or as a date and time in db.timezone.",
        EnumString(*GRANULARITIES),
    ).to(str.lower)
    out_of_range = _VALUES.medium.text(
        "values.out.of.range",
        FAIL,
        "What becomes of a value that its field cannot hold: dates before year 1 or after 9999, infinite ones,"
        " dates with zeros (MySQL), infinity and NaN in a NUMERIC, numbers above INT64, times beyond a day. fail:"
        " the table is not copied any further, and the run fails. null: null is written. clamp: the nearest value"
        " that fits; fails where there is none. The report has the number of such values of each column. For"
        " 0000-00-00, zeroDateTimeBehavior in connection.url takes precedence.",
        EnumString(FAIL, NULL, CLAMP),
    ).to(str.lower)
    batch_rows = _FLOW.medium.integer(
        "batch.max.rows",
        1000,
        "Largest number of rows of a batch, which is one transaction with transaction.boundary=poll; rows with the"
        " same timestamp stay together. Also the number of rows that are fetched from the database at once."
        " Where rows"
        " are processed in columns, only values below the default limit a batch.",
        Range(1),
    )
    split_rows = _FLOW.low.integer(
        "table.split.min.rows",
        500_000,
        "A table that has about this many rows, or more, is divided into ranges that several tasks read, when it is"
        " copied for the first time, and in mode bulk. At most tasks.max tasks read. The plan shows the ranges.",
        Range(1),
    )
    retries = _FLOW.low.integer(
        "query.retry.attempts",
        -1,
        "How often a statement that failed for a temporary reason is repeated; -1: until the run's own time"
        " limit for"
        " such failures (errors.retry.timeout, at least a minute).",
        Range(-1),
    )
    read_timeout_ms = _FLOW.low.long(
        "read.timeout.ms",
        1_800_000,
        "How long the database may send nothing to a task that reads. After that the task closes the connection"
        " and repeats the statement, as after every failure that may pass. It must be longer than a statement takes"
        " until its first row, such as the time to sort a large table.",
        Range(1),
    )

    @classmethod
    def define(cls, definition: ConfigDef) -> None:
        """After the keys of every database; before those that have no effect here."""
        definition.include(connection_keys())
        super().define(definition)
        definition.define(*_ignored_keys())


def _ignored_keys() -> list[ConfigKey]:
    low = Importance.LOW
    return [
        ConfigKey("poll.interval.ms", Type.INT, 5000, "Pause between two polls.", None, low, "Flow", ignored=_RUNS),
        ConfigKey(
            "table.poll.interval.ms", Type.LONG, 60_000, "How often to look for new tables.", None, low, "Flow",
            ignored="Each run looks for tables once, when it begins.",
        ),
        ConfigKey(
            "table.monitoring.startup.polling.limit.ms", Type.LONG, 10_000, "Time limit of the first look for tables.",
            None, low, "Flow", ignored="Each run looks for tables once, when it begins, and waits for the result.",
        ),
        ConfigKey(
            "max.buffer.size", Type.INT, 0, "Number of records that are buffered.", None, low, "Flow",
            ignored="Rows are streamed; batch.max.rows limits how many are in memory.",
        ),
        ConfigKey(
            "poll.linger.ms", Type.LONG, 5000, "How long a poll waits for rows.", None, low, "Flow", ignored=_RUNS,
        ),
    ]  # fmt: skip

"""Keys of the Iceberg sink: those of Apache's `IcebergSinkConnector`, and of the Tabular connector that it comes from.

Source: org.apache.iceberg.connect.IcebergSinkConfig (Iceberg 1.12), io.tabular.iceberg.connect.IcebergSinkConfig.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from airflow_connect.api.config.config_def import ConfigDef, KeyFamily, Problem
from airflow_connect.api.config.typed import Checks, KeyGroup, TypedConfig
from airflow_connect.config.keys import sink as sink_keys

CATALOG = "iceberg.catalog."
TABLE = "iceberg.table."
CREATE_PROPERTIES = "iceberg.tables.auto-create-props."
WRITE_PROPERTIES = ("iceberg.tables.write-props.", "iceberg.table.write-props.")
HADOOP = "iceberg.hadoop."

ROUTE_REGEX, BRANCH, PARTITION_BY, ID_COLUMNS = "route-regex", "commit-branch", "partition-by", "id-columns"
OF_TABLE = (ROUTE_REGEX, BRANCH, PARTITION_BY, ID_COLUMNS)
"""Keys of one table: `iceberg.table.<table>.<key>`."""

_TABLES, _CATALOG, _OTHER = KeyGroup("Tables"), KeyGroup("Catalog"), KeyGroup("Without effect")
_ONE_COMMIT = "There is no control topic and no coordinator: the driver commits once, at the end of a run."


class IcebergKeys(TypedConfig):
    """Every key of the sink that has a fixed name."""

    tables = _TABLES.high.words(
        "iceberg.tables",
        None,
        "The tables, with commas: namespace and name with a dot between them. Without `iceberg.tables.route-field`,"
        " each record goes to every one of them.",
    )
    is_dynamic = _TABLES.medium.boolean(
        "iceberg.tables.dynamic-enabled",
        "false",
        "Whether a field of each record names its table: `iceberg.tables.route-field`, in lower case.",
    )
    route_field = _TABLES.medium.text(
        "iceberg.tables.route-field",
        None,
        "The field of the value that determines the table; fields of structs after a dot. With"
        " `iceberg.tables.dynamic-enabled` it is the table's name. Otherwise a record goes to each table whose"
        " `iceberg.table.<table>.route-regex` matches the whole of it.",
    ).or_blank()
    dynamic_names = _TABLES.medium.text(
        "iceberg.tables.dynamic-pattern",
        ".*",
        "The tables that a record may name with `iceberg.tables.dynamic-enabled`: a regular expression (Java's) that"
        " must match the whole name. A record that names another one cannot be written: `errors.tolerance` says what"
        " becomes of it.",
    )
    branch = _TABLES.medium.text(
        "iceberg.tables.default-commit-branch",
        None,
        "The branch that commits go to; blank: `main`. `iceberg.table.<table>.commit-branch` takes precedence.",
    ).or_blank()
    id_columns = _TABLES.low.text(
        "iceberg.tables.default-id-columns",
        None,
        "Columns that identify a row, with commas. Tables that the sink creates get them as identifier fields. Rows are"
        " appended all the same. `iceberg.table.<table>.id-columns` takes precedence.",
    ).or_blank()
    partition_by = _TABLES.medium.text(
        "iceberg.tables.default-partition-by",
        None,
        "How tables that the sink creates are partitioned, with commas: a column, or one of `year`, `month`, `day`,"
        " `hour` of it, `bucket(column, n)` or `truncate(column, n)`. `iceberg.table.<table>.partition-by` takes"
        " precedence.",
    ).or_blank()
    creates = _TABLES.medium.boolean(
        "iceberg.tables.auto-create-enabled", "false", "Whether tables that do not exist are created."
    )
    evolves = _TABLES.medium.boolean(
        "iceberg.tables.evolve-schema-enabled",
        "false",
        "Whether columns are added, widened and made optional, as the schemas of records need it. If not, fields that a"
        " table does not have are dropped: the report names and counts them.",
    )
    forces_optional = _TABLES.medium.boolean(
        "iceberg.tables.schema-force-optional",
        "false",
        "Whether every column that the sink creates is optional, also inside of structs, lists and maps.",
    )
    ignores_case = _TABLES.medium.boolean(
        "iceberg.tables.schema-case-insensitive", "false", "Whether fields find their columns without regard to case."
    )
    follows_changes = _TABLES.medium.text(
        "iceberg.tables.cdc-field", None, "Not supported: rows are appended, never changed or deleted."
    ).or_blank()
    upserts = _TABLES.medium.boolean(
        "iceberg.tables.upsert-mode-enabled", "false", "Not supported: rows are appended, never changed or deleted."
    )
    catalog = _CATALOG.medium.text("iceberg.catalog", "iceberg", "Name of the catalog, as the catalog itself knows it.")
    commit_timeout_ms = _CATALOG.medium.integer(
        "iceberg.control.commit.timeout-ms",
        30_000,
        "How long the commit of a table is tried again, in milliseconds, if the catalog does not answer or others"
        " commit at the same time. Then the run fails, and the next one commits.",
    )
    commit_threads = _CATALOG.medium.integer(
        "iceberg.control.commit.threads", 4, "How many tables are committed at the same time."
    )
    _control_topic = _OTHER.low.text(
        "iceberg.control.topic", "control-iceberg", "Topic of the original's coordinator.", ignored=_ONE_COMMIT
    )
    _control_prefix = _OTHER.low.text(
        "iceberg.control.group-id-prefix", "cg-control", "Groups of the original.", ignored=_ONE_COMMIT
    )
    _control_group = _OTHER.low.text(
        "iceberg.control.group-id", None, "Group of Tabular's connector.", ignored=_ONE_COMMIT
    )
    _commit_interval_ms = _OTHER.low.integer(
        "iceberg.control.commit.interval-ms", 300_000, "Time between commits of the original.", ignored=_ONE_COMMIT
    )
    _most_failures = _OTHER.low.integer(
        "iceberg.control.commit.max-consecutive-failures", 1, "Commits that may fail.", ignored=_ONE_COMMIT
    )
    _connect_group = _OTHER.low.text(
        "iceberg.connect.group-id",
        None,
        "Consumer group of the original.",
        ignored="The group of a connector is `connect-<name>`, unless `consumer.override.group.id` is set.",
    )
    _transactional_prefix = _OTHER.low.text(
        "iceberg.coordinator.transactional.prefix", None, "Transactions of the coordinator.", ignored=_ONE_COMMIT
    )
    _keep_alive_ms = _OTHER.low.long(
        "iceberg.coordinator-executor-keep-alive-timeout-ms",
        120_000,
        "Threads of the coordinator.",
        ignored=_ONE_COMMIT,
    )
    _hadoop_conf = _OTHER.low.text(
        "iceberg.hadoop-conf-dir",
        None,
        "Folder with Hadoop's configuration.",
        ignored="Files are written without Hadoop: `iceberg.catalog.*` has the settings of the file system.",
    )

    @classmethod
    def define(cls, definition: ConfigDef) -> None:
        """Its own keys, and families of them."""
        super().define(definition)
        unused = "The control topic of the original has no counterpart."
        hadoop = "Files are written without Hadoop: iceberg.catalog.* has the settings of the file system."
        definition.define_family(
            KeyFamily(CATALOG, "The catalog, and where its tables and files are: Iceberg's catalog properties."),
            KeyFamily(CREATE_PROPERTIES, "Properties of tables that the sink creates."),
            *(KeyFamily(prefix, "Properties for writing, stronger than the table's.") for prefix in WRITE_PROPERTIES),
            KeyFamily(TABLE, f"Keys of one table: `{TABLE}<table>.` and one of {', '.join(OF_TABLE)}."),
            KeyFamily(HADOOP, "Hadoop's configuration.", hadoop),
            KeyFamily("iceberg.kafka.", "Clients of the control topic.", unused),
        )

    @classmethod
    def checks(cls) -> Checks:
        """Checks of several keys."""
        return (
            ((cls.tables, cls.is_dynamic, cls.route_field), _check_tables),
            ((cls.follows_changes, cls.upserts), _check_appends),
        )


def _check_tables(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    keys, tables = IcebergKeys, parsed[str(IcebergKeys.tables)]
    is_dynamic, field = parsed[str(keys.is_dynamic)], parsed[str(keys.route_field)]
    if is_dynamic and tables:
        yield Problem(str(keys.tables), "Tables are listed, although a field of each record names its table.",
                      f"Remove this key, or set {keys.is_dynamic}=false.")  # fmt: skip
    elif is_dynamic and not field:
        yield Problem(str(keys.route_field), f"{keys.is_dynamic}=true needs the field that names the table.",
                      "Set it to a field of the value.")  # fmt: skip
    elif not is_dynamic and not tables:
        yield Problem(str(keys.tables), "There is no table to write to.",
                      f"List the tables here, or set {keys.is_dynamic}=true and {keys.route_field}.")  # fmt: skip


def _check_appends(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    for key in (IcebergKeys.follows_changes, IcebergKeys.upserts):
        if parsed[str(key)]:
            yield Problem(
                str(key),
                f"{key} is set, but this sink only appends rows: the table would have every version of them.",
                "Remove this key if that is what you want. The JDBC and the search sink can upsert.",
            )


TOPICS = (sink_keys.TOPICS, sink_keys.TOPICS_REGEX)

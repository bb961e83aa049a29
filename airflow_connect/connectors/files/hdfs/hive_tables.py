"""`hive.integration`: after publishing, the files of a run become rows of Hive tables.

This runs between publishing and committing. If the metastore is unavailable, the run fails: the files stay, no offset
moves, and the next run repeats the step (hive/__init__.py explains why that is safe).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from airflow_connect.api.config.plugins import PluginKind, built_in
from airflow_connect.connectors.files.shared.settings.complete_keys import DIRECTORY
from airflow_connect.connectors.files.shared.value_schemas import schema_of_text
from airflow_connect.errors import ConfigError, ConnectError, DataError
from airflow_connect.hive.columns import ColumnRules, FileKind, columns_of
from airflow_connect.hive.evolution import evolved
from airflow_connect.hive.settings import MetastoreSettings
from airflow_connect.hive.tables import FilePartition, Partition, Table, file_partition, partition_column, table_name

if TYPE_CHECKING:
    from airflow_connect.api.schema import Schema
    from airflow_connect.api.staging import StagedFile
    from airflow_connect.connectors.files.hdfs.config import HdfsSinkConfig
    from airflow_connect.documents.run import PublishedRun
    from airflow_connect.hive.catalog import Catalog
    from airflow_connect.layout.partitioners import Partitioner
    from airflow_connect.stores.store import FilePublisher

_KINDS = {
    "AvroFormat": FileKind.AVRO,
    "JsonFormat": FileKind.JSON,
    "OrcFormat": FileKind.ORC,
    "ParquetFormat": FileKind.PARQUET,
    "StringFormat": FileKind.TEXT,
}


@dataclass(slots=True)
class _TableFiles:
    """The files that a run published below one directory of a topic."""

    path: FilePartition
    partitions: dict[Partition, None] = field(default_factory=dict)
    schemas: list[Schema | None] = field(default_factory=list)


class HiveTables:
    """The step. Its constructor checks the configuration; only a call contacts the metastore.

    Raises:
        ConfigError: no metastore is configured, or this configuration's files or directories cannot form a table.
    """

    def __init__(self, config: HdfsSinkConfig, store_url: str, partitioner: Partitioner) -> None:
        """`store_url`: the address that file keys are relative to."""
        self._config = config
        self._settings = MetastoreSettings.from_keys(config.hive_metastore_uris, config.hive_conf_dir)
        self._rules = _rules_of(config)
        self._store_url = store_url.rstrip("/")
        self._late_directory = config.late_directory if config.late_records == DIRECTORY else ""
        if config.is_time_based:
            _check_pairs(config.path_format, partitioner.directory_of_timestamp(0))  # type: ignore[attr-defined]

    def __call__(self, run: PublishedRun, publisher: FilePublisher) -> None:
        """Create tables, columns and partitions for the files of `run`; idempotent.

        Raises:
            UnavailableError: no metastore answered.
            AccessError, PublishConflictError, SchemaError: a table cannot be adapted; the message names it.
        """
        from airflow_connect.hive.catalog import Catalog
        from airflow_connect.hive.client import MetastoreClient

        found = self._by_table(run.files)
        if not found:
            return
        with MetastoreClient(self._settings) as client:
            catalog = Catalog(client)
            catalog.ensure_database(self._config.hive_database)
            for files in found:
                self._sync(catalog, files)

    def _by_table(self, files: Iterable[StagedFile]) -> list[_TableFiles]:
        tables: dict[str, _TableFiles] = {}
        for file in files:
            if file.role != "value":
                continue
            path = file_partition(file.key)
            if self._late_directory and path.topic == self._late_directory:
                continue  # A side directory does not belong in the table.
            table = tables.setdefault(path.directory, _TableFiles(path))
            if path.names != table.path.names:
                raise DataError(
                    f"Files of the topic {path.topic} are in directories of different kinds,"
                    f" {table.path.partition} and {path.partition}, which cannot be partitions of one Hive table.",
                    code="hive.partition",
                    suggestion="Use a partitioner whose directories have the same names, or hive.integration=false.",
                )
            table.partitions[Partition(path.values, f"{self._store_url}/{path.partition}")] = None
            if file.value_schema:
                table.schemas.append(schema_of_text(file.value_schema))
        return list(tables.values())

    def _sync(self, catalog: Catalog, files: _TableFiles) -> None:
        path = files.path
        table = Table(
            database=self._config.hive_database.lower(),
            name=table_name(self._config.hive_table_name, path.topic),
            location=f"{self._store_url}/{path.directory}",
            kind=self._rules.kind,
            columns=(),
            partition_columns=path.names,
        )
        try:
            catalog.sync(self._with_columns(catalog, table, files.schemas), list(files.partitions))
        except ConnectError as error:
            error.message = f"{error.message} (topic {path.topic}, table {table.full_name})"
            raise

    def _with_columns(self, catalog: Catalog, table: Table, schemas: Iterable[Schema | None]) -> Table:
        """Columns of all schemas of the run, older versions first, whatever the order of the partitions."""
        ordered = sorted(dict.fromkeys(schemas), key=lambda schema: (schema.version or 0) if schema else -1)
        for schema in ordered or [None]:
            columns = columns_of(schema, self._rules, table.partition_columns)
            table = replace(table, columns=evolved(table.columns, columns, table.full_name))
        if self._rules.kind is FileKind.AVRO:
            table = replace(table, properties=self._avro_properties(catalog, table, ordered))
        return table

    def _avro_properties(self, catalog: Catalog, table: Table, schemas: Iterable[Schema | None]) -> Mapping[str, str]:
        from airflow_connect.hive.avro_literal import AVRO_LITERAL, avro_literal

        literal = catalog.properties(table).get(AVRO_LITERAL, "")
        for schema in schemas:
            assert schema is not None  # AvroFormat writes nothing without one.
            literal = avro_literal(
                schema,
                literal,
                without=table.partition_columns,
                allow_optional_map_keys=self._rules.allow_optional_map_keys,
            )
        return {AVRO_LITERAL: literal}


def _rules_of(config: HdfsSinkConfig) -> ColumnRules:
    path = config.value_format.path
    kind = _KINDS.get(path.partition(":")[2]) if path in built_in(PluginKind.FORMAT).values() else None
    if kind is None:
        raise ConfigError(
            f"hive.integration=true does not support Hive tables for files of format.class={config.value_format.name}.",
            code="hive.format",
            suggestion="Use AvroFormat, JsonFormat, OrcFormat, ParquetFormat or StringFormat, or set"
            " hive.integration=false.",
            config_path="format.class",
        )
    return ColumnRules(kind, numeric_decimals=False, allow_optional_map_keys=config.allow_optional_map_keys)


def _check_pairs(path_format: str, example: str) -> None:
    """Every part of a time-based directory must be a name=value pair.

    Confluent's TimeBasedSchemaGenerator requires exactly `'year'=YYYY/'month'=MM/...`; here any names are allowed.
    """
    parts = [part.partition("=") for part in example.split("/")]
    columns = [partition_column(name) for name, _, _ in parts]
    if all(sign for _, sign, _ in parts) and all(columns) and len(set(columns)) == len(columns):
        return
    raise ConfigError(
        f"path.format={path_format!r} produces directories like {example}, but Hive needs a different name in each"
        f" part.",
        code="hive.path_format",
        suggestion="Write it like 'year'=YYYY/'month'=MM/'day'=dd, or set hive.integration=false.",
        config_path="path.format",
    )

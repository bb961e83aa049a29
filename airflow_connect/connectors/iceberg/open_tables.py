"""Tables of a task: opened, created and evolved as the values need it, and the files that are being written to each."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from airflow_connect.connectors.iceberg.catalogs import (
    check_properties,
    close_catalog,
    created_with,
    translate,
    translated,
)
from airflow_connect.connectors.iceberg.columns import Projection, check_required
from airflow_connect.connectors.iceberg.data_files import DataFile, FileOptions, Place
from airflow_connect.connectors.iceberg.field_names import FieldNames
from airflow_connect.connectors.iceberg.keys import TABLE
from airflow_connect.connectors.iceberg.library import ListType, MapType, NestedField, StructType
from airflow_connect.connectors.iceberg.partitions import Partitioner, parse_partitioning, partition_spec
from airflow_connect.connectors.iceberg.schemas import Added, Change, changes
from airflow_connect.connectors.iceberg.types import (
    ValueMapping,
    file_schema,
    iceberg_fields,
    names_that_collide,
)
from airflow_connect.errors import ConnectError, DataError, IcebergError, SchemaError
from airflow_connect.retrying import Backoff, Jitter, Retry

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

    from airflow_connect.api.schema import Schema
    from airflow_connect.api.staging import StagedFile
    from airflow_connect.connectors.iceberg.tables import IcebergConfig

log = logging.getLogger(__name__)

FORMAT_VERSION = 2
_BACKOFF = Backoff(0.1, longest_s=2.0, jitter=Jitter.HALF)
_SCHEMAS_KEPT = 1000


def load_table(catalog: Catalog, name: str) -> Table:
    """A table that this sink can write to.

    Raises:
        IcebergError: it does not exist, or has a format version that is not supported.
        ConnectError: the catalog does not answer, or refuses.
    """
    with translated(f"loading table {name}"):
        table = catalog.load_table(name)
    check_properties(catalog, name, table.properties)
    if table.metadata.format_version != FORMAT_VERSION:
        raise IcebergError(
            f"Table {name} has format version {table.metadata.format_version}. This sink writes tables of version"
            f" {FORMAT_VERSION}.",
            code="iceberg.format_version",
            suggestion="Version 1 lets a late request of a dead run add its rows again. Upgrade such a table: set its"
            " property format-version to 2. Version 3 is not supported yet.",
        )
    return table


class OpenTable:
    """A table as a task writes to it: with one schema, until it evolves."""

    def __init__(self, table: Table, config: IcebergConfig, run_id: str) -> None:
        """Read what the table says about files.

        Raises:
            ConnectError: it has a type, a partitioning or a property that cannot be written.
        """
        self.table = table
        self.name = ".".join(table.name())
        self._config, self._run_id = config, run_id
        self._options = FileOptions.of(table, config.write_properties)
        self._columns = file_schema(table.schema())
        self._names = FieldNames.of(table, ignores_case=config.ignores_case)
        self._partitioner = Partitioner(table.spec(), table.schema())
        self._projections: dict[Any, Projection] = {}
        self._fitting: set[Schema] = set()
        self._refused: dict[Schema, SchemaError] = {}
        self.files: dict[Place, DataFile] = {}

    def fits(self, schema: Schema) -> bool:
        """Whether values of a schema need no change of the table that is allowed.

        Raises:
            DataError: they need a change that is not possible.
        """
        if not self._config.evolves or schema in self._fitting:
            return True
        if schema in self._refused:  # Before files end for nothing.
            raise self._refused[schema].with_traceback(None)
        if self._changes(schema):
            return False
        if len(self._fitting) >= _SCHEMAS_KEPT:
            self._fitting.clear()
        self._fitting.add(schema)
        return True

    def _changes(self, schema: Schema) -> Sequence[Change]:
        fields = iceberg_fields(schema, all_optional=False)
        return changes(self.table.schema(), fields, self._names)

    def finish(self) -> list[StagedFile]:
        """Finish every file.

        Raises:
            ConnectError: the file system refuses, or does not answer.
        """
        finished = []
        for place in list(self.files):
            finished.append(self.files[place].finish())
            del self.files[place]
        return finished

    def projected(self, batch: pa.RecordBatch, *, is_inferred: bool = False) -> tuple[pa.RecordBatch, Sequence[str]]:
        """The columns of the table for a batch of values, and the paths of fields that the table does not have.

        Args:
            batch: of values.
            is_inferred: whether their schema was made from them.

        Raises:
            DataError: no value of this type fits.
            pa.ArrowInvalid: one of these values does not fit.
        """
        known = (batch.schema, is_inferred)
        projection = self._projections.get(known)
        if projection is None:
            if len(self._projections) >= _SCHEMAS_KEPT:
                self._projections.clear()
            projection = Projection(batch.schema, self._columns, self._names, is_inferred=is_inferred)
            self._projections[known] = projection
        made = projection(batch)
        check_required(made)
        return made, projection.dropped

    def write(
        self, batch: pa.RecordBatch, offsets: Any, place: Callable[[tuple[str | None, ...]], Place]
    ) -> Iterator[StagedFile]:
        """Add rows to the files of their partitions; returns files that were finished because they are full.

        Args:
            batch: columns of the table.
            offsets: int64[n], ascending: of the records of the rows.
            place: the partition's values -> where its rows go.
        """
        for values, rows in self._partitioner.divide(batch):
            where = place(values)
            file = self.files.get(where)
            if file is None:
                file = DataFile(self.table, self._columns, self._options, where, self._run_id)
                self.files[where] = file
            part = batch if rows is None else batch.take(rows)
            own = offsets if rows is None else offsets[rows]
            file.append(part, int(own[0]), int(own[-1]))
            if file.is_full:
                del self.files[where]
                yield file.finish()

    def evolve(self, schema: Schema) -> None:
        """Change the table so that values of a schema fit. Its files must be finished.

        Raises:
            SchemaError: the change is not possible.
            ConnectError: the catalog refuses, or does not answer.
        """
        refused: dict[Schema, SchemaError] = {}
        try:
            self._change(schema)
        except SchemaError as error:
            refused = {**dict(list(self._refused.items())[-_SCHEMAS_KEPT:]), schema: error}
            raise
        finally:
            # Also after an error: the table may have been loaded again.
            self.__init__(self.table, self._config, self._run_id)  # type: ignore[misc]
            self._refused = refused

    def _change(self, schema: Schema) -> None:
        retry = Retry(_BACKOFF, within_s=self._config.commit_timeout_ms / 1000)
        doing = f"changing the schema of {self.name}"
        # After a failure only what is left is tried again: another task may have made the same change.
        while wanted := self._changes(schema):
            refuse_twins(
                self.name, [*paths_of(self.table.schema().fields), *(".".join(one.path) for one in _added(wanted))]
            )
            try:
                with self.table.update_schema(case_sensitive=True) as update:
                    for change in wanted:
                        change.apply(update)
                return
            except ValueError as error:
                # pyiceberg checks a change before it sends it.
                raise _impossible(self.name, error) from error
            except Exception as error:
                if isinstance(error, ConnectError):
                    if not error.retriable or not retry.pause():
                        raise
                elif not retry.pause():
                    raise translate(error, doing) from error
                with translated(doing):
                    self.table.refresh()


def _added(changes: Sequence[Change]) -> Iterator[Added]:
    return (change for change in changes if isinstance(change, Added))


def paths_of(fields: Sequence[NestedField], path: str = "") -> Iterator[str]:
    """The paths of columns and of the members of structs, also of those in lists and maps."""
    for field in fields:
        yield f"{path}{field.name}"
        kinds = [(field.field_type, f"{path}{field.name}.")]
        while kinds:
            kind, where = kinds.pop()
            if isinstance(kind, StructType):
                yield from paths_of(kind.fields, where)
            elif isinstance(kind, ListType):
                kinds.append((kind.element_type, f"{where}element."))
            elif isinstance(kind, MapType):
                kinds += [(kind.key_type, f"{where}key."), (kind.value_type, f"{where}value.")]


def _impossible(table: str, error: ValueError) -> SchemaError:
    text = " ".join(str(error).split())[:300].rstrip(".")
    return SchemaError(
        f"Table {table} cannot have columns for the fields of the values: {text}.",
        code="iceberg.schema",
        suggestion="Rename or drop the field with a transformation (ReplaceField).",
    )


def refuse_twins(table: str, names: Sequence[str]) -> None:
    """Refuse columns whose names differ only in case.

    Raises:
        SchemaError: names both.
    """
    twins = names_that_collide(names)
    if twins is not None:
        raise SchemaError(
            f"Table {table} would have the columns {twins[0]} and {twins[1]}, which Spark and Hive cannot tell apart.",
            code="iceberg.column_names",
            suggestion="Rename one field with a transformation (ReplaceField), or set"
            " iceberg.tables.schema-case-insensitive=true if they are the same.",
        )


class OpenTables:
    """Every table of a task."""

    def __init__(self, catalog: Catalog, config: IcebergConfig, run_id: str) -> None:
        """Loads nothing yet."""
        self._catalog, self._config, self._run_id = catalog, config, run_id
        self._open: dict[str, OpenTable] = {}
        self._missing: set[str] = set()
        self.created: list[str] = []

    def __iter__(self) -> Iterator[OpenTable]:
        """The tables that were opened."""
        return iter(self._open.values())

    def of(self, name: str, schema: Schema, *, is_inferred: bool = False) -> OpenTable:
        """A table, created for values of `schema` if there is none and the configuration says so.

        Raises:
            DataError: a record names a table that does not exist.
            ConnectError: there is none, or it cannot be written to; or the catalog does not answer.
        """
        found = self._open.get(name)
        if found is None:
            table = self._loaded(name) or self._created(name, schema, is_inferred=is_inferred)
            found = self._open[name] = OpenTable(table, self._config, self._run_id)
        return found

    def close(self) -> None:
        """Release the catalog's connections."""
        close_catalog(self._catalog)

    def _loaded(self, name: str) -> Table | None:
        if name in self._missing:
            raise _no_table(name)
        try:
            return load_table(self._catalog, name)
        except IcebergError as error:
            if error.code != "iceberg.no_table":
                raise
            if self._config.creates:
                return None
            if not self._config.is_dynamic:
                raise
            self._missing.add(name)
            raise _no_table(name) from error

    def _created(self, name: str, schema: Schema, *, is_inferred: bool) -> Table:
        made = new_schema(name, schema, self._config, is_inferred=is_inferred)
        properties = {**created_with(self._catalog), **self._config.create_properties}
        check_properties(self._catalog, name, properties)
        if properties.setdefault("format-version", str(FORMAT_VERSION)) != str(FORMAT_VERSION):
            raise IcebergError(
                f"Tables of format version {properties['format-version']} are not written.",
                code="iceberg.format_version",
                suggestion=f"Set iceberg.tables.auto-create-props.format-version={FORMAT_VERSION}.",
                config_path="iceberg.tables.auto-create-props.format-version",
            )
        settings = self._config.settings_of(name)
        spec = partition_spec(parse_partitioning(settings.partition_by, f"{TABLE}{name}.partition-by"), made)
        retry = Retry(_BACKOFF, within_s=self._config.commit_timeout_ms / 1000)
        while True:
            try:
                self._catalog.create_namespace_if_not_exists(name.rpartition(".")[0])
                created = self._catalog.create_table(name, made, partition_spec=spec, properties=properties)
                break
            except Exception as error:
                # Another task may have been faster, also with the namespace.
                if (found := self._loaded(name)) is not None:
                    return found
                if isinstance(error, SchemaError):
                    raise
                problem = translate(error, f"creating table {name}")
                if not problem.retriable or not retry.pause():
                    raise problem from error
        self.created.append(name)
        return created


def _no_table(name: str) -> DataError:
    return DataError(
        f"The record names table {name}, which the catalog does not have.",
        code="iceberg.no_table",
        suggestion="Create it, or set iceberg.tables.auto-create-enabled=true.",
    )


def new_schema(name: str, schema: Schema, config: IcebergConfig, *, is_inferred: bool = False) -> Any:
    """The schema of a table that is created for values of `schema`.

    Raises:
        SchemaError: Iceberg cannot express it, or a column that identifies rows is missing.
    """
    from pyiceberg.schema import Schema as IcebergSchema

    ValueMapping(format_name="An Iceberg table").arrow_schema(schema)  # Refuses what is no STRUCT.
    fields = iceberg_fields(schema, all_optional=config.forces_optional or is_inferred)
    if not fields:
        raise SchemaError(
            f"Table {name} cannot be created for a value in which every field is null or empty.",
            code="data.empty_struct",
            suggestion="Create the table, or drop such records with a transformation (Filter).",
        )
    if config.ignores_case:
        changes(IcebergSchema(), fields, FieldNames(ignores_case=True))  # Refuses two fields that are the same column.
    refuse_twins(name, list(paths_of(fields)))
    wanted = config.settings_of(name).id_columns
    # Identifier fields are required (Iceberg specification, "Identifier Field IDs").
    made = [
        NestedField(f.field_id, f.name, f.field_type, required=f.required or f.name in wanted, doc=f.doc)
        for f in fields
    ]
    try:
        plain = IcebergSchema(*made)
        names = plain.column_names
    except ValueError as error:
        raise _impossible(name, error) from error
    if missing := sorted(set(wanted) - set(names)):
        raise _unidentified(name, missing, "the values do not have this field")
    try:
        return IcebergSchema(*made, identifier_field_ids=[plain.find_field(column).field_id for column in wanted])
    except ValueError as error:
        why = "identifiers are required fields, no floats or doubles, and not in lists or maps"
        raise _unidentified(name, wanted, why) from error


def _unidentified(table: str, columns: Sequence[str], why: str) -> SchemaError:
    return SchemaError(
        f"Table {table} is to be identified by {', '.join(columns)}, but {why}.",
        code="iceberg.id_columns",
        suggestion="Correct iceberg.tables.default-id-columns or the key of the table.",
        config_path="iceberg.tables.default-id-columns",
    )


def delete_quietly(tables: OpenTables, staged: StagedFile) -> None:
    """Delete a staged file of an attempt that has failed; what cannot be deleted is found by a sweep."""
    for table in tables:
        if table.name == staged.token["table"]:
            try:
                table.table.io.delete(staged.token["path"])
            except Exception as error:  # noqa: BLE001 (the task has already failed for another reason)
                log.warning("%s was not deleted; the next run deletes it: %s", staged.token["path"], error)

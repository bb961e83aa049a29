"""Tables as they are in the database, and what is created and altered for records.

Source: io.confluent.connect.jdbc.sink.DbStructure, with its messages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from typing import TYPE_CHECKING, Any

from airflow_connect.api.schema import DECIMAL, TIMESTAMP, Type
from airflow_connect.connectors.jdbc.sink import keys
from airflow_connect.connectors.jdbc.sink.charsets import Charset, Charsets, charsets_in_mysql
from airflow_connect.connectors.jdbc.sink.coarse import (
    changes,
    collations,
    declared_types,
    equal_or_padded,
    exact_collation,
    instants,
    moved_dates,
    replaced_rows,
)
from airflow_connect.connectors.jdbc.sink.conditions import Comparison, comparisons
from airflow_connect.connectors.jdbc.sink.copied import is_copied_alike
from airflow_connect.connectors.jdbc.sink.fields import UNKNOWN, SinkField
from airflow_connect.connectors.jdbc.sink.identity import identity_of
from airflow_connect.connectors.jdbc.sink.keys import JdbcSinkKeys as Keys
from airflow_connect.connectors.jdbc.sink.looking import (
    INSTANT,
    NUMERIC,
    REAL,
    UNKNOWN_ENGINE,
    check_engine,
    found_by_sqlalchemy,
    found_in_mysql,
    found_in_sqlite,
    pg_properties,
    tables_behind,
    unique_in_mysql,
    unknown_key,
)
from airflow_connect.connectors.jdbc.sink.missing import MissingColumns, added, added_before
from airflow_connect.connectors.jdbc.sink.statements.standard_sql import Names, Statements
from airflow_connect.connectors.jdbc.sink.values import exact_number
from airflow_connect.databases.failures import Failure, kind_of
from airflow_connect.errors import DatabaseError, SchemaError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from airflow_connect.api.schema import Schema
    from airflow_connect.connectors.jdbc.sink.config import JdbcSinkConfig
    from airflow_connect.connectors.jdbc.sink.values import Binding
    from airflow_connect.databases.connecting import Database
    from airflow_connect.databases.identifiers import Quoting, TableId

_PG_NAME_BYTES = 63


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The columns of a table in the database.

    Attributes:
        names: exact names.
        folded: lower-case name -> exact name, where only one column has it.
        instants: names of those that hold points in time: PostgreSQL's `timestamptz`, MySQL's TIMESTAMP.
        numbers: names of those that turn texts into numbers, which SQLite's do -> whether these are always REAL.
        quoting: how statements name them.
        may_copy: whether COPY does what INSERT does.
        unique: columns of each unique index of MySQL, and whether they are whole; None if that is not known. Of a view:
            those of the table behind it.
        is_view: of MySQL.
        declared: see `declared_types`.
        collations: see `coarse.collations`.
        charsets: of MySQL, the name of the character set of each column of texts.
        identity: see `identity_of`.
    """

    names: frozenset[str]
    folded: dict[str, str]
    instants: frozenset[str]
    numbers: Mapping[str, bool]
    quoting: Quoting
    may_copy: bool = True
    unique: Mapping[frozenset[str], bool] | None = None
    is_view: bool = False
    declared: Mapping[str, str] = dataclass_field(default_factory=dict)
    collations: Mapping[str, str] = dataclass_field(default_factory=dict)
    charsets: Mapping[str, str] = dataclass_field(default_factory=dict)
    identity: str = ""

    @classmethod
    def of(cls, types: Mapping[str, str], quoting: Quoting) -> TableColumns:
        """From the exact names and types: a word of this module, or "" for any other. `quoting`: of statements."""
        lower = [name.lower() for name in types]
        folded = {n.lower(): n for n in types if lower.count(n.lower()) == 1}
        instants = frozenset(name for name, kind in types.items() if kind == INSTANT)
        numbers = {name: kind == REAL for name, kind in types.items() if kind in (REAL, NUMERIC)}
        return cls(frozenset(types), folded, instants, numbers, quoting)

    def find(self, name: str) -> str | None:
        """The column for a field: by its exact name, else by the only one that differs in case.

        Raises:
            ConfigError: names are not quoted, and the column cannot be reached without quotes.
        """
        wanted = self.quoting.folded(name)
        found = wanted if wanted in self.names else self.folded.get(name.lower())
        if found is not None:
            self.quoting.check_is_found("column", found, (found,))
        return found


@dataclass(frozen=True, slots=True)
class FieldColumns:
    """The columns of the fields of a record.

    Attributes:
        names: field -> column; fields without a column are left out.
        instants: those columns that hold points in time, not the time of a local clock.
        numbers: those columns of SQLite that turn texts into numbers -> whether these are always REAL.
        may_copy: whether COPY does what INSERT does.
        needs_guard: whether an upsert of MySQL could change a row with another key.
        comparisons: those columns of the key that are not compared as an insert stores the value.
        charsets: those columns of MySQL that hold texts, where the field is bytes.
        declared: see `declared_types`.
    """

    names: Mapping[str, str]
    instants: frozenset[str]
    numbers: Mapping[str, bool] = dataclass_field(default_factory=dict)
    may_copy: bool = True
    needs_guard: bool = False
    comparisons: Mapping[str, Comparison] = dataclass_field(default_factory=dict)
    charsets: Mapping[str, Charset] = dataclass_field(default_factory=dict)
    declared: Mapping[str, str] = dataclass_field(default_factory=dict)


class Tables:
    """Looks at tables once, creates and alters them. DDL commits on its own: never call it inside a transaction."""

    def __init__(self, config: JdbcSinkConfig, database: Database, statements: Statements, binding: Binding) -> None:
        """Nothing is looked up yet."""
        self._config = config
        self._database = database
        self._statements = statements
        self._binding = binding
        self._known: dict[TableId, TableColumns] = {}
        self._coarse: dict[tuple[TableId, str], list[str]] = {}
        self._told: set[tuple[TableId, str]] = set()
        self._written: set[str] = set()
        self._is_whitelist_told = False
        self._ddl_error: Exception | None = None
        self.created: list[TableId] = []  # tables that were missing
        self.altered: list[str] = []  # sentences about columns that were missing
        self.committed: Mapping[str, Collection[str]] = {}  # columns of each table when a run committed last
        self.identified: Mapping[str, str] = {}  # identity of each table, at the same time
        self.replaced: dict[TableId, str] = {}  # tables with another one
        self._missing = MissingColumns(config, statements, database.quoting)
        self._unknown_keys: set[TableId] = set()  # views whose tables may have no unique index over the key
        self._own: set[tuple[TableId, str]] = set()  # columns that were added, or named
        self._charsets = Charsets()

    def forget(self) -> None:
        """Look again at the next use: a table was changed by someone else."""
        self._known.clear()

    def may_be_created(self, connection: Connection, table: TableId) -> bool:
        """Whether a table is missing, and a record with a value would create it."""
        if not self._config.creates or table in self._known:
            return False
        found = self._look(connection, table)
        if found is not None:
            self._known[table] = found
            self._compare_identity(table, found)
        return found is None

    def columns_for(self, connection: Connection, table: TableId, fields: Sequence[SinkField]) -> FieldColumns:
        """The column of each field; what is missing is created, if the configuration says so.

        Fields that are null and have no schema are left out if there is no column for them.

        Raises:
            SchemaError: the table or a column is missing and may not be created.
            DatabaseError: the table cannot be written to.
        """
        known = self._known.get(table) or self._look(connection, table)
        typed = [field for field in fields if field.schema is not UNKNOWN]
        if known is None:
            known = self._create(connection, table, typed)
        elif table not in self._known:
            self._compare_identity(table, known)
        while missing := [field for field in typed if known.find(field.name) is None]:
            known = self._evolve(connection, table, missing, typed)
        self._known[table] = known
        self._name_late(table, known)
        found = {field.name: known.find(field.name) for field in fields}
        there = {name: column for name, column in found.items() if column is not None}
        if not there:
            raise SchemaError(
                f"All fields of the record are null, and the table {table} has no column for any of them.",
                code="jdbc.no_fields",
                suggestion="Correct the names of the columns, or use a converter with schemas.",
            )
        _refuse_shared(table, there)
        self._look_for_coarse(table, known, typed)
        self._written.update(field.name for field in fields)
        key = frozenset(there[field.name] for field in fields if field.is_key and field.name in there)
        guard = self._config.insert_mode == keys.UPSERT and self._needs_guard(table, known, key)
        compared = comparisons(str(table), typed, there, known.declared, self._database.dialect.name)
        instants = known.instants.intersection(there.values())
        may_copy = known.may_copy and self._are_copied_alike(known, typed, there)
        with self._database.failures("look up a character set"):
            charsets = self._charsets.of_bytes(connection, typed, there, known.charsets)
        return FieldColumns(there, instants, known.numbers, may_copy, guard, compared, charsets, known.declared)

    def _are_copied_alike(self, known: TableColumns, fields: Sequence[SinkField], columns: Mapping[str, str]) -> bool:
        return self._database.dialect.name != "postgresql" or all(
            is_copied_alike(known.declared.get(columns.get(field.name, ""), ""), self._schema_of(field))
            for field in fields
        )

    def _schema_of(self, field: SinkField) -> Schema:
        """The schema of a field, also where timestamp.fields.list makes a timestamp of it."""
        is_plain = field.schema.name is None and field.schema.type is not Type.ARRAY
        is_moment = is_plain and self._binding.is_moment(field)
        return replace(field.schema, type=Type.INT64, name=TIMESTAMP) if is_moment else field.schema

    def columns(self) -> dict[str, list[str]]:
        """The columns of each table that was written, for the next run; {} without `auto.evolve`."""
        return {str(table): sorted(found.names) for table, found in self._known.items()} if self._config.evolves else {}

    def identities(self) -> dict[str, str]:
        """The identity of each table that was written, where the database tells."""
        return {str(table): found.identity for table, found in self._known.items() if found.identity}

    def _compare_identity(self, table: TableId, known: TableColumns) -> None:
        name = str(table)
        if self.identified.get(name, known.identity) != known.identity:
            self.replaced[table] = known.identity
        self.identified = {**self.identified, name: known.identity}

    def _name_late(self, table: TableId, known: TableColumns) -> None:
        """Columns of a run that has died after it had added them: no report says so."""
        if (before := self.committed.get(str(table))) is None or not self._config.evolves:
            return
        if late := {name for name in known.names.difference(before) if (table, name) not in self._own}:
            self._own.update((table, name) for name in late)
            self.altered.append(added_before(table, late))

    def take_notes(self) -> Iterator[str]:
        """Sentences about columns that change values of their fields, and about fields that are misspelt; once."""
        missing = sorted(self._config.mapping.whitelist - self._written)
        if missing and self._written and not self._is_whitelist_told:
            self._is_whitelist_told = True
            yield (
                f"No record of this task has {', '.join(missing)}, which {Keys.whitelist} names: no column was"
                " written for it. Is the name right?"
            )
        for where, found in self._coarse.items():
            if where not in self._told:
                self._told.add(where)
                table, column = where
                what = f"The column {column} of {table}" if column else f"The table {table}"
                yield from (f"{what} {sentence}" for sentence in found)

    def _look_for_coarse(self, table: TableId, known: TableColumns, fields: Sequence[SinkField]) -> None:
        for field in fields:
            column = known.find(field.name) or ""
            schema = self._schema_of(field)
            dialect = self._database.dialect.name
            found = changes(known.declared.get(column, ""), schema, dialect)
            found = [*found, *moved_dates(schema, self._binding.date_zone, dialect)]
            if field.is_key and schema.type is Type.STRING and self._finds_rows:
                found = [*found, *equal_or_padded(known.collations.get(column, ""), known.declared.get(column, ""))]
            if found:
                self._coarse[table, column] = list(dict.fromkeys([*self._coarse.get((table, column), ()), *found]))

    @property
    def _finds_rows(self) -> bool:
        """Whether rows are found by their keys: an insert of a key that is there is refused."""
        return self._config.insert_mode != keys.INSERT or self._config.deletes

    def _needs_guard(self, table: TableId, known: TableColumns, key: frozenset[str]) -> bool:
        """Whether a statement of MySQL, which takes any unique index for the key, could change a row of another key.

        Raises:
            DatabaseError: no unique index finds the row of a key, so that each upsert would insert one more.
        """
        if self._database.dialect.name != "mysql" or known.unique is None:
            return self._database.dialect.name == "mysql"
        is_found = any(columns <= key for columns in known.unique)
        if known.is_view:
            if not is_found and table not in self._unknown_keys:
                self._unknown_keys.add(table)
                self._coarse.setdefault((table, ""), []).append(unknown_key(key))
            return True
        if not is_found:
            raise DatabaseError(
                f"The table {table} has no unique index over {', '.join(sorted(key))}, so an upsert would insert a row"
                " again instead of changing it.",
                code="jdbc.unique_key",
                suggestion=f"Add a primary key or a unique index over these columns, or correct {Keys.pk_fields}.",
                config_path=Keys.pk_fields.name,
            )
        return any(columns != key or not is_whole for columns, is_whole in known.unique.items())

    # --- looking --------------------------------------------------------------------------------------------------

    def _look(self, connection: Connection, table: TableId) -> TableColumns | None:
        with self._database.failures(f"look up the table {table}"):
            found = {"mysql": found_in_mysql, "sqlite": found_in_sqlite}.get(
                self._database.dialect.name, found_by_sqlalchemy
            )
            types, kind, engine = found(connection, self._database.quoting.folded_table(table))
            connection.rollback()
        if not types:
            return None
        allowed = self._config.table_types | ({"TABLE"} if "PARTITIONED TABLE" in self._config.table_types else set())
        if kind not in allowed:
            raise DatabaseError(
                f"{table} is a {kind.lower()}, but {Keys.table_types} is {','.join(sorted(self._config.table_types))}.",
                code="jdbc.table_type",
                suggestion=f"Add {kind} to {Keys.table_types}, or write to another table.",
                config_path=Keys.table_types.name,
            )
        if self._config.offsets_table:
            check_engine(table, engine)
        with self._database.failures(f"look up the table {table}"):
            place = (connection, self._database.dialect.name, self._database.quoting, table)
            declared, equal = declared_types(*place) or types, collations(*place)
            charsets = charsets_in_mysql(connection, table) if self._database.dialect.name == "mysql" else {}
            connection.rollback()
        columns = TableColumns.of(types, self._database.quoting)
        columns = replace(columns, declared=declared, collations=equal, charsets=charsets)
        if self._database.dialect.name == "postgresql":
            columns = replace(columns, instants=columns.instants | instants(declared))
        if kind == "VIEW":
            return replace(self._look_behind(connection, table, columns), may_copy=False)
        with self._database.failures(f"look up the table {table}"):
            quoting = self._database.quoting
            columns = replace(
                columns, identity=identity_of(connection, quoting.folded_table(table), quoting.table(table))
            )
            if self._database.dialect.name == "mysql":
                columns = replace(columns, unique=unique_in_mysql(connection, table))
            elif self._database.dialect.name == "postgresql":
                may_copy, lasting = pg_properties(connection, self._database.quoting.table(table))
                columns = replace(columns, may_copy=may_copy)
                if lasting and self._config.offsets_table:
                    self._coarse[table, ""] = lasting
            elif self._database.dialect.name == "sqlite" and (sentence := replaced_rows(connection, table)):
                self._coarse[table, ""] = [sentence]
            connection.rollback()
        return columns

    def _look_behind(self, connection: Connection, table: TableId, columns: TableColumns) -> TableColumns:
        """A view of MySQL: whether the tables behind it have transactions, and their unique indexes."""
        if self._database.dialect.name != "mysql":
            return columns
        with self._database.failures(f"look up the view {table}"):
            behind = tables_behind(connection, table)
            unique = unique_in_mysql(connection, behind[0][0]) if behind and len(behind) == 1 else {}
            connection.rollback()
        for found, engine in behind or () if self._config.offsets_table else ():
            check_engine(found, engine)
        if behind is None and self._config.offsets_table:
            self._coarse[table, ""] = [UNKNOWN_ENGINE]
        return replace(columns, unique=unique, is_view=True)

    # --- creating and altering ------------------------------------------------------------------------------------

    def _create(self, connection: Connection, table: TableId, fields: Sequence[SinkField]) -> TableColumns:
        if not self._config.creates:
            raise SchemaError(
                f"Table {table} is missing and auto-creation is disabled.",
                code="jdbc.missing_table",
                suggestion=f"Create it, or set {Keys.creates}=true, or correct {Keys.table_format}.",
                config_path=Keys.creates.name,
            )
        if not fields:
            raise SchemaError(
                f"Table {table} is missing, and cannot be created from a record whose fields are all null.",
                code="jdbc.missing_table",
                suggestion="Create it, or use a converter with schemas.",
            )
        self._check_lengths(table, [table.schema, table.table, *(field.name for field in fields)])
        self._refuse_doubled(table, fields)
        quote = self._database.quoting.name
        names = Names(
            self._database.quoting.table(table),
            tuple(quote(field.name) for field in fields if field.is_key),
            tuple(quote(field.name) for field in fields if not field.is_key),
        )
        self._statements.key_collation = exact_collation(connection)
        self._execute(connection, table, [self._statements.create(names, fields, self._defaults(fields))])
        self.created.append(table)
        return self._after_ddl(connection, table, fields)

    def _evolve(
        self, connection: Connection, table: TableId, missing: Sequence[SinkField], fields: Sequence[SinkField]
    ) -> TableColumns:
        self._statements.key_collation = exact_collation(connection)
        self._missing.check(table, missing, fields)
        self._check_lengths(table, [field.name for field in missing])
        self._refuse_doubled(table, missing)
        quoting, defaults = self._database.quoting, self._defaults(missing)
        columns = [quoting.name(field.name) for field in missing]
        self._execute(connection, table, self._statements.alter(quoting.table(table), columns, missing, defaults))
        known = self._after_ddl(connection, table, missing)
        there = {field.name: column for field in missing if (column := known.find(field.name)) is not None}
        self._own.update((table, column) for column in there.values())
        self.altered.append(added(table, ", ".join(there)))
        return known

    def _check_lengths(self, table: TableId, names: Sequence[str]) -> None:
        """PostgreSQL cuts longer names without an error, and two of them may then be the same."""
        long = [name for name in names if len(name.encode()) > _PG_NAME_BYTES]
        if long and self._database.dialect.name == "postgresql":
            raise SchemaError(
                f"The table {table} cannot be created or altered, because PostgreSQL cuts names after"
                f" {_PG_NAME_BYTES} bytes: {', '.join(long)[:500]}.",
                code="database.name",
                suggestion="Give the field another name with the transformation ReplaceField, or the topic with"
                f" RegexRouter or {Keys.table_format}.",
            )

    def _refuse_doubled(self, table: TableId, fields: Sequence[SinkField]) -> None:
        """Refuse new columns that differ in letter case only, which MySQL and SQLite do not tell apart."""
        if self._database.dialect.name in ("mysql", "sqlite"):
            _refuse_shared(table, {field.name: field.name.lower() for field in fields})

    def _defaults(self, fields: Sequence[SinkField]) -> list[Any]:
        found = []
        for field in fields:
            bind = self._binding.of(field)
            default = field.schema.default
            bound = default if default is None or bind is None else bind(default)
            if isinstance(bound, str) and field.schema.name == DECIMAL and exact_number(bound, is_real=False) is None:
                raise SchemaError(
                    f"The default of the field {field.name} has more digits than a number of SQLite keeps.",
                    code="jdbc.default",
                    suggestion="Create the column yourself with the type TEXT, or change the default in the schema.",
                )
            found.append(bound)
        return found

    def _execute(self, connection: Connection, table: TableId, statements: Sequence[str]) -> None:
        """DDL. Another task may do the same at the same time: the caller looks at what is there afterwards."""
        try:
            for statement in statements:
                connection.exec_driver_sql(statement)
            connection.commit()
        except Exception as error:
            if not connection.invalidated:
                connection.rollback()
            if kind_of(error) not in (Failure.OTHER, Failure.CONSTRAINT, Failure.CONFLICT):
                with self._database.failures(f"create or alter the table {table}"):
                    raise
            self._ddl_error = error
        else:
            self._ddl_error = None

    def _after_ddl(self, connection: Connection, table: TableId, fields: Sequence[SinkField]) -> TableColumns:
        """The table now; without some columns if the statement failed because another task has added the others."""
        known = self._look(connection, table)
        error, self._ddl_error = self._ddl_error, None
        found = 0 if known is None else sum(known.find(field.name) is not None for field in fields)
        if known is not None and (found == len(fields) or (error is not None and found)):
            self.identified = {**self.identified, str(table): known.identity}
            return known
        with self._database.failures(f"create or alter the table {table}"):
            if error is not None:
                raise error
        raise DatabaseError(
            f"The table {table} does not have the columns that were added to it.",
            code="jdbc.missing_column",
            suggestion="Another program changes the table at the same time; run again.",
        )


def _refuse_shared(table: TableId, columns: Mapping[str, str]) -> None:
    """Refuse a record of which two fields would be written to one column; `columns`: field -> column."""
    fields: dict[str, str] = {}
    for field, column in columns.items():
        other = fields.setdefault(column, field)
        if other != field:
            raise SchemaError(
                f"The fields {other} and {field} of the record belong to the same column {column} of {table}, because"
                " they differ in letter case only.",
                code="jdbc.record",
                suggestion="Rename or drop one of them with the transformation ReplaceField, or add a column with its"
                " exact name.",
            )

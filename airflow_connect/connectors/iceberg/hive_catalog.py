"""A Hive metastore as a catalog, with its compare-and-set instead of its locks.

pyiceberg 0.12 takes a lock of the metastore, does not keep it alive, and then writes without a condition: a writer that
was frozen until its lock had ended overwrites another's commit, and a dead one leaves its lock. Here each commit names
the metadata file that it replaces, and the metastore compares (HIVE-26882, in 2.3.10 and 4.0). Java's writers
do the same for tables with `engine.hive.lock-enabled=false` (Iceberg's documentation, "Hadoop configuration"); a writer
that takes locks does not compare, so tables without this property are refused.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import urlsplit

from airflow_connect.errors import IcebergError, SchemaError, UnavailableError, missing_package

try:
    from hive_metastore.ThriftHiveMetastore import Client
    from hive_metastore.ttypes import Database as HiveDatabase
    from hive_metastore.ttypes import (
        EnvironmentContext,
        FieldSchema,
        InvalidOperationException,
        LockResponse,
        LockState,
        MetaException,
        NoSuchObjectException,
        SerDeInfo,
        StorageDescriptor,
    )
    from hive_metastore.ttypes import Table as HiveTable
    from pyiceberg.catalog.hive import (
        HIVE_KERBEROS_AUTH,
        HIVE_KERBEROS_AUTH_DEFAULT,
        HIVE_KERBEROS_SERVICE_NAME,
        HIVE_KERBEROS_SERVICE_NAME_DEFAULT,
        HiveCatalog,
    )
    from pyiceberg.exceptions import CommitFailedException, NamespaceAlreadyExistsError
    from pyiceberg.schema import Schema, index_by_id
    from pyiceberg.table.update import AddSchemaUpdate
    from pyiceberg.utils.properties import property_as_bool
    from thrift.protocol import TBinaryProtocol
    from thrift.Thrift import TException
    from thrift.transport import TSocket, TTransport
except ImportError as error:
    raise missing_package(
        "thrift", "iceberg", purpose="The Hive catalog of the Iceberg sink", where="where the driver and executors run"
    ) from error

LOCKS = "engine.hive.lock-enabled"
"""Property of a table: "false" if its writers compare and set."""
TIMEOUT_MS = 60_000
_PREVIOUS, _LOCATION = "previous_metadata_location", "metadata_location"
_EXPECTED_KEY, _EXPECTED = "expected_parameter_key", "expected_parameter_value"
_CHANGED = "The table has been modified"
"""In what the metastore says if the condition does not hold (`HiveAlterHandler`)."""
_READABLE = "_. $"
"""In the name of a field of a struct, beside letters and digits (`TypeInfoUtils.isTypeChar`)."""
_LONGEST_COMMENT = 256
_INCOMPATIBLE = "types incompatible"
"""In what it says of columns."""


class CompareAndSetCatalog(HiveCatalog):
    """A catalog whose commits the metastore refuses if another one was faster. Threads may share it.

    Attributes:
        created_with: properties of each table that is created.
    """

    created_with: ClassVar[Mapping[str, str]] = {LOCKS: "false"}

    @property
    def _client(self) -> Any:
        return _Connection(self.properties)

    @_client.setter
    def _client(self, value: Any) -> None:
        """The library keeps one connection for all threads; here each use opens its own."""

    def create_table(self, identifier: Any, schema: Any, *arguments: Any, **more: Any) -> Any:
        """Create a table.

        Raises:
            SchemaError: the metastore could not read the names of its columns.
        """
        _check_names(schema)
        return super().create_table(identifier, schema, *arguments, **more)

    def commit_table(self, table: Any, requirements: Any, updates: Any) -> Any:
        """Change a table.

        Raises:
            SchemaError: the metastore could not read the names of its columns.
        """
        for update in updates:
            if isinstance(update, AddSchemaUpdate):
                _check_names(update.schema_)
        return super().commit_table(table, requirements, updates)

    def create_namespace(self, namespace: Any, properties: Mapping[str, str] | None = None) -> None:
        """Create a database, once its folder is there.

        The metastore makes the folder if there is none. If then another call has created the database meanwhile, it
        deletes the folder, with the tables that others have put there (`create_database_core` of `HiveMetaStore`).

        Raises:
            NamespaceAlreadyExistsError: there is one.
            Exception: of thrift, or of the metastore.
        """
        name = self.identifier_to_database(namespace)
        with self._client as client:
            if _has_database(client, name):
                raise NamespaceAlreadyExistsError(f"Database {name} already exists")
            _make_folder(client, name, (properties or {}).get("location"))
        super().create_namespace(namespace, dict(properties or {}))

    @staticmethod
    def check_properties(name: str, properties: Mapping[str, str]) -> None:
        """Refuse a table whose writers take locks.

        Raises:
            IcebergError: says what to do.
        """
        if properties.get(LOCKS, "true").lower() != "false":
            raise IcebergError(
                f"Writers of table {name} take locks of the Hive metastore: one that is late overwrites what others"
                " have committed.",
                code="iceberg.hive_locks",
                suggestion=f"Set the property {LOCKS}=false of the table, once all its writers use Iceberg 1.3 or"
                " newer.",
            )

    def check_compare_and_set(self, namespace: str) -> None:
        """Try on a table of its own whether the metastore compares, and remove it.

        Raises:
            IcebergError: it does not, so that commits could overwrite others.
            Exception: of thrift, or of the metastore.
        """
        name = f"airflow_connect_probe_{uuid.uuid4().hex}"
        with self._client as client:
            client.create_table(_probe(namespace, name))
            try:
                changed = _probe(namespace, name)
                changed.parameters = {**changed.parameters, _LOCATION: "changed", _PREVIOUS: "not there"}
                client.alter_table_with_environment_context(namespace, name, changed, EnvironmentContext({}))
            except CommitFailedException:
                return
            finally:
                client.drop_table(namespace, name, False)
        raise IcebergError(
            "The Hive metastore does not compare the table with what a commit expects, so commits could overwrite each"
            " other.",
            code="iceberg.hive_metastore",
            suggestion="Use Hive 2.3.10, or 4.0.1 and newer (HIVE-26882, HIVE-28121), or another catalog.",
        )


def _has_database(client: Any, name: str) -> bool:
    try:
        client.get_database(name)
    except NoSuchObjectException:
        return False
    return True


def _make_folder(client: Any, database: str, location: str | None) -> None:
    """Let the metastore make the folder of a database that does not exist yet.

    It makes those of tables with a unique name, so such a call does not lose to another one and delete
    it. A database with such a name tells where the metastore's version puts databases.
    """
    probe = f"airflow_connect_probe_{uuid.uuid4().hex}"
    client.create_database(HiveDatabase(name=probe, parameters={}))
    try:
        default = client.get_database(probe).locationUri.replace(probe, database.lower())
        client.create_table(_table_at(location or default, probe))
        client.drop_table(probe, probe, False)
    finally:
        client.drop_database(probe, True, True)


def _table_at(location: str, name: str) -> Any:
    columns = [FieldSchema(name="n", type="int", comment="")]
    return HiveTable(
        dbName=name, tableName=name, owner="", tableType="EXTERNAL_TABLE", partitionKeys=[],
        sd=StorageDescriptor(cols=columns, location=location, serdeInfo=SerDeInfo(parameters={}), parameters={}),
        parameters={"EXTERNAL": "TRUE"},
    )  # fmt: skip


def _check_names(schema: Any) -> None:
    """Refuse names that the metastore would accept once, and then fail to read at each later change of the table.

    Raises:
        SchemaError: names the fields.
    """
    if not isinstance(schema, Schema):
        return
    own = {field.field_id for field in schema.fields}
    inner = [field.name for key, field in index_by_id(schema).items() if key not in own]
    if bad := sorted({name for name in inner if not all(map(_is_readable, name))}):
        raise SchemaError(
            f"The Hive metastore cannot read types with these names of fields in structs: {', '.join(bad)}.",
            code="iceberg.hive_names",
            suggestion="Rename or drop the fields with a transformation (ReplaceField). It can read letters,"
            " digits, underscores, dollar signs, dots and spaces.",
        )


def _is_readable(one: str) -> bool:
    """Java's `isLetterOrDigit` of 16 bits."""
    return one in _READABLE or (one <= "\uffff" and (one.isalpha() or one.isdecimal()))


def _with_short_comments(table: Any) -> Any:
    """Cut what the metastore has no room for. Iceberg's own metadata has the whole text."""
    for column in table.sd.cols:
        if column.comment and len(column.comment) > _LONGEST_COMMENT:
            column.comment = f"{column.comment[: _LONGEST_COMMENT - 3]}..."
    return table


def _probe(namespace: str, name: str) -> Any:
    """A view: the metastore makes no folder for it."""
    columns = [FieldSchema(name="n", type="int", comment="")]
    return HiveTable(
        dbName=namespace, tableName=name, owner="", tableType="VIRTUAL_VIEW", partitionKeys=[],
        sd=StorageDescriptor(cols=columns, serdeInfo=SerDeInfo(parameters={}), parameters={}),
        viewOriginalText="select 1 n", viewExpandedText="select 1 n", parameters={_LOCATION: "first"},
    )  # fmt: skip


class _Connection:
    """A connection to the first metastore that answers, for one `with`.

    No generator: exceptions of thrift are immutable, and a generator sets their traceback.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties
        self._transport: Any = None

    def __enter__(self) -> _Comparing:
        """Connect.

        Raises:
            UnavailableError: no metastore answers.
        """
        errors = []
        for address in self._properties["uri"].split(","):
            self._transport = _transport(address.strip(), self._properties)
            try:
                self._transport.open()
            except TException as error:
                errors.append(f"{address.strip()}: {error}")
                continue
            client = Client(TBinaryProtocol.TBinaryProtocol(self._transport))
            if self._properties.get("ugi"):
                try:
                    client.set_ugi(*self._properties["ugi"].split(":"))
                except BaseException:
                    self._transport.close()  # Without `__enter__` there is no `__exit__`.
                    raise
            return _Comparing(client)
        raise UnavailableError(
            f"No Hive metastore answers: {'; '.join(errors)[:500]}.",
            code="iceberg.unavailable",
            suggestion="A later run tries again. Check iceberg.catalog.uri, and the health of the server.",
        )

    def __exit__(self, *_: object) -> None:
        """Disconnect."""
        self._transport.close()


def _transport(address: str, properties: Mapping[str, str]) -> Any:
    parts = urlsplit(address)
    socket = TSocket.TSocket(parts.hostname, parts.port or 9083)
    socket.setTimeout(TIMEOUT_MS)
    if not property_as_bool(dict(properties), HIVE_KERBEROS_AUTH, HIVE_KERBEROS_AUTH_DEFAULT):
        return TTransport.TBufferedTransport(socket)
    service = properties.get(HIVE_KERBEROS_SERVICE_NAME, HIVE_KERBEROS_SERVICE_NAME_DEFAULT)
    return TTransport.TSaslClientTransport(socket, host=parts.hostname, service=service)


class _Comparing:
    """A client of the metastore that takes no locks, and changes tables only if they are as expected."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        """Everything else as it is."""
        return getattr(self._client, name)

    def create_table(self, table: Any) -> None:
        """Create a table."""
        self._client.create_table(_with_short_comments(table))

    def lock(self, request: Any) -> Any:
        """Take none."""
        return LockResponse(lockid=0, state=LockState.ACQUIRED)

    def unlock(self, request: Any) -> None:
        """There is none."""

    def alter_table_with_environment_context(
        self, dbname: str, tbl_name: str, new_tbl: Any, environment_context: Any
    ) -> None:
        """Change a table if it still has the metadata that the change is made from.

        Raises:
            CommitFailedException: it has others.
            IcebergError: the metastore does not allow the types of the columns.
        """
        expected = {_EXPECTED_KEY: _LOCATION, _EXPECTED: new_tbl.parameters[_PREVIOUS]}
        environment_context.properties = {**(environment_context.properties or {}), **expected}
        try:
            self._client.alter_table_with_environment_context(
                dbname, tbl_name, _with_short_comments(new_tbl), environment_context
            )
        except MetaException as error:
            if _CHANGED in str(error.message):
                raise CommitFailedException(f"{dbname}.{tbl_name} was changed by another writer") from error
            raise
        except NoSuchObjectException as error:
            raise CommitFailedException(f"{dbname}.{tbl_name} does not exist any more") from error
        except InvalidOperationException as error:
            if _INCOMPATIBLE in str(error.message):
                raise _refused_columns(f"{dbname}.{tbl_name}", str(error.message)) from error
            raise


def _refused_columns(table: str, message: str) -> IcebergError:
    columns = ", ".join(message.partition(":")[2].split()) or message
    return IcebergError(
        f"The Hive metastore does not let these columns of table {table} have other types: {columns}.",
        code="iceberg.hive_columns",
        suggestion="Set hive.metastore.disallow.incompatible.col.type.changes=false in the metastore: it compares"
        " columns by position and text, and refuses new fields of structs. Or leave the field out with a"
        " transformation (ReplaceField).",
    )

"""The thrift calls that tables need, with failover across several metastores and readable errors.

Every call may be repeated: it requests a state, or is refused the second time with "already exists".
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from airflow_connect.errors import AccessError, ConnectError, UnavailableError, missing_package
from airflow_connect.hive.settings import Address, MetastoreSettings
from airflow_connect.retrying import REAL_TIME, Backoff, Retry, Timing

_CASCADE = {"CASCADE": "true"}
_NO_STATISTICS = {"DO_NOT_UPDATE_STATS": "true"}
"""Keys of Hive's StatsSetupConst. Without statistics, Hive does not inspect the files of the table."""

_PERMISSION_SIGNS = ("permission denied", "accesscontrolexception", "not authorized", "no privilege")

_Result = TypeVar("_Result")


def user_name() -> str:
    """The user name for a metastore without Kerberos, by Hadoop's rule."""
    return os.environ.get("HADOOP_USER_NAME") or getpass.getuser()


class MetastoreClient:
    """One connection at a time, opened when needed; not thread-safe."""

    def __init__(self, settings: MetastoreSettings, timing: Timing = REAL_TIME) -> None:
        """Does not connect yet.

        Raises:
            MissingPackageError: the package `pymetastore` is not installed.
        """
        _load_thrift()
        self._settings = settings
        self._timing = timing
        self._client: Any = None
        self._transport: Any = None
        self._address: Address | None = None

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection."""
        self.close()

    def close(self) -> None:
        """Close the connection; idempotent."""
        if self._transport is not None:
            self._transport.close()
        self._client = self._transport = None

    def database_exists(self, name: str) -> bool:
        """Whether there is such a database."""
        return self._found(f"look for the database {name}", lambda c: c.get_database(name)) is not None

    def create_database(self, name: str) -> None:
        """Create a database in the metastore's default location, unless it exists."""
        _, types = _load_thrift()
        wanted = types.Database(name=name, description="Created by airflow-connect", parameters={})
        self._made(f"create the database {name}", lambda c: c.create_database(wanted))

    def table(self, database: str, name: str) -> Any | None:
        """The metastore's Table, or None."""
        return self._found(f"read the table {database}.{name}", lambda c: c.get_table(database, name))

    def create_table(self, table: Any) -> None:
        """Create a table, unless it exists."""
        self._made(f"create the table {table.dbName}.{table.tableName}", lambda c: c.create_table(table))

    def alter_table(self, table: Any, *, cascade: bool) -> None:
        """Change columns and properties of a table; with `cascade` its partitions get the columns too."""
        _, types = _load_thrift()
        properties = {**_NO_STATISTICS, **(_CASCADE if cascade else {})}
        context = types.EnvironmentContext(properties=properties)
        self._call(
            f"change the table {table.dbName}.{table.tableName}",
            lambda c: c.alter_table_with_environment_context(table.dbName, table.tableName, table, context),
        )

    def partition_locations(self, database: str, table: str, names: Sequence[str]) -> Mapping[tuple[str, ...], str]:
        """The named partitions that exist: values -> location."""
        found = self._call(
            f"read partitions of the table {database}.{table}",
            lambda c: c.get_partitions_by_names(database, table, list(names)),
        )
        return {tuple(p.values): p.sd.location for p in found}

    def add_partitions(self, database: str, table: str, partitions: Sequence[Any]) -> None:
        """Add partitions; existing ones are not changed."""
        _, types = _load_thrift()
        request = types.AddPartitionsRequest(
            dbName=database, tblName=table, parts=list(partitions), ifNotExists=True, needResult=False
        )
        self._call(f"add partitions to the table {database}.{table}", lambda c: c.add_partitions_req(request))

    def _found(self, what: str, ask: Callable[[Any], _Result]) -> _Result | None:
        _, types = _load_thrift()
        try:
            return self._call(what, ask, expected=(types.NoSuchObjectException,))
        except types.NoSuchObjectException:
            return None

    def _made(self, what: str, make: Callable[[Any], None]) -> None:
        _, types = _load_thrift()
        try:
            self._call(what, make, expected=(types.AlreadyExistsException,))
        except types.AlreadyExistsException:
            return

    def _call(self, what: str, ask: Callable[[Any], _Result], expected: tuple[type[Exception], ...] = ()) -> _Result:
        """Ask one metastore after the other until one answers.

        Raises:
            UnavailableError: none answered after all attempts, or one could not do it now.
            AccessError: a metastore refused it.
        """
        from thrift.Thrift import TApplicationException, TException
        from thrift.transport.TTransport import TTransportException

        reasons: dict[str, str] = {}
        tries = Retry(Backoff(self._settings.pause_s), retries=self._settings.tries - 1, timing=self._timing)
        while True:
            for address in self._in_turn():
                try:
                    return ask(self._connected(address))
                except (TTransportException, OSError, EOFError) as error:
                    self.close()
                    reasons[str(address)] = f"{getattr(error, 'message', '') or error}"
                except expected:
                    raise
                except (TApplicationException, TException) as error:
                    raise _refusal(error, what, address) from error
            if not tries.pause():
                break
        told = "; ".join(f"{address}: {reason}" for address, reason in reasons.items())
        raise UnavailableError(
            f"No Hive metastore answered to {what} ({told}).",
            code="hive.unavailable",
            suggestion="The files that this run has published stay. The next run continues with the tables once the"
            " metastore answers.",
            config_path="hive.metastore.uris",
        )

    def _in_turn(self) -> Sequence[Address]:
        """All addresses, starting with the one that answered last."""
        known = [self._address] if self._address else []
        return [*known, *(a for a in self._settings.addresses if a not in known)]

    def _connected(self, address: Address) -> Any:
        if self._client is not None and self._address == address:
            return self._client
        self.close()
        from thrift.protocol.TBinaryProtocol import TBinaryProtocol
        from thrift.transport.TSocket import TSocket
        from thrift.transport.TTransport import TBufferedTransport

        service, _ = _load_thrift()
        socket = TSocket(address.host, address.port)
        socket.setTimeout(self._settings.connect_timeout_s * 1000)
        transport = TBufferedTransport(socket)
        transport.open()
        socket.setTimeout(self._settings.timeout_s * 1000)
        self._transport = transport
        client = service.Client(TBinaryProtocol(transport))
        client.set_ugi(user_name(), [])
        self._client, self._address = client, address
        return client


def _refusal(error: Exception, what: str, address: Address) -> ConnectError:
    _, types = _load_thrift()
    reason = " ".join(str(getattr(error, "message", "") or error).split())
    message = f"The Hive metastore {address} would not {what}: {reason}"
    if any(sign in reason.lower() for sign in _PERMISSION_SIGNS):
        return AccessError(
            message,
            code="hive.forbidden",
            suggestion=f"Grant it to the user {user_name()}, or give the metastore's own user access to the directory."
            " The files that this run has published stay. The next run continues with the tables.",
            config_path="hive.metastore.uris",
        )
    if isinstance(error, types.MetaException):
        return UnavailableError(
            message,
            code="hive.failed",
            suggestion="The files that this run has published stay. The next run continues with the tables. See the"
            " metastore's own log for details.",
            config_path="hive.metastore.uris",
        )
    return AccessError(
        message,
        code="hive.refused",
        suggestion="The files that this run has published stay. Correct the table; the next run continues with it.",
        config_path="hive.metastore.uris",
    )


def _load_thrift() -> tuple[Any, Any]:
    """The generated service and types of the metastore.

    Raises:
        MissingPackageError: the package is not installed.
    """
    try:
        from pymetastore.hive_metastore import ThriftHiveMetastore, ttypes
    except ImportError as error:
        raise missing_package(
            "pymetastore", "hdfs", purpose="hive.integration=true", config_path="hive.integration"
        ) from error
    return ThriftHiveMetastore, ttypes

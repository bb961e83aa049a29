"""Results of PostgreSQL as Arrow batches, through ADBC: binary COPY, decoded outside Python.

ADBC has a connection of its own, which is opened with the parameters of a psycopg connection that works, to the same
server. Source: ADBC PostgreSQL driver, "adbc.postgresql.batch_size_hint_bytes".
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from airflow_connect.databases.connecting import is_of_a_driver
from airflow_connect.databases.dialects.postgresql import QUOTES_TYPES, PostgreSqlDialect
from airflow_connect.databases.failures import Failure, kind_of
from airflow_connect.databases.read_timeout import peer_of, sockets_to

if TYPE_CHECKING:
    import psycopg
    import pyarrow as pa
    from sqlalchemy import Connection

_BATCH_BYTES_OPTION = "adbc.postgresql.batch_size_hint_bytes"
_BEGAN = "SELECT extract(epoch FROM pg_postmaster_start_time())::text AS began"
"""When a server was started, in microseconds: what no other server has. Its users may ask for this."""
_SMALL_BYTES = 1 << 16


class ArrowStream:
    """A connection that reads one result at a time. Not thread-safe.

    Attributes:
        is_in_transaction: whether its user has begun a transaction, which `end_transaction` ends.
        sockets: descriptors of its connection; empty if they cannot be told from others.
    """

    def __init__(self, like: psycopg.Connection[Any], isolation: str = "", options: str = "") -> None:
        """Connect.

        Args:
            like: an open connection to the same server, with the same rights.
            isolation: isolation level of each statement, as in SQL; "": the server's default.
            options: more options of libpq for the session.

        Raises:
            adbc_driver_manager.Error: the server refused the connection.
        """
        from adbc_driver_postgresql import dbapi  # type: ignore[import-untyped]

        peer = peer_of(like.fileno())
        before = sockets_to(peer)
        self._connection = dbapi.connect(_parameters(like, options), autocommit=True)
        self.sockets = sockets_to(peer) - before
        self._cursor: Any = None
        self.is_in_transaction = False
        try:
            for setting in PostgreSqlDialect.session_settings:
                self.execute(setting)
            if isolation:
                self.execute(f"SET default_transaction_isolation TO '{isolation.lower()}'")
        except BaseException:
            self.close()
            raise

    def execute(self, sql: str) -> None:
        """Execute a statement without a result."""
        with self._connection.cursor() as cursor:
            cursor.execute(sql)

    def batches(self, sql: str, batch_bytes: int) -> Iterator[pa.RecordBatch]:
        """Stream the result of a query.

        Args:
            sql: without parameters, which COPY does not have.
            batch_bytes: size at which a batch ends.

        Raises:
            adbc_driver_manager.Error: the server ended the statement.
        """
        cursor = self._cursor = self._connection.cursor()
        cursor.adbc_statement.set_options(**{_BATCH_BYTES_OPTION: str(batch_bytes)})
        cursor.execute(sql)
        for batch in _reader(cursor):
            if batch.num_rows:
                yield batch
        cursor.close()
        self._cursor = None

    def end_transaction(self) -> None:
        """End a transaction, after its last result was read to its end."""
        if self.is_in_transaction:
            self.is_in_transaction = False
            self.execute("COMMIT")

    @property
    def is_reusable(self) -> bool:
        """Whether the last result was read to its end."""
        return self._cursor is None

    def close(self, *, cancels: bool = True) -> None:
        """Disconnect.

        Args:
            cancels: a result that is being read is cancelled first, so that its rest is not read. False if the server
                does not answer: then it would not answer this either.
        """
        cursor, self._cursor = self._cursor, None
        try:
            if cursor is not None:
                try:
                    if cancels:
                        self._connection.adbc_cancel()
                finally:
                    cursor.close()
        finally:
            self._connection.close()


def arrow_stream(connection: Connection, isolation: str = "") -> ArrowStream | None:
    """A stream beside a connection of SQLAlchemy to PostgreSQL; None if ADBC cannot read this database.

    Args:
        connection: open, through psycopg.
        isolation: see `ArrowStream`.

    Raises:
        adbc_driver_manager.Error: the server refused the connection.
    """
    like: Any = connection.connection.driver_connection
    if why_no_stream(connection):
        return None
    # ADBC reads the names of types before the first statement. Poolers refuse options, so none are sent without need.
    return ArrowStream(like, isolation, "-c quote_all_identifiers=off" if connection.info.get(QUOTES_TYPES) else "")


def is_to_same_server(connection: Connection, stream: ArrowStream) -> bool:
    """Whether a stream has reached the server of its connection: an address, or a balancer, may have several.

    Args:
        connection: the one that the stream was opened beside, outside a transaction.
        stream: newly opened.

    Raises:
        Exception: of the driver.
    """
    try:
        began = connection.exec_driver_sql(_BEGAN).scalar_one()
    except Exception as error:
        if not is_of_a_driver(error) or kind_of(error) is not Failure.OTHER:
            raise
        return True  # It only speaks the protocol of PostgreSQL, and does not tell.
    finally:
        connection.rollback()
    return [batch.column(0)[0].as_py() for batch in stream.batches(_BEGAN, _SMALL_BYTES)] == [began]


def why_no_stream(connection: Connection) -> str:
    """Why ADBC cannot read a database of PostgreSQL, as a part of a sentence; "": it can."""
    like: Any = connection.connection.driver_connection
    if find_spec("adbc_driver_postgresql") is None:
        return "the package adbc-driver-postgresql is not installed"
    # Such a database has texts of any encoding, and Arrow's are UTF-8.
    is_ascii = like.info.parameter_status("server_encoding") == "SQL_ASCII"
    return "the database has the encoding SQL_ASCII, and columns need texts in UTF-8" if is_ascii else ""


def _reader(cursor: Any) -> Iterator[pa.RecordBatch]:
    """The batches of an executed statement, with errors that have a SQLSTATE.

    The public `fetch_record_batch` is Arrow's reader below the one of ADBC, and raises OSError with nothing but a text.
    """
    import adbc_driver_manager
    import pyarrow as pa

    own = getattr(getattr(cursor, "_results", None), "reader", None)
    try:
        yield from cursor.fetch_record_batch() if own is None else own
    except (OSError, pa.ArrowException) as error:
        unknown = adbc_driver_manager.AdbcStatusCode.UNKNOWN
        raise adbc_driver_manager.OperationalError(str(error), status_code=unknown) from error


def _parameters(like: psycopg.Connection[Any], options: str) -> str:
    """Parameters of libpq for the server to which a connection is open, which may be one of several."""
    from psycopg.conninfo import make_conninfo

    info = like.info
    parameters = {**info.get_parameters(), "host": info.host, "port": str(info.port), "client_encoding": "UTF8"}
    if options:
        parameters["options"] = f"{parameters.get('options', '')} {options}".strip()
    if info.hostaddr:
        parameters["hostaddr"] = info.hostaddr
    if info.password:
        parameters["password"] = info.password
    return make_conninfo(**parameters)

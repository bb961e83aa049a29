"""What an exception of a database driver means: one kind for each thing that callers treat differently.

Sources: PostgreSQL "Error Codes" (SQLSTATE); MariaDB "Error Codes"; SQLite "Result and Error Codes"; sys.messages of
SQL Server; Oracle "Error Messages".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from enum import Enum
from typing import TYPE_CHECKING, Any

from airflow_connect.databases.reasons import is_raised, reason_of, without_words
from airflow_connect.errors import (
    AccessError,
    ConfigError,
    ConnectError,
    DatabaseError,
    DataError,
    RetriableError,
    UnavailableError,
)

if TYPE_CHECKING:
    from airflow_connect.databases.urls import DatabaseAddress


class Failure(Enum):
    """Kinds of failures."""

    AUTHENTICATION = "authentication"
    PERMISSION = "permission"
    UNKNOWN_HOST = "unknown host"
    UNREACHABLE = "unreachable"
    TLS = "tls"
    """The server has no TLS, or one of the two certificates is not accepted, or cannot be read."""
    UNKNOWN_DATABASE = "unknown database"
    TOO_MANY_CONNECTIONS = "too many connections"
    CONFLICT = "conflict"
    """A deadlock, a serialization failure, a lock that was not granted in time: the transaction may be repeated."""
    CONNECTION_LOST = "connection lost"
    """Also: the server shuts down or starts. Whether an open COMMIT took effect is unknown."""
    DISK_FULL = "disk full"
    STATEMENT_TIMEOUT = "statement timeout"
    """Also: somebody has cancelled the statement."""
    OUT_OF_RESOURCES = "out of resources"
    READ_ONLY = "read only"
    MISSING_OBJECT = "missing object"
    """A table or a column does not exist."""
    CONSTRAINT = "constraint"
    """A row violates a constraint: unique, not null, check, foreign key."""
    VALUE = "value"
    """A value does not fit its column."""
    TYPE = "type"
    """A type does not fit its column, or another one, whatever the value is: a matter of the statement or the table."""
    OTHER = "other"


def kind_of(error: BaseException) -> Failure:
    """The kind of an exception of SQLAlchemy, a driver, or Arrow's database drivers."""
    original = getattr(error, "orig", None) or error
    for found in _kinds(original):
        if found is not None:
            return found
    if getattr(error, "connection_invalidated", False):
        return Failure.CONNECTION_LOST
    return Failure.OTHER


def refers_to_none(error: BaseException) -> bool:
    """Whether a foreign key refers to a row that does not exist, or is no longer there."""
    original = getattr(error, "orig", None) or error
    arguments: tuple[object, ...] = tuple(getattr(original, "args", ()))
    return getattr(original, "sqlstate", None) == _NO_PARENT or arguments[:1] in _NO_PARENTS


_NO_PARENT = "23503"
_NO_PARENTS = ((1216,), (1452,), ("FOREIGN KEY constraint failed",))
"""What PostgreSQL, MySQL and SQLite say of it. PostgreSQL and SQLite say the same of a row that others refer to."""


def typed(error: BaseException, what: str, address: DatabaseAddress) -> ConnectError:
    """The error for users.

    Args:
        error: what a driver or SQLAlchemy raised.
        what: what could not be done, after "could not": `read the table "a"."b"`.
        address: of the database.
    """
    kind = kind_of(error)
    reason = address.scrub(reason_of(error))
    if address.hides_statements and kind not in _WITHOUT_A_STATEMENT:
        reason = without_words(error)
    message = f"The database {address.display} could not be used to {what}: {reason}"
    return _ERRORS[kind](_sentence(message))


_WITHOUT_A_STATEMENT = frozenset(
    {
        Failure.AUTHENTICATION,
        Failure.UNKNOWN_HOST,
        Failure.UNREACHABLE,
        Failure.TLS,
        Failure.UNKNOWN_DATABASE,
        Failure.TOO_MANY_CONNECTIONS,
        Failure.CONFLICT,
        Failure.CONNECTION_LOST,
        Failure.DISK_FULL,
    }
)
"""Their words never repeat a statement."""


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?")) else text + "."


_ERRORS: dict[Failure, Callable[[str], ConnectError]] = {
    Failure.AUTHENTICATION: lambda message: AccessError(
        message,
        code="database.authentication",
        suggestion="Correct connection.user and connection.password.",
        config_path="connection.password",
    ),
    Failure.PERMISSION: lambda message: AccessError(
        message,
        code="database.permission",
        suggestion="Grant the privilege to the user in connection.user.",
        config_path="connection.user",
    ),
    Failure.UNKNOWN_HOST: lambda message: UnavailableError(
        message,
        code="database.unknown_host",
        suggestion="Correct the host in connection.url, or its entry in the DNS.",
        config_path="connection.url",
    ),
    Failure.UNREACHABLE: lambda message: UnavailableError(
        message,
        code="database.unreachable",
        suggestion="Check that the server runs, and that this machine reaches the host and port in connection.url.",
        config_path="connection.url",
    ),
    Failure.TLS: lambda message: ConfigError(
        message,
        code="database.tls",
        suggestion="Correct the parameters of connection.url for TLS, such as sslmode and sslrootcert of PostgreSQL, or"
        " sslMode and serverSslCert of MySQL and MariaDB; or the TLS of the server.",
        config_path="connection.url",
    ),
    Failure.UNKNOWN_DATABASE: lambda message: ConfigError(
        message,
        code="database.unknown_database",
        suggestion="Correct the database in connection.url, or create it.",
        config_path="connection.url",
    ),
    Failure.TOO_MANY_CONNECTIONS: lambda message: UnavailableError(
        message,
        code="database.too_many_connections",
        suggestion="Allow more connections in the database, or lower tasks.max: each task has one or two.",
        config_path="tasks.max",
    ),
    Failure.CONFLICT: lambda message: RetriableError(
        message,
        code="database.conflict",
        suggestion="Another transaction holds the rows. Nothing is lost; run again.",
    ),
    Failure.CONNECTION_LOST: lambda message: UnavailableError(
        message,
        code="database.connection_lost",
        suggestion="Nothing is lost: the next run continues from the committed offsets.",
    ),
    Failure.DISK_FULL: lambda message: UnavailableError(
        message,
        code="database.disk_full",
        suggestion="Free space on the database's machine, then run again. Nothing is lost.",
    ),
    Failure.STATEMENT_TIMEOUT: lambda message: RetriableError(
        message,
        code="database.statement_timeout",
        suggestion="Look which session holds the rows, or allow the user longer statements. Nothing is lost.",
    ),
    Failure.OUT_OF_RESOURCES: lambda message: UnavailableError(
        message,
        code="database.out_of_resources",
        suggestion="Look at the memory and the limits of the database. Nothing is lost; run again.",
    ),
    Failure.READ_ONLY: lambda message: UnavailableError(
        message,
        code="database.read_only",
        suggestion="The address may lead to a replica: correct connection.url, or wait until a replica has become the"
        " primary.",
        config_path="connection.url",
    ),
    Failure.MISSING_OBJECT: lambda message: DatabaseError(
        message,
        code="database.missing_object",
        suggestion="Create what is missing, or correct the name in the configuration.",
    ),
    Failure.CONSTRAINT: lambda message: DataError(
        message,
        code="database.constraint",
        suggestion="Correct the record, or the constraint of the table.",
    ),
    Failure.VALUE: lambda message: DataError(
        message,
        code="database.value",
        suggestion="Correct the value, or the type of its column.",
    ),
    Failure.TYPE: lambda message: DatabaseError(
        message,
        code="database.type",
        suggestion="Correct the types in the query, the trigger or the table that the database names.",
    ),
    Failure.OTHER: lambda message: DatabaseError(
        message,
        code="database.failed",
        suggestion="Read the database's own words in this message.",
    ),
}


def _breaks_a_policy(original: Any) -> bool:
    """Whether PostgreSQL has refused a row because of a policy, with the code of a missing privilege.

    Its words depend on the language of the server; the function that checks rows is that of WITH CHECK OPTION, too.
    """
    diagnostics = getattr(original, "diag", None)
    return getattr(diagnostics, "source_function", None) == "ExecWithCheckOptions"


def _kinds(original: Any) -> Iterator[Failure | None]:
    """Guesses, the most precise first."""
    state = getattr(original, "sqlstate", None)
    if _breaks_a_policy(original):
        yield Failure.CONSTRAINT
    if isinstance(state, (str, bytes)) and state:
        found = _of_sqlstate(state.decode() if isinstance(state, bytes) else state)
        yield None if found is Failure.TYPE and is_raised(original) else found
        yield Failure.CONSTRAINT if is_raised(original) else None
    arguments = getattr(original, "args", ())
    module = type(original).__module__.partition(".")[0]
    if module == "pymysql" and arguments and isinstance(arguments[0], int):
        yield _of_mysql(arguments[0], str(arguments[-1]))
    elif module in ("psycopg", "sqlite3") and type(original).__name__ in _CLIENT_SIDE and state is None:
        yield _of_client(str(original))
    name = getattr(original, "sqlite_errorname", None)
    if isinstance(name, str):
        yield _of_sqlite(name, str(original))
    yield _of_text(str(original))


_CLIENT_SIDE = ("DataError", "ProgrammingError", "InterfaceError", "NotSupportedError")
_NO_VALUE = re.compile(
    "cannot contain NUL|cannot adapt type|Error binding parameter|cannot dump|out of range|too large"
)


def _of_client(text: str) -> Failure | None:
    """What a driver itself refuses, before it asks the server: a value that it cannot send."""
    return Failure.VALUE if _NO_VALUE.search(text) else None


_SQLSTATES = {
    "28": Failure.AUTHENTICATION,
    "42501": Failure.PERMISSION,
    "3D": Failure.UNKNOWN_DATABASE,
    "53300": Failure.TOO_MANY_CONNECTIONS,
    "53100": Failure.DISK_FULL,
    "40001": Failure.CONFLICT,
    "40P01": Failure.CONFLICT,
    "55P03": Failure.CONFLICT,
    "40003": Failure.CONNECTION_LOST,
    "08": Failure.CONNECTION_LOST,
    "57P": Failure.CONNECTION_LOST,
    "25006": Failure.READ_ONLY,
    "57014": Failure.STATEMENT_TIMEOUT,
    "53": Failure.OUT_OF_RESOURCES,
    "42P01": Failure.MISSING_OBJECT,
    "42703": Failure.MISSING_OBJECT,
    "3F": Failure.MISSING_OBJECT,
    "23": Failure.CONSTRAINT,
    "44": Failure.CONSTRAINT,  # WITH CHECK OPTION of a view
    "P0": Failure.CONSTRAINT,  # RAISE, ASSERT and INTO STRICT of a trigger
    "54000": Failure.VALUE,  # a value that is too large for an index
    "22": Failure.VALUE,
    "42804": Failure.TYPE,
    "42846": Failure.TYPE,
}
"""Codes of PostgreSQL, or their beginnings."""


def _of_sqlstate(state: str) -> Failure | None:
    for length in (5, 3, 2):
        if state[:length] in _SQLSTATES:
            return _SQLSTATES[state[:length]]
    return None


_MYSQL_CODES = {
    Failure.AUTHENTICATION: (1045, 1698, 1251, 2054, 2059, 1862),
    Failure.PERMISSION: (1044, 1142, 1143, 1227, 1370),
    Failure.UNKNOWN_DATABASE: (1049,),
    Failure.TOO_MANY_CONNECTIONS: (1040, 1203, 1226),
    Failure.CONFLICT: (1205, 1213, 3572, 1020),
    Failure.CONNECTION_LOST: (2006, 2013, 2014, 1053, 1927, 1152, 1158, 1159, 1160, 1161, 0),
    Failure.DISK_FULL: (1021, 1114, 1041),
    Failure.MISSING_OBJECT: (1146, 1054, 1051, 1091),
    Failure.STATEMENT_TIMEOUT: (1317, 1969, 3024),
    Failure.OUT_OF_RESOURCES: (1037, 1038, 1135),
    Failure.READ_ONLY: (1290, 1792, 1836),
    # 1644: SIGNAL of a trigger. 1369: WITH CHECK OPTION of a view. 1526, 1591, 1748: no partition for a row.
    Failure.CONSTRAINT: (1062, 1048, 1451, 1452, 4025, 1364, 3819, 1586, 1644, 1369, 1526, 1591, 1748),
    Failure.VALUE: (1406, 1264, 1366, 1292, 1265, 1367, 1441, 3140, 1690, 1411, 1300, 1118, 1153, 4038),
    Failure.TYPE: (4078, 4079),
}
_OF_MYSQL_CODE = {code: kind for kind, codes in _MYSQL_CODES.items() for code in codes}


def _of_mysql(code: int, text: str) -> Failure | None:
    if code in (2002, 2003, 2005):
        return _of_text(text) or Failure.UNREACHABLE
    return _OF_MYSQL_CODE.get(code)


_SQLITE_NAMES = {
    "SQLITE_BUSY": Failure.CONFLICT,
    "SQLITE_LOCKED": Failure.CONFLICT,
    "SQLITE_FULL": Failure.DISK_FULL,
    "SQLITE_CANTOPEN": Failure.UNKNOWN_DATABASE,
    "SQLITE_NOTADB": Failure.UNKNOWN_DATABASE,
    "SQLITE_READONLY": Failure.PERMISSION,
    "SQLITE_PERM": Failure.PERMISSION,
    "SQLITE_AUTH": Failure.PERMISSION,
    "SQLITE_CONSTRAINT": Failure.CONSTRAINT,
    "SQLITE_MISMATCH": Failure.VALUE,
    "SQLITE_TOOBIG": Failure.VALUE,
}

_SQLITE_VALUE = ("malformed JSON", "integer overflow", "LIKE or GLOB pattern too complex", "JSON path error near")
"""What functions say of a value, in a constraint or a generated column (src/json.c and src/func.c of SQLite)."""


def _of_sqlite(name: str, text: str) -> Failure | None:
    if name == "SQLITE_ERROR" and (text.startswith("no such ") or " has no column named " in text):
        return Failure.MISSING_OBJECT
    if name == "SQLITE_ERROR" and text.startswith(_SQLITE_VALUE):
        return Failure.VALUE
    return next((kind for start, kind in _SQLITE_NAMES.items() if name.startswith(start)), None)


_TEXTS = {
    # libpq reports failures to connect without a code.
    Failure.AUTHENTICATION: (
        r"password authentication failed|no password supplied|Login failed|ORA-01017|no pg_hba.conf entry"
        r"|role .* does not exist"
    ),
    Failure.TLS: (
        r"does not support SSL|SSL is required|certificate verify failed|(?i:tlsv1.alert|sslv3.alert)"
        r"|WRONG_VERSION_NUMBER|UNSUPPORTED_PROTOCOL|certificate file .* does not exist|private key file"
        r"|could not (?:load|read) (?:private key|certificate|root certificate)|does not match host name"
    ),
    Failure.OTHER: r"invalid value for parameter|unrecognized configuration parameter|invalid command-line argument",
    Failure.UNKNOWN_DATABASE: (r"database .* does not exist|Unknown database|ORA-12514|ORA-12505|Cannot open database"),
    Failure.UNKNOWN_HOST: (
        r"failed to resolve host|could not translate host name|Name or service not known|nodename nor servname"
        r"|getaddrinfo"
    ),
    Failure.TOO_MANY_CONNECTIONS: r"too many (clients|connections)|remaining connection slots",
    Failure.UNREACHABLE: (
        r"Connection refused|timeout expired|timed out|No route to host|Network is unreachable|ORA-12541|No such file"
    ),
    Failure.DISK_FULL: r"No space left on device",
    Failure.CONNECTION_LOST: (
        r"starting up|shutting down|recovery mode|server closed the connection"
        r"|connection (is|was|already) (lost|closed)|Lost connection|Connection reset|Broken pipe"
        r"|terminating connection|SSL SYSCALL error|bad connection"
        r"|connection failed|the connection is closed|consuming input failed|ORA-03113|ORA-03114|DPY-4011"
        r"|Adaptive Server connection failed"
    ),
}
"""Texts of messages without a code; the first that matches counts."""


def _of_text(text: str) -> Failure | None:
    return next((kind for kind, pattern in _TEXTS.items() if re.search(pattern, text)), None)

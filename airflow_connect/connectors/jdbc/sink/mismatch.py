"""Types of fields that no value of a column has: a matter of the table and the schema, not of the record.

With errors.tolerance=all, each record of the topic would become a dead letter, and the run would end as if it had
succeeded. A record without a schema has its types from its own values, so that only this record may be wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_connect.connectors.jdbc.sink.keys import JdbcSinkKeys as Keys
from airflow_connect.databases.connecting import is_of_a_driver
from airflow_connect.databases.failures import Failure, kind_of
from airflow_connect.databases.reasons import reason_of
from airflow_connect.errors import DatabaseError

if TYPE_CHECKING:
    from airflow_connect.api.record import SinkRecord
    from airflow_connect.connectors.jdbc.sink.chunk_work import Work

_NO_OPERATOR = "42883"
"""PostgreSQL: there is no operator, or no function, for these types."""
_NO_UNIQUE_KEY = "42P10"
_NO_UNIQUE_KEY_OF_SQLITE = "ON CONFLICT clause does not match any PRIMARY KEY or UNIQUE constraint"


def is_mismatch(error: Exception, *, compares: bool) -> bool:
    """Whether the types of a statement and of its columns do not fit each other, whatever the values are.

    Args:
        error: of a statement that writes rows. Of one in a trigger, PostgreSQL tells where: it is none of these.
        compares: whether the statement compares a key with its columns.
    """
    if not is_of_a_driver(error):
        return False
    original: Any = getattr(error, "orig", None) or error
    if getattr(getattr(original, "diag", None), "context", None):
        return False
    lacks_operator = compares and getattr(original, "sqlstate", None) == _NO_OPERATOR
    return lacks_operator or kind_of(error) is Failure.TYPE


def lacks_unique_key(error: Exception) -> bool:
    """Whether the table of an upsert has no unique index over the columns of the key. MySQL would insert the row."""
    if not is_of_a_driver(error):
        return False
    original: Any = getattr(error, "orig", None) or error
    return getattr(original, "sqlstate", None) == _NO_UNIQUE_KEY or _NO_UNIQUE_KEY_OF_SQLITE in str(original)


def missing_unique_key(error: Exception, work: Work) -> DatabaseError:
    """The error for users: the table, and the columns of the key."""
    columns = ", ".join(work.columns_of_fields[: len(work.names.keys)])
    reason = reason_of(error).removesuffix(".")
    return DatabaseError(
        f"The table {work.table} has no primary key and no unique index over exactly the columns {columns}, which an"
        f" upsert needs to find the row of a key: {reason}.",
        code="jdbc.unique_key",
        suggestion=f"Add a primary key or a unique index over these columns, or correct {Keys.pk_fields}.",
        config_path=Keys.pk_fields.name,
    )


def has_schema(record: SinkRecord) -> bool:
    """Whether the types of a record come from its schema, not from its values."""
    return (record.key_schema if record.value is None else record.value_schema) is not None


def mismatch(error: Exception, work: Work, record: SinkRecord) -> DatabaseError:
    """The error for users: the words of the database, with the types of the fields that they may be about."""
    reason = reason_of(error).removesuffix(".")
    columns = dict(zip(work.fields, work.columns_of_fields, strict=True))
    named = {field: column for field, column in columns.items() if _names(reason, column)} or columns
    listed = "; ".join(
        f"the field {field} is {work.types[field]}, and its column {column} is {work.declared.get(column, 'unknown')}"
        for field, column in named.items()
    )
    return DatabaseError(
        f"Records such as {record.where} cannot be written into {work.table}, because the types of their schema do not"
        f" fit those of the table: {reason}. Of the record, {listed}.",
        code="jdbc.column_type",
        suggestion="Change the type of the column, or that of the field with the transformation Cast. No record of this"
        " schema fits, so errors.tolerance does not make dead letters of them.",
    )


def _names(reason: str, column: str) -> bool:
    """Whether the words of a database have the name of a column, in its quotes."""
    return f'"{column}"' in reason or f"`{column}`" in reason

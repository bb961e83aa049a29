"""What a transformation may find in a record, and how Kafka Connect words it when it finds something else.

Source of the messages: org.apache.kafka.connect.transforms.util.Requirements (Kafka 4.3.1, recorded).
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from airflow_connect.api.record import ConnectRecord, SinkRecord
from airflow_connect.api.schema import DATE, TIME, TIMESTAMP, Schema, Type
from airflow_connect.errors import DataError

if TYPE_CHECKING:
    from airflow_connect.api.schema import Field

_JAVA_INTEGERS = {
    Type.INT8: "java.lang.Byte",
    Type.INT16: "java.lang.Short",
    Type.INT32: "java.lang.Integer",
    Type.INT64: "java.lang.Long",
}
_JAVA_CLASSES: tuple[tuple[type, str], ...] = (
    (str, "java.lang.String"),
    (bool, "java.lang.Boolean"),
    (bytes, "[B"),
    (Decimal, "java.math.BigDecimal"),
    (list, "java.util.ArrayList"),
    (datetime.datetime, "java.util.Date"),
)
_TYPES: tuple[tuple[type, Type], ...] = (
    (str, Type.STRING),
    (bool, Type.BOOLEAN),
    (int, Type.INT64),
    (float, Type.FLOAT64),
    (bytes, Type.BYTES),
    (dict, Type.MAP),
    (list, Type.ARRAY),
)
_CLASSES_WITH_SCHEMA = (DATE, TIME, TIMESTAMP)


def java_class(schema: Schema | None, value: Any) -> str:
    """Name of the Java class that Connect would have seen; `null` for None.

    Python's int has no width: without a schema it is a Long, which is what JsonConverter reads.
    """
    if value is None:
        return "null"
    if isinstance(value, dict):
        is_struct = schema is not None and schema.type is Type.STRUCT
        return "org.apache.kafka.connect.data.Struct" if is_struct else "java.util.HashMap"
    if isinstance(value, float):
        return "java.lang.Float" if schema is not None and schema.type is Type.FLOAT32 else "java.lang.Double"
    for kind, name in _JAVA_CLASSES:
        if isinstance(value, kind):
            return name
    if isinstance(value, int):
        if schema is not None and schema.name in _CLASSES_WITH_SCHEMA:
            return "java.util.Date"
        return "java.lang.Long" if schema is None else _JAVA_INTEGERS.get(schema.type, "java.lang.Long")
    return type(value).__name__


def inferred_type(value: Any) -> Type | None:
    """Type that Connect takes a schemaless value for; None where its data API has none: dates, decimals, None."""
    for kind, found in _TYPES:
        if isinstance(value, kind):
            return found
    return None


def require_map(schema: Schema | None, value: Any, purpose: str) -> dict[Any, Any]:
    """`value`, which must be a map without schema.

    Args:
        schema: of the value, for the message.
        value: anything.
        purpose: what the transformation does, in Connect's words: `field extraction`.

    Raises:
        DataError: it is something else.
    """
    if isinstance(value, dict):
        return value
    raise DataError(
        f"Only Map objects supported in absence of schema for [{purpose}], found: {java_class(schema, value)}.",
        suggestion="Apply the transformation to records that contain an object, or skip others with a predicate.",
    )


def require_struct(schema: Schema | None, value: Any, purpose: str) -> dict[str, Any]:
    """`value`, which must be a struct.

    Raises:
        DataError: it is something else.
    """
    if isinstance(value, dict) and schema is not None and schema.type is Type.STRUCT:
        return value
    raise DataError(
        f"Only Struct objects supported for [{purpose}], found: {java_class(schema, value)}.",
        suggestion="Apply the transformation to records that contain a struct, or skip others with a predicate.",
    )


def require_schema(schema: Schema | None, purpose: str) -> Schema:
    """`schema`, which must be one.

    Raises:
        DataError: the value is schemaless.
    """
    if schema is not None:
        return schema
    raise DataError(
        f"Schema required for [{purpose}].",
        suggestion="Use a converter that gives schemas, for example JsonConverter with schemas.enable=true.",
    )


def require_sink_record(record: ConnectRecord, purpose: str) -> SinkRecord:
    """`record`, which must be on its way to a sink.

    Raises:
        DataError: it comes from a source, and so has no offset in Kafka yet.
    """
    if isinstance(record, SinkRecord):
        return record
    raise DataError(
        f"Only SinkRecord supported for [{purpose}], found: org.apache.kafka.connect.source.SourceRecord.",
        suggestion="Leave the offset out: a record of a source gets its offset only when Kafka has stored it.",
    )


def field_value(struct: Mapping[str, Any], field: Field, replace_null: bool) -> Any:
    """Value of a struct's field; where it is null and `replace_null`, the field's default (KIP-1040)."""
    value = struct.get(field.name)
    return field.schema.default if value is None and replace_null else value

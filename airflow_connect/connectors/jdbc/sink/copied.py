"""Which columns of PostgreSQL get the same from COPY as from INSERT.

COPY takes the text of a value, and INSERT casts the value to the type of the column: true becomes `t` or `true` in a
text, 1.0 becomes `1.0` or `1`. What a row holds must not depend on the number of rows that are written with it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from airflow_connect.api.schema import DATE, DECIMAL, TIME, TIMESTAMP, Type

if TYPE_CHECKING:
    from airflow_connect.api.schema import Schema

_FLOATS = re.compile(r"real|double precision")
_LOGICAL = {
    DECIMAL: re.compile(r"(numeric|smallint|integer|bigint|text|character varying)\b.*"),
    DATE: re.compile(r"(date|timestamp)\b.*"),
    TIME: re.compile(r"time\b.*"),
    TIMESTAMP: re.compile(r"timestamp\b.*"),
}
_TYPES = {
    Type.BOOLEAN: re.compile("boolean"),
    Type.FLOAT32: _FLOATS,
    Type.FLOAT64: _FLOATS,
    Type.BYTES: re.compile("bytea"),
}


def is_copied_alike(declared: str, schema: Schema) -> bool:
    """Whether COPY writes into a column what INSERT does.

    Args:
        declared: type of the column; see `declared_types`.
        schema: of the field.
    """
    if schema.type is Type.ARRAY and schema.value_schema is not None:
        return is_copied_alike(declared.removesuffix("[]"), schema.value_schema)
    alike = _LOGICAL.get(schema.name or "") or _TYPES.get(schema.type)
    return not declared or alike is None or alike.fullmatch(declared) is not None

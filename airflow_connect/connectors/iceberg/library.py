"""What this folder uses of pyiceberg wherever it is loaded; if it is not installed, an error that says what to do."""

from __future__ import annotations

from airflow_connect.connectors.iceberg.catalogs import lacks_pyiceberg

try:
    from pyiceberg.schema import Schema as IcebergSchema
    from pyiceberg.types import (
        BinaryType,
        BooleanType,
        DateType,
        DecimalType,
        DoubleType,
        FixedType,
        FloatType,
        IcebergType,
        IntegerType,
        ListType,
        LongType,
        MapType,
        NestedField,
        StringType,
        StructType,
        TimestampType,
        TimestamptzType,
        TimeType,
        UUIDType,
    )
except ImportError:
    raise lacks_pyiceberg() from None

__all__ = [
    "BinaryType",
    "BooleanType",
    "DateType",
    "DecimalType",
    "DoubleType",
    "FixedType",
    "FloatType",
    "IcebergSchema",
    "IcebergType",
    "IntegerType",
    "ListType",
    "LongType",
    "MapType",
    "NestedField",
    "StringType",
    "StructType",
    "TimeType",
    "TimestampType",
    "TimestamptzType",
    "UUIDType",
]

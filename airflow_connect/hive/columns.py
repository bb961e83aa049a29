"""Columns of a table for values of a Connect schema, as each format holds them in its files.

| Connect | Parquet, ORC | Avro | JSON |
|---|---|---|---|
| INT8, INT16 | tinyint, smallint | int | tinyint, smallint |
| INT32, INT64, FLOAT32, FLOAT64, BOOLEAN, STRING | int, bigint, float, double, boolean, string | the same | the same |
| BYTES | binary | binary | string (base64) |
| Decimal | decimal(38, scale) | decimal(38, scale) | string (base64), or decimal(38, scale) |
| Date | date | date | int (days) |
| Time | int (milliseconds); in ORC timestamp | int | int |
| Timestamp | timestamp | timestamp | bigint (milliseconds) |
| STRUCT, ARRAY | struct, array | the same | the same |
| MAP with text keys | map | map | map |
| other MAP | array of struct of key and value; in ORC map | array of struct | array of arrays of text |

Source: Confluent's HiveSchemaConverter (`convertSchemaMaybeLogical`) for Parquet and ORC; Hive's SchemaToTypeInfo for
Avro; JsonConverter for JSON. Differences from Confluent's: maps whose keys are not text have the type that is in the
files, and types inside structs, arrays and maps keep their logical type.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum

from airflow_connect.api.schema import DATE, DECIMAL, DECIMAL_SCALE, TIME, TIMESTAMP, Schema, Type
from airflow_connect.converters.value_transform import has_string_keys
from airflow_connect.errors import SchemaError
from airflow_connect.hive.types import HiveType, array_of, decimal_of, map_of, struct_of

PRECISION_PARAMETER = "connect.decimal.precision"
MAX_PRECISION = 38
TEXT_COLUMN = "value"
"""The only column of a table over lines of text, and over JSON without a schema."""


class FileKind(Enum):
    """The format of a table's files; the value is its name in Hive's `STORED AS`."""

    AVRO = "AVRO"
    JSON = "JSONFILE"
    ORC = "ORC"
    PARQUET = "PARQUET"
    TEXT = "TEXTFILE"


@dataclass(frozen=True, slots=True)
class Column:
    """A column; names are compared without case, as Hive does."""

    name: str
    type: HiveType
    comment: str = ""


@dataclass(frozen=True, slots=True)
class ColumnRules:
    """How a format writes values.

    Attributes:
        kind: the format.
        numeric_decimals: for JSON: `json.decimal.format=NUMERIC`.
        allow_optional_map_keys: `allow.optional.map.keys`.
    """

    kind: FileKind
    numeric_decimals: bool = False
    allow_optional_map_keys: bool = False


_PLAIN = {
    Type.INT8: "tinyint",
    Type.INT16: "smallint",
    Type.INT32: "int",
    Type.INT64: "bigint",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "boolean",
    Type.STRING: "string",
    Type.BYTES: "binary",
}
_STRING = HiveType("string")


def columns_of(schema: Schema | None, rules: ColumnRules, without: Collection[str] = ()) -> tuple[Column, ...]:
    """The columns of a table over files with values of `schema`, in the order of its fields.

    Args:
        schema: of the values; None for values without one.
        rules: how the files represent them.
        without: names of partition columns. Hive does not allow a column twice, so the directory's value counts.

    Raises:
        SchemaError: the schema is not a STRUCT, two fields differ only in case, or Hive has no such type.
    """
    if rules.kind is FileKind.TEXT or schema is None:
        return (Column(TEXT_COLUMN, _STRING),)
    if schema.type is not Type.STRUCT:
        raise SchemaError(
            f"Values of type {schema.name or schema.type.name} cannot become rows of a Hive table: only a STRUCT has"
            " columns.",
            code="hive.schema",
            suggestion="Wrap the value with a transformation (HoistField), or set hive.integration=false.",
        )
    left_out = {name.lower() for name in without}
    found = [
        Column(field.name, _type(field.schema, rules, field.name), field.schema.doc or "")
        for field in schema.fields
        if field.name.lower() not in left_out
    ]
    spelled: dict[str, str] = {}
    for column in found:
        other = spelled.setdefault(column.name.lower(), column.name)
        if other != column.name:
            raise SchemaError(
                f"The fields {other} and {column.name} differ only in case, which Hive cannot distinguish.",
                code="hive.schema",
                suggestion="Rename or drop one of them with a transformation (ReplaceField).",
            )
    if not found:
        raise SchemaError(
            "Every field of the values is a partition column, so that no column is left for a Hive table.",
            code="hive.schema",
            suggestion="Partition by fewer fields, or set hive.integration=false.",
        )
    return tuple(found)


def _type(schema: Schema, rules: ColumnRules, path: str) -> HiveType:
    if schema.type is Type.STRUCT:
        return struct_of([(f.name, _type(f.schema, rules, f"{path}.{f.name}")) for f in schema.fields])
    if schema.type is Type.ARRAY and schema.value_schema:
        return array_of(_type(schema.value_schema, rules, f"{path}[]"))
    if schema.type is Type.MAP and schema.key_schema and schema.value_schema:
        return _map(schema, rules, path)
    if rules.kind is FileKind.JSON:
        return _json_scalar(schema, rules, path)
    if schema.name == DECIMAL:
        return _decimal(schema, path)
    if schema.name == DATE:
        return HiveType("date")
    if schema.name == TIMESTAMP or (schema.name == TIME and rules.kind is FileKind.ORC):
        return HiveType("timestamp")
    if rules.kind is FileKind.AVRO and schema.type in (Type.INT8, Type.INT16):
        return HiveType("int")  # Avro has no smaller one.
    return HiveType(_PLAIN[schema.type])


def _map(schema: Schema, rules: ColumnRules, path: str) -> HiveType:
    assert schema.key_schema and schema.value_schema
    value = _type(schema.value_schema, rules, f"{path}{{}}")
    if rules.kind is FileKind.JSON:
        # JsonConverter writes other maps as arrays of pairs, whose two members have no type in common.
        return map_of(_STRING, value) if schema.key_schema.type is Type.STRING else array_of(array_of(_STRING))
    key = _type(schema.key_schema, rules, f"{path} (a map key)")
    if rules.kind is FileKind.ORC or has_string_keys(schema, rules.allow_optional_map_keys):
        return map_of(key, value)
    return array_of(struct_of([("key", key), ("value", value)]))


def _json_scalar(schema: Schema, rules: ColumnRules, path: str) -> HiveType:
    """JsonConverter's forms: dates and times are numbers, bytes are base64."""
    if schema.name == DECIMAL and rules.numeric_decimals:
        return _decimal(schema, path)
    return _STRING if schema.type is Type.BYTES else HiveType(_PLAIN[schema.type])


def _decimal(schema: Schema, path: str) -> HiveType:
    """As many digits as Hive has: what the schema says is often AvroData's 64, whatever the values are."""
    scale = max(0, int(schema.parameters.get(DECIMAL_SCALE, "0")))
    if scale > MAX_PRECISION:
        raise SchemaError(
            f"The field {path} is a Decimal with {scale} decimal places; Hive supports {MAX_PRECISION} digits in all.",
            code="hive.schema",
            suggestion="Convert it to text with a transformation (Cast), or set hive.integration=false.",
        )
    return decimal_of(MAX_PRECISION, scale)

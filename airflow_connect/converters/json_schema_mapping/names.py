"""Keywords of the mapping between JSON Schema and Connect schemas, and how its sum types are recognised.

Source: io.confluent.connect.json.JsonSchemaData and JsonSchemaDataConfig (8.1).
"""

from __future__ import annotations

from typing import NamedTuple

from airflow_connect.api.schema import Schema, Type

CONNECT_TYPE = "connect.type"
CONNECT_VERSION = "connect.version"
CONNECT_PARAMETERS = "connect.parameters"
CONNECT_INDEX = "connect.index"
NAMESPACE = "io.confluent.connect.json"
ENUM = f"{NAMESPACE}.Enum"
ONE_OF = f"{NAMESPACE}.OneOf"
GENERAL_ENUM = "org.apache.kafka.connect.data.Enum"
GENERAL_UNION = "org.apache.kafka.connect.data.Union"
GENERAL_UNION_NAME = "connect_union_"
GENERAL_UNION_FIELD = "connect_union_field_"
ENUM_NULL = "<NULL>"
KEY, VALUE = "key", "value"


class JsonSchemaOptions(NamedTuple):
    """The keys of JsonSchemaConverter that change the mapping, by the same names.

    Attributes:
        additional_properties: `object.additional.properties`.
        optional_for_nonrequired: `use.optional.for.nonrequired`.
        generalized_sum_types: `generalized.sum.type.support`.
        ignore_default_for_nullables: `ignore.default.for.nullables`.
        numeric_decimals: `decimal.format` is NUMERIC.
    """

    additional_properties: bool = True
    optional_for_nonrequired: bool = False
    generalized_sum_types: bool = False
    ignore_default_for_nullables: bool = False
    numeric_decimals: bool = False


def is_union(schema: Schema) -> bool:
    """Whether a STRUCT represents one value of several possible types; one of its fields is set."""
    return schema.type is Type.STRUCT and (schema.name == ONE_OF or GENERAL_UNION in schema.parameters)


def has_object_form(schema: Schema) -> bool:
    """Whether a MAP is a JSON object; maps with other keys are arrays of `{"key":K,"value":V}`."""
    keys = schema.key_schema
    return keys is not None and keys.type is Type.STRING and not keys.optional

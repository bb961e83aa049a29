"""Names, properties and settings of Confluent's AvroData.

Source: io.confluent.connect.avro.AvroData and AvroDataConfig (8.1).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote_plus

from airflow_connect.api.schema import Schema, Type

NAMESPACE = "io.confluent.connect.avro"
DEFAULT_NAME = f"{NAMESPACE}.ConnectDefault"
MAP_ENTRY = "MapEntry"
ANYTHING = f"{NAMESPACE}.Anything"
UNION = f"{NAMESPACE}.Union"
ENUM_PARAMETER = f"{NAMESPACE}.Enum"
RECORD_DOC_PARAMETER = f"{NAMESPACE}.record.doc"
FIELD_DOC_PARAMETER = f"{NAMESPACE}.field.doc."
ENUM_DOC_PARAMETER = f"{NAMESPACE}.enum.doc."
ENUM_DEFAULT_PARAMETER = f"{NAMESPACE}.enum.default."
FIELD_DEFAULT_PARAMETER = f"{NAMESPACE}.field.default"
SHORT_RECORD_DOC_PARAMETER = "connect.record.doc"
SHORT_ENUM_DOC_PARAMETER = "connect.enum.doc"
GENERALIZED_UNION = "org.apache.kafka.connect.data.Union"
GENERALIZED_ENUM = "org.apache.kafka.connect.data.Enum"
GENERALIZED_UNION_NAME = "connect_union_"
PRECISION_PARAMETER = "connect.decimal.precision"
FIXED_SIZE_PARAMETER = "connect.fixed.size"
DEFAULT_PRECISION = 64
AVRO_PROPERTY = "avro"
"""Parameters with this prefix are properties of the Avro schema, such as `avro.java.string`."""

AVRO_TYPES: dict[Type, str] = {
    Type.INT8: "int",
    Type.INT16: "int",
    Type.INT32: "int",
    Type.INT64: "long",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "boolean",
    Type.STRING: "string",
    Type.BYTES: "bytes",
    Type.ARRAY: "array",
    Type.MAP: "map",
}
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]")


@dataclass(frozen=True, slots=True)
class AvroSettings:
    """How Connect and Avro schemas are mapped; one attribute for each configuration key.

    Attributes:
        enhanced_schema: `enhanced.avro.schema.support`: enums are Avro enums, branches of a union have full names.
        connect_meta_data: `connect.meta.data`: the `connect.*` properties are written and read.
        allow_optional_map_keys: `allow.optional.map.keys`: maps with optional string keys are Avro maps.
        discard_type_doc_default: `discard.type.doc.default`: only the doc of fields is kept, as the schema's doc.
        scrub_invalid_names: `scrub.invalid.names`: characters that Avro does not allow in names become `_`.
        generalized_sum_types: `generalized.sum.type.support`: unions and enums as in the JSON Schema and Protobuf
            converters.
        flatten_singleton_union: `flatten.singleton.union`: a union of one type is that type.
        ignore_default_for_nullables: `ignore.default.for.nullables`: null stays null where a default exists.
    """

    enhanced_schema: bool = False
    connect_meta_data: bool = True
    allow_optional_map_keys: bool = False
    discard_type_doc_default: bool = False
    scrub_invalid_names: bool = False
    generalized_sum_types: bool = False
    flatten_singleton_union: bool = True
    ignore_default_for_nullables: bool = False

    @property
    def enum_parameter(self) -> str:
        """The parameter that holds the name of an enum; followed by a dot and a symbol, the symbols."""
        return GENERALIZED_ENUM if self.generalized_sum_types else ENUM_PARAMETER

    def scrubbed(self, name: str) -> str:
        """A name as it is written."""
        return scrub(name) if self.scrub_invalid_names else name

    def scrubbed_full(self, name: str) -> str:
        """A name with namespace as it is written."""
        return ".".join(map(scrub, name.split("."))) if self.scrub_invalid_names else name


def generalized_branch(index: int) -> str:
    """The field of the `index`-th branch under `generalized.sum.type.support`."""
    return f"{GENERALIZED_UNION_NAME}field_{index}"


def is_union(schema: Schema) -> bool:
    """Whether a STRUCT represents an Avro union of several types."""
    return schema.type is Type.STRUCT and (schema.name == UNION or GENERALIZED_UNION in schema.parameters)


def is_enum(schema: Schema) -> bool:
    """Whether a STRING was an enum."""
    return schema.type is Type.STRING and not {GENERALIZED_ENUM, ENUM_PARAMETER}.isdisjoint(schema.parameters)


def is_fixed(schema: Schema) -> bool:
    """Whether BYTES were a fixed type, which needs a name."""
    return schema.type is Type.BYTES and schema.name is not None and FIXED_SIZE_PARAMETER in schema.parameters


def scrub(name: str) -> str:
    """A valid Avro name: URL-encoded, remaining invalid characters become `_`, and a leading digit gets an `x`."""
    if not name or (not _NOT_IN_NAMES.search(name) and not name[0].isdigit()):
        return name
    # As java.net.URLEncoder, which leaves `*` and escapes `~`.
    encoded = quote_plus(name, safe="*").replace("~", "%7E")
    return _NOT_IN_NAMES.sub("_", f"x{encoded}" if encoded[0].isdigit() else encoded)

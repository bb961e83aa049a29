"""Words of the mapping between Protobuf and Connect schemas.

Source: io.confluent.connect.protobuf.ProtobufData and ProtobufDataConfig (8.1).
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote_plus

from airflow_connect.api.schema import Schema, Type
from airflow_connect.converters.unread import Unread

NAMESPACE = "io.confluent.connect.protobuf"
ENUM = f"{NAMESPACE}.Enum"
UNION = f"{NAMESPACE}.Union"
UNION_PREFIX = f"{UNION}."
TAG = f"{NAMESPACE}.Tag"
TYPE = f"{NAMESPACE}.Type"
GENERAL_ENUM = "org.apache.kafka.connect.data.Enum"
GENERAL_UNION = "org.apache.kafka.connect.data.Union"
CONNECT_TYPE = "connect.type"
PRECISION, SCALE = "precision", "scale"
CONNECT_PRECISION = "connect.decimal.precision"
DEFAULT_NAME = "ConnectDefault"
ENTRY = "Entry"
DECIMAL_MESSAGE, DATE_MESSAGE = "confluent.type.Decimal", "google.type.Date"
TIME_MESSAGE, TIMESTAMP_MESSAGE = "google.type.TimeOfDay", "google.protobuf.Timestamp"
JSON_MESSAGES = ("google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue")
"""Messages that hold JSON: they contain themselves, and are read as text."""
WRAPPERS = {
    "google.protobuf.DoubleValue": Type.FLOAT64,
    "google.protobuf.FloatValue": Type.FLOAT32,
    "google.protobuf.Int64Value": Type.INT64,
    "google.protobuf.UInt64Value": Type.INT64,
    "google.protobuf.Int32Value": Type.INT32,
    "google.protobuf.UInt32Value": Type.INT64,
    "google.protobuf.BoolValue": Type.BOOLEAN,
    "google.protobuf.StringValue": Type.STRING,
    "google.protobuf.BytesValue": Type.BYTES,
}
_VALID_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


class ProtobufOptions(NamedTuple):
    """The keys of ProtobufConverter that change the mapping.

    Attributes:
        generalized_sum_types: `generalized.sum.type.support`.
        full_names: `enhanced.protobuf.schema.support`: names of schemas hold the package.
        scrub_names: `scrub.invalid.names`.
        int_for_enums: `int.for.enums`.
        optional_for_nullables: `optional.for.nullables`.
        optional_for_proto2: `optional.for.proto2`.
        wrapper_for_nullables: `wrapper.for.nullables`.
        wrapper_for_raw_primitives: `wrapper.for.raw.primitives`.
        struct_for_nulls: `generate.struct.for.nulls`.
        index_for_unions: `generate.index.for.unions`.
        flatten_unions: `flatten.unions`.
        unread: when messages are read: gets the fields that their type does not have; None: they are not looked for.
    """

    generalized_sum_types: bool = False
    full_names: bool = False
    scrub_names: bool = False
    int_for_enums: bool = False
    optional_for_nullables: bool = False
    optional_for_proto2: bool = True
    wrapper_for_nullables: bool = False
    wrapper_for_raw_primitives: bool = True
    struct_for_nulls: bool = False
    index_for_unions: bool = True
    flatten_unions: bool = False
    unread: Unread | None = None


def is_union(schema: Schema) -> bool:
    """Whether a STRUCT represents a oneof."""
    return schema.type is Type.STRUCT and ((schema.name or "").startswith(UNION) or GENERAL_UNION in schema.parameters)


def enum_word(schema: Schema) -> str:
    """The parameter that holds the name of an enum, "" for what is not an enum."""
    return next((word for word in (GENERAL_ENUM, ENUM) if word in schema.parameters), "")


def scrubbed(name: str) -> str:
    """A name with valid characters only, as Confluent makes it: URL encoding, then `_` for all that is left."""
    if not name or _VALID_NAME.fullmatch(name):
        return name
    encoded = quote_plus(name, safe="*").replace("~", "%7E")
    if encoded[0] in "0123456789_":
        encoded = f"x{encoded}"
    return re.sub(r"[^A-Za-z0-9_]", "_", encoded)


def map_field(entry: str) -> str:
    """Name of a map schema from the name of its entry message: `LabelNamesEntry` is `label_names`."""
    if not entry.endswith(ENTRY):
        return entry
    return re.sub(r"(?<!^)(?=[A-Z])", "_", entry.removesuffix(ENTRY)).lower()


def map_entry(name: str) -> str:
    """Name of the entry message from the name of a map schema: `label_names` is `LabelNamesEntry`."""
    if "_" in name:
        name = "".join(part[:1].upper() + part[1:].lower() for part in name.split("_"))
    return name + ENTRY

"""Connect schemas as Avro schemas, and Connect values as values of them.

Names, properties and representations are those of Confluent's AvroData, so that files read back by its
converters give the same Connect schema: `connect.*` properties, `ConnectDefault` for records without a name,
`MapEntry` records for maps whose keys are not strings, precision 64 for decimals.
Source: io.confluent.connect.avro.AvroData (behaviour); Avro specification 1.12, "Names" and "Logical Types".
"""

from __future__ import annotations

import dataclasses
import decimal
import re
from dataclasses import dataclass, field
from typing import Any

from airflow_connect.api.errors import SchemaError
from airflow_connect.api.schema import DATE, DECIMAL, DECIMAL_SCALE, TIME, TIMESTAMP, Schema, Type
from airflow_connect.formats.value_transform import Transform, has_string_keys, make_transform

NAMESPACE = "io.confluent.connect.avro"
DEFAULT_PRECISION = 64
PRECISION_PARAMETER = "connect.decimal.precision"
FIXED_SIZE_PARAMETER = "connect.fixed.size"
_ENUM_PARAMETER = f"{NAMESPACE}.Enum"
_RECORD_DOC_PARAMETER = f"{NAMESPACE}.record.doc"
_FIELD_DOC_PARAMETER = f"{NAMESPACE}.field.doc."

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PRIMITIVES = {
    Type.INT8: "int",
    Type.INT16: "int",
    Type.INT32: "int",
    Type.INT64: "long",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "boolean",
    Type.STRING: "string",
    Type.BYTES: "bytes",
}
_LOGICAL = {DATE: "date", TIME: "time-millis", TIMESTAMP: "timestamp-millis"}
_EXACT = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)

AvroType = Any
"""An Avro schema as JSON: str, list or dict."""


@dataclass(frozen=True, slots=True)
class AvroMapping:
    """How Connect schemas become Avro.

    Attributes:
        enhanced_schema: `enhanced.avro.schema.support`: enums are Avro enums, not strings.
        connect_meta_data: `connect.meta.data`: add the `connect.*` properties.
        allow_optional_map_keys: `allow.optional.map.keys`: maps with optional string keys are Avro maps.
    """

    enhanced_schema: bool = True
    connect_meta_data: bool = True
    allow_optional_map_keys: bool = False

    def avro_schema(self, schema: Schema) -> AvroType:
        """The Avro schema of `schema`.

        Raises:
            SchemaError: a name that Avro does not allow, or two different records of one name.
        """
        return _SchemaBuilder(self).build(schema, "")

    def transform(self, schema: Schema) -> Transform | None:
        """The function from a Connect value of `schema` to the Avro value, or None where they are equal."""
        return make_transform(schema, self.is_avro_map, _decimal_transform)

    def is_avro_map(self, schema: Schema) -> bool:
        """Whether a MAP schema is a map in Avro, whose keys are always strings."""
        return has_string_keys(schema, self.allow_optional_map_keys)

    def default(self, schema: Schema, value: Any) -> Any:
        """A Connect default as JSON in Avro's form (bytes as Latin-1 text)."""
        if value is None:
            return None
        if schema.type is Type.BYTES:
            data = unscaled_bytes(value, _scale(schema)) if schema.name == DECIMAL else value
            return bytes(data).decode("latin-1")
        if schema.type is Type.ARRAY and schema.value_schema:
            return [self.default(schema.value_schema, item) for item in value]
        if schema.type is Type.STRUCT:
            return {f.name: self.default(f.schema, value.get(f.name)) for f in schema.fields}
        if schema.type is Type.MAP and schema.key_schema and schema.value_schema:
            pairs = [
                (self.default(schema.key_schema, k), self.default(schema.value_schema, v)) for k, v in value.items()
            ]
            return dict(pairs) if self.is_avro_map(schema) else [{"key": k, "value": v} for k, v in pairs]
        return value


def unscaled_bytes(value: decimal.Decimal, scale: int) -> bytes:
    """A Decimal as Java's `BigDecimal.unscaledValue().toByteArray()`: shortest big-endian two's complement.

    Raises:
        ValueError: not a finite number, or more digits after the point than `scale`.
    """
    scaled = value.scaleb(scale, _EXACT)
    number = int(scaled)
    if number != scaled:
        raise ValueError("more digits after the point than the schema's scale")
    return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)


def _scale(schema: Schema) -> int:
    return int(schema.parameters.get(DECIMAL_SCALE, "0"))


@dataclass(slots=True)
class _SchemaBuilder:
    """Builds one Avro schema; remembers named types, because Avro defines each once and then refers to it."""

    mapping: AvroMapping
    anonymous_records: int = 0
    names: dict[str, Schema] = field(default_factory=dict)
    anonymous_names: dict[Schema, str] = field(default_factory=dict)

    def build(self, schema: Schema, path: str) -> AvroType:
        built = self._without_null(schema, path)
        if not schema.optional:
            return built
        # Avro wants a default to fit the first branch.
        return [built, "null"] if schema.default is not None else ["null", built]

    def _without_null(self, schema: Schema, path: str) -> AvroType:
        if schema.type is Type.STRUCT:
            return self._record(schema, path)
        if schema.type is Type.ARRAY and schema.value_schema:
            items = self.build(schema.value_schema, f"{path}[]")
            return self._with_properties(schema, {"type": "array", "items": items})
        if schema.type is Type.MAP and schema.key_schema and schema.value_schema:
            return self._map(schema, path)
        if schema.type is Type.STRING and self.mapping.enhanced_schema and _ENUM_PARAMETER in schema.parameters:
            return self._enum(schema, path)
        if FIXED_SIZE_PARAMETER in schema.parameters and schema.type is Type.BYTES:
            return self._fixed(schema, path)
        primitive: dict[str, Any] = {"type": _PRIMITIVES[schema.type]}
        if self.mapping.connect_meta_data and schema.type in (Type.INT8, Type.INT16):
            primitive["connect.type"] = schema.type.value
        built = self._with_properties(schema, primitive)
        return built["type"] if len(built) == 1 else built

    def _record(self, schema: Schema, path: str) -> AvroType:
        name, known = self._claim(schema.name, schema, path)
        if known:
            return name
        fields = []
        for member in schema.fields:
            inner = f"{path}.{member.name}".lstrip(".")
            _check_name(member.name, f"the field {inner}")
            fields.append(self._field(schema, member.name, member.schema, inner))
        record = {"type": "record", **_split(name), "fields": fields}
        if _RECORD_DOC_PARAMETER in schema.parameters:
            record["doc"] = schema.parameters[_RECORD_DOC_PARAMETER]
        return self._with_properties(schema, record)

    def _field(self, parent: Schema, name: str, schema: Schema, path: str) -> dict[str, Any]:
        made: dict[str, Any] = {"name": name, "type": self.build(schema, path)}
        if schema.default is not None:
            made["default"] = self.mapping.default(schema, schema.default)
        elif schema.optional:
            made["default"] = None
        doc = parent.parameters.get(_FIELD_DOC_PARAMETER + name)
        return made if doc is None else {**made, "doc": doc}

    def _map(self, schema: Schema, path: str) -> AvroType:
        assert schema.key_schema and schema.value_schema
        if self.mapping.is_avro_map(schema):
            return self._with_properties(
                schema, {"type": "map", "values": self.build(schema.value_schema, f"{path}{{}}")}
            )
        wanted = schema.name or f"{NAMESPACE}.MapEntry"
        if schema.name is None and self.names.get(wanted, _plain(schema)) != _plain(schema):
            # A second, different map without a name: Confluent fails here with "Can't redefine".
            wanted = f"{wanted}{len(self.names) + 1}"
        name, known = self._claim(wanted, schema, path)
        if known:
            return self._with_properties(schema, {"type": "array", "items": name})
        fields = [
            self._field(schema, "key", schema.key_schema, f"{path}.key"),
            self._field(schema, "value", schema.value_schema, f"{path}.value"),
        ]
        entry = {"type": "record", **_split(name), "fields": fields}
        if name != f"{NAMESPACE}.MapEntry":
            entry["connect.internal.type"] = "MapEntry"
        return self._with_properties(schema, {"type": "array", "items": entry})

    def _enum(self, schema: Schema, path: str) -> AvroType:
        name, known = self._claim(schema.parameters[_ENUM_PARAMETER], schema, path)
        if known:
            return name
        prefix = _ENUM_PARAMETER + "."
        symbols = [key.removeprefix(prefix) for key in schema.parameters if key.startswith(prefix)]
        for symbol in symbols:
            _check_name(symbol, f"the enum symbol {symbol!r} of {path or 'the value'}")
        return self._with_properties(schema, {"type": "enum", **_split(name), "symbols": symbols})

    def _fixed(self, schema: Schema, path: str) -> AvroType:
        name, known = self._claim(schema.name, schema, path)
        if known:
            return name
        size = int(schema.parameters[FIXED_SIZE_PARAMETER])
        return self._with_properties(schema, {"type": "fixed", **_split(name), "size": size})

    def _claim(self, wanted: str | None, schema: Schema, path: str) -> tuple[str, bool]:
        """The full name for a named type, and whether it is already defined."""
        plain = _plain(schema)
        name = wanted or self.anonymous_names.get(plain, "")
        if not name:
            self.anonymous_records += 1
            number = self.anonymous_records
            name = f"{NAMESPACE}.ConnectDefault{number if number > 1 else ''}"
            self.anonymous_names[plain] = name
        for part in name.split("."):
            _check_name(part, f"the schema name {name} of {path or 'the value'}")
        known = self.names.setdefault(name, plain)
        if known == plain:
            return name, known is not plain
        raise SchemaError(
            f"The schema name {name} stands for two different schemas in one record, the second at {path}.",
            code="data.schema_name",
            suggestion="Give the schemas different names: Avro allows one definition of a name per file.",
        )

    def _with_properties(self, schema: Schema, built: dict[str, Any]) -> dict[str, Any]:
        if schema.name == DECIMAL:
            scale, precision = (
                _scale(schema),
                int(schema.parameters.get(PRECISION_PARAMETER, DEFAULT_PRECISION)),
            )
            built |= {"scale": scale, "precision": precision}
            # Avro forbids scales outside [0, precision]: such bytes carry no logical type, only properties.
            if 0 <= scale <= precision:
                built["logicalType"] = "decimal"
        elif schema.name in _LOGICAL:
            built["logicalType"] = _LOGICAL[schema.name]
        if not self.mapping.connect_meta_data:
            return built
        properties = {
            "connect.doc": schema.doc,
            "connect.version": schema.version,
            "connect.parameters": dict(schema.parameters) or None,
            "connect.default": self.mapping.default(schema, schema.default),
            "connect.name": schema.name,
        }
        return built | {key: value for key, value in properties.items() if value is not None}


def _plain(schema: Schema) -> Schema:
    """What defines a named type: not whether one use of it is optional or has a default."""
    return dataclasses.replace(schema, optional=False, default=None)


def _split(name: str) -> dict[str, str]:
    namespace, _, short = name.rpartition(".")
    return {"name": short, "namespace": namespace} if namespace else {"name": short}


def _check_name(name: str, where: str) -> None:
    if not _NAME.fullmatch(name):
        raise SchemaError(
            f"Avro does not allow the name of {where}: {name!r} must be letters, digits and underscores, "
            "and must not begin with a digit.",
            code="data.schema_name",
            suggestion="Rename it with a transformation (ReplaceField, SetSchemaMetadata).",
        )


def _decimal_transform(schema: Schema) -> Transform:
    scale, size = _scale(schema), int(schema.parameters.get(FIXED_SIZE_PARAMETER, "0"))

    def to_bytes(value: decimal.Decimal) -> bytes:
        data = unscaled_bytes(value, scale)
        return data.rjust(size, b"\xff" if data[0] > 0x7F else b"\0")

    return to_bytes

"""Connect schemas as Avro schemas, and Connect values as values of them.

Names, properties and representations are those of Confluent's AvroData, so its converters read the same Connect schema
back: `connect.*` properties, `ConnectDefault` for records without a name, `MapEntry` records for maps with keys that
are not strings, precision 64 for decimals.
Source: io.confluent.connect.avro.AvroData (behaviour); Avro specification 1.12, "Names" and "Logical Types".
"""

from __future__ import annotations

import dataclasses
import decimal
import re
from dataclasses import dataclass, field
from typing import Any

from airflow_connect.api.schema import DATE, DECIMAL, DECIMAL_SCALE, TIME, TIMESTAMP, Schema, Type
from airflow_connect.converters.avro.names import (
    AVRO_PROPERTY,
    AVRO_TYPES,
    DEFAULT_NAME,
    DEFAULT_PRECISION,
    ENUM_DEFAULT_PARAMETER,
    ENUM_DOC_PARAMETER,
    FIELD_DEFAULT_PARAMETER,
    FIELD_DOC_PARAMETER,
    FIXED_SIZE_PARAMETER,
    MAP_ENTRY,
    NAMESPACE,
    PRECISION_PARAMETER,
    RECORD_DOC_PARAMETER,
    SHORT_ENUM_DOC_PARAMETER,
    SHORT_RECORD_DOC_PARAMETER,
    AvroSettings,
    is_enum,
    is_fixed,
    is_union,
)
from airflow_connect.converters.avro.parsing import AvroType
from airflow_connect.converters.value_transform import ChangeRules, Transform, has_string_keys, make_transform
from airflow_connect.errors import SchemaError
from airflow_connect.java import numbers as java_numbers
from airflow_connect.java.numbers import MAX_DECIMAL_BYTES, MAX_DECIMAL_DIGITS

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LOGICAL = {DATE: "date", TIME: "time-millis", TIMESTAMP: "timestamp-millis"}
_EXACT = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


@dataclass(frozen=True, slots=True)
class AvroMapping:
    """Maps Connect schemas to Avro."""

    settings: AvroSettings

    def avro_schema(self, schema: Schema) -> AvroType:
        """The Avro schema of `schema`.

        Raises:
            SchemaError: a name that Avro does not allow, or two different records with one name.
        """
        return _SchemaBuilder(self).build(schema, "")

    def transform(self, schema: Schema) -> Transform | None:
        """The function from a Connect value of `schema` to the Avro value, or None if they are equal.

        Values of unions of several types become (branch, value), as fastavro expects them.
        """
        rules = ChangeRules(
            stays_map=self.is_avro_map,
            decimal=_decimal_transform,
            union=self._branches,
            field_name=self.settings.scrubbed,
            null_is_default=not self.settings.ignore_default_for_nullables,
        )
        return make_transform(schema, rules)

    def is_avro_map(self, schema: Schema) -> bool:
        """Whether a MAP schema is a map in Avro, whose keys are always strings."""
        return has_string_keys(schema, self.settings.allow_optional_map_keys)

    def branch(self, schema: Schema) -> str:
        """Avro's name for the branch of a union: the full name of a named type, else the type."""
        settings = self.settings
        if schema.type is Type.STRUCT or is_fixed(schema):
            return settings.scrubbed_full(schema.name or DEFAULT_NAME)
        if is_enum(schema) and (settings.enhanced_schema or settings.generalized_sum_types):
            return schema.parameters.get(settings.enum_parameter) or schema.name or DEFAULT_NAME
        if schema.type is Type.MAP and not self.is_avro_map(schema):
            return "array"
        return AVRO_TYPES[schema.type]

    def _branches(self, schema: Schema) -> dict[str, str] | None:
        return {f.name: self.branch(f.schema) for f in schema.fields} if is_union(schema) else None

    def default(self, schema: Schema, value: Any) -> Any:
        """A Connect default as JSON in Avro's form (bytes as Latin-1 text)."""
        if value is None:
            return None
        if schema.type is Type.BYTES:
            data = unscaled_bytes(value, _scale(schema)) if schema.name == DECIMAL else value
            return bytes(data).decode("latin-1")
        if schema.type is Type.ARRAY and schema.value_schema:
            return [self.default(schema.value_schema, item) for item in value]
        if is_union(schema):
            # A default belongs to the first branch.
            first = schema.fields[0]
            return self.default(first.schema, value.get(first.name))
        if schema.type is Type.STRUCT:
            name = self.settings.scrubbed
            return {name(f.name): self.default(f.schema, value.get(f.name)) for f in schema.fields}
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
    if not value.is_finite():
        raise ValueError("not a finite number")
    if not value.is_zero() and value.adjusted() + scale >= MAX_DECIMAL_DIGITS:
        raise ValueError(f"more than {MAX_DECIMAL_DIGITS} digits")
    scaled = value.scaleb(scale, _EXACT)
    number = int(scaled)
    if number != scaled:
        raise ValueError("more digits after the point than the schema's scale")
    return java_numbers.unscaled_bytes(number)


def _scale(schema: Schema) -> int:
    return java_numbers.integer_parameter(schema.parameters.get(DECIMAL_SCALE, "0"))


def _precision(schema: Schema) -> int:
    given = schema.parameters.get(PRECISION_PARAMETER)
    return java_numbers.integer_parameter(given, PRECISION_PARAMETER) if given else DEFAULT_PRECISION


def decimal_digits(schema: Schema) -> int | None:
    """Maximum number of digits of a Decimal in Avro: its precision. None: it has no logical type, and no maximum.

    Avro forbids scales outside [0, precision], and some readers refuse the file. Confluent writes the logical type even
    then; Connect's own properties give its converters the same information.
    """
    precision = _precision(schema)
    return precision if 0 <= _scale(schema) <= precision else None


@dataclass(slots=True)
class _SchemaBuilder:
    """Builds one Avro schema; tracks named types, because Avro defines each once and then refers to it."""

    mapping: AvroMapping
    anonymous_records: int = 0
    names: dict[str, Schema] = field(default_factory=dict)
    anonymous_names: dict[Schema, str] = field(default_factory=dict)

    @property
    def settings(self) -> AvroSettings:
        """The settings."""
        return self.mapping.settings

    def build(self, schema: Schema, path: str) -> AvroType:
        if is_union(schema):
            return self._union(schema, path)
        built = self._without_null(schema, path)
        if not schema.optional:
            return built
        # In Avro, a default must fit the first branch.
        return [built, "null"] if schema.default is not None else ["null", built]

    def _union(self, schema: Schema, path: str) -> AvroType:
        branches = [self._without_null(f.schema, f"{path}.{f.name}".lstrip(".")) for f in schema.fields]
        return ["null", *branches] if schema.optional else branches

    def _without_null(self, schema: Schema, path: str) -> AvroType:
        if schema.type is Type.STRUCT:
            return self._record(schema, path)
        if schema.type is Type.ARRAY and schema.value_schema:
            items = self.build(schema.value_schema, f"{path}[]")
            return self._with_properties(schema, {"type": "array", "items": items})
        if schema.type is Type.MAP and schema.key_schema and schema.value_schema:
            return self._map(schema, path)
        if is_enum(schema) and (self.settings.enhanced_schema or self.settings.generalized_sum_types):
            return self._enum(schema, path)
        if is_fixed(schema):
            return self._fixed(schema, path)
        primitive: dict[str, Any] = {"type": AVRO_TYPES[schema.type]}
        if self.settings.connect_meta_data and schema.type in (Type.INT8, Type.INT16):
            primitive["connect.type"] = schema.type.value
        built = self._with_properties(schema, primitive)
        return built["type"] if len(built) == 1 else built

    def _record(self, schema: Schema, path: str) -> AvroType:
        wanted = schema.name and self.settings.scrubbed_full(schema.name)
        name, known = self._claim(wanted, schema, path)
        if known:
            return name
        fields = []
        for member in schema.fields:
            inner = f"{path}.{member.name}".lstrip(".")
            written = self.settings.scrubbed(member.name)
            _check_name(written, f"the field {inner}")
            doc = None if self.settings.discard_type_doc_default else _field_doc(schema, member.name)
            fields.append(self._field(written, member.schema, inner, doc))
        _check_distinct([field["name"] for field in fields], path)
        record = {"type": "record", **_split(name), "fields": fields}
        short = self.settings.discard_type_doc_default
        doc = schema.parameters.get(SHORT_RECORD_DOC_PARAMETER if short else RECORD_DOC_PARAMETER)
        if doc is not None:
            record["doc"] = doc
        return self._with_properties(schema, record)

    def _field(self, name: str, schema: Schema, path: str, doc: str | None = None) -> dict[str, Any]:
        made: dict[str, Any] = {"name": name, "type": self.build(schema, path)}
        if self.settings.discard_type_doc_default:
            doc = schema.doc
        if doc is not None:
            made["doc"] = doc
        if schema.default is not None:
            made["default"] = self.mapping.default(schema, schema.default)
        elif schema.optional:
            made["default"] = None
        return made

    def _map(self, schema: Schema, path: str) -> AvroType:
        assert schema.key_schema and schema.value_schema
        if self.mapping.is_avro_map(schema):
            return self._with_properties(
                schema, {"type": "map", "values": self.build(schema.value_schema, f"{path}{{}}")}
            )
        wanted = self.settings.scrubbed_full(schema.name or f"{NAMESPACE}.{MAP_ENTRY}")
        if schema.name is None and self.names.get(wanted, _plain(schema)) != _plain(schema):
            # A second, different map without a name: Confluent fails here with "Can't redefine".
            wanted = f"{wanted}{len(self.names) + 1}"
        name, known = self._claim(wanted, schema, path)
        if known:
            return self._with_properties(schema, {"type": "array", "items": name})
        fields = [
            self._field("key", schema.key_schema, f"{path}.key"),
            self._field("value", schema.value_schema, f"{path}.value"),
        ]
        entry = {"type": "record", **_split(name), "fields": fields}
        if name != f"{NAMESPACE}.{MAP_ENTRY}":
            entry["connect.internal.type"] = MAP_ENTRY
        return self._with_properties(schema, {"type": "array", "items": entry})

    def _enum(self, schema: Schema, path: str) -> AvroType:
        parameter = self.settings.enum_parameter
        name, known = self._claim(schema.parameters.get(parameter) or schema.name, schema, path)
        if known:
            return name
        prefix = f"{parameter}."
        symbols = [key.removeprefix(prefix) for key in schema.parameters if key.startswith(prefix)]
        for symbol in symbols:
            _check_name(symbol, f"the enum symbol {symbol!r} of {path or 'the value'}")
        made: dict[str, Any] = {"type": "enum", **_split(name), "symbols": symbols}
        short_name = (schema.name or "").rpartition(".")[2]
        if self.settings.discard_type_doc_default:
            extra = {"doc": schema.parameters.get(SHORT_ENUM_DOC_PARAMETER)}
        else:
            extra = {
                "doc": schema.parameters.get(ENUM_DOC_PARAMETER + short_name),
                "default": schema.parameters.get(ENUM_DEFAULT_PARAMETER + short_name),
            }
        made |= {key: value for key, value in extra.items() if value is not None}
        return self._with_properties(schema, made)

    def _fixed(self, schema: Schema, path: str) -> AvroType:
        name, known = self._claim(schema.name and self.settings.scrubbed_full(schema.name), schema, path)
        if known:
            return name
        size = java_numbers.integer_parameter(schema.parameters[FIXED_SIZE_PARAMETER], FIXED_SIZE_PARAMETER)
        return self._with_properties(schema, {"type": "fixed", **_split(name), "size": size})

    def _claim(self, wanted: str | None, schema: Schema, path: str) -> tuple[str, bool]:
        """The full name for a named type, and whether it is already defined."""
        plain = _plain(schema)
        name = wanted or self.anonymous_names.get(plain, "")
        if not name:
            self.anonymous_records += 1
            number = self.anonymous_records
            name = f"{DEFAULT_NAME}{number if number > 1 else ''}"
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
            built |= {"scale": _scale(schema), "precision": _precision(schema)}
            if decimal_digits(schema) is not None:
                built["logicalType"] = "decimal"
        elif schema.name in _LOGICAL:
            built["logicalType"] = _LOGICAL[schema.name]
        if self.settings.connect_meta_data:
            built |= {key: value for key, value in self._connect_properties(schema).items() if value is not None}
        return built | {key: value for key, value in schema.parameters.items() if key.startswith(AVRO_PROPERTY)}

    def _connect_properties(self, schema: Schema) -> dict[str, Any]:
        keeps_all = self.settings.discard_type_doc_default
        parameters = {k: v for k, v in schema.parameters.items() if keeps_all or k != FIELD_DEFAULT_PARAMETER}
        # A default from an Avro field is only written back to that field.
        is_own_default = keeps_all or FIELD_DEFAULT_PARAMETER not in schema.parameters
        return {
            "connect.doc": schema.doc,
            "connect.version": schema.version,
            "connect.parameters": parameters or None,
            "connect.default": self.mapping.default(schema, schema.default) if is_own_default else None,
            "connect.name": schema.name,
        }


def _field_doc(record: Schema, name: str) -> str | None:
    return record.parameters.get(FIELD_DOC_PARAMETER + name)


def _plain(schema: Schema) -> Schema:
    """The definition of a named type, without whether a use of it is optional or has a default."""
    return dataclasses.replace(schema, optional=False, default=None)


def _split(name: str) -> dict[str, str]:
    namespace, _, short = name.rpartition(".")
    return {"name": short, "namespace": namespace} if namespace else {"name": short}


def _check_distinct(written: list[str], path: str) -> None:
    if len(set(written)) < len(written):
        twice = next(name for name in written if written.count(name) > 1)
        raise SchemaError(
            f"Two fields of {path or 'the value'} would have the name {twice} in Avro, and one of them would be lost.",
            code="data.field_twice",
            suggestion="scrub.invalid.names=true replaces several characters by an underscore: rename one of the "
            "fields before, with ReplaceField.",
        )


def _check_name(name: str, where: str) -> None:
    if not _NAME.fullmatch(name):
        raise SchemaError(
            f"Avro does not allow the name of {where}: {name!r} must be letters, digits and underscores, "
            "and must not begin with a digit.",
            code="data.schema_name",
            suggestion="Rename it with a transformation (ReplaceField, SetSchemaMetadata).",
        )


def _decimal_transform(schema: Schema) -> Transform:
    scale, digits = _scale(schema), decimal_digits(schema)
    precision = MAX_DECIMAL_DIGITS if digits is None else digits
    size = java_numbers.integer_parameter(schema.parameters.get(FIXED_SIZE_PARAMETER, "0"), FIXED_SIZE_PARAMETER)
    if not 0 <= size <= MAX_DECIMAL_BYTES:
        raise SchemaError(
            f"A Decimal in {size} bytes (schema parameter {FIXED_SIZE_PARAMETER}) is too large: at most"
            f" {MAX_DECIMAL_BYTES} bytes are written.",
            code="data.decimal",
            suggestion="Use a smaller fixed type, or bytes.",
        )

    def to_bytes(value: decimal.Decimal) -> bytes:
        data = unscaled_bytes(value, scale)
        # Readers round such a value to the precision, or refuse the file. `adjusted`: exponent of its first digit.
        if value and value.adjusted() + scale >= precision:
            raise ValueError(f"more digits than the precision {precision} allows")
        return data.rjust(size, b"\xff" if data[0] > 0x7F else b"\0")

    return to_bytes

"""The JSON Schema (draft 2020-12) of a configuration, from the definition that also validates it.

For editors and external checks: it accepts everything that `ConfigDef.validate` accepts, and refuses what is wrong
with a single key. Only `validate` checks rules between keys and runs validators. Values may be JSON numbers and
booleans or text, and text may refer to config providers.
"""

from __future__ import annotations

import re
from typing import Any

from airflow_connect.api.config import plugins
from airflow_connect.api.config.config_def import ConfigDef, ConfigKey
from airflow_connect.api.config.validators import OneOf, Range, ValidString
from airflow_connect.api.config.values import Type, convert_to_string

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE = {"type": "string", "pattern": r"\$\{[^}]*:[^}]*\}"}
_SCALAR = {"type": ["string", "number", "boolean"]}
_BITS = {Type.SHORT: 16, Type.INT: 32, Type.LONG: 64}
_INTEGER_TEXT = r"^\s*[+-]?[0-9]+\s*$"
_BOOLEAN_TEXT = r"^\s*([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])\s*$"
_DOUBLE_TEXT = r"^\s*[+-]?(NaN|Infinity|[0-9.][0-9a-fA-FxXpPdDeE.+-]*)\s*$"


def json_schema(definition: ConfigDef, title: str) -> dict[str, Any]:
    """A schema for objects that hold a whole configuration.

    Args:
        definition: every key.
        title: what is configured.
    """
    return {
        "$schema": DIALECT,
        "title": title,
        "type": "object",
        "properties": {key.name: _property(key) for key in definition.keys.values()},
        "required": [key.name for key in definition.keys.values() if key.is_required],
        "patternProperties": {
            f"^{re.escape(family.prefix)}": {**_SCALAR, "description": family.documentation}
            for family in definition.families
        },
        # Unknown keys are accepted; `validate` reports them.
        "additionalProperties": _SCALAR,
    }


def _property(key: ConfigKey) -> dict[str, Any]:
    described: dict[str, Any] = {"description": _description(key)}
    if key.display_name:
        described["title"] = key.display_name
    if not key.is_required and key.type is not Type.PASSWORD and key.parsed_default is not None:
        described["default"] = _default(key)
    if key.type is Type.PASSWORD:
        return {**described, "type": "string", "format": "password", "writeOnly": True}
    if key.type is Type.CLASS and key.plugin is not None:
        return {**described, "type": "string", "examples": sorted(plugins.built_in(key.plugin))}
    accepted = _accepted(key)
    return {**described, **accepted[0]} if len(accepted) == 1 else {**described, "anyOf": [*accepted, _REFERENCE]}


def _description(key: ConfigKey) -> str:
    return f"{key.documentation} Without effect: {key.ignored}".strip() if key.ignored else key.documentation


def _default(key: ConfigKey) -> Any:
    value = key.parsed_default
    return value if key.type in (*_BITS, Type.BOOLEAN, Type.DOUBLE) else convert_to_string(value, key.type)


def _accepted(key: ConfigKey) -> list[dict[str, Any]]:
    """The valid values; one entry if any text is valid."""
    if key.type is Type.BOOLEAN:
        return [{"type": "boolean"}, {"type": "string", "pattern": _BOOLEAN_TEXT}]
    if key.type in _BITS:
        limit = 1 << _BITS[key.type] - 1
        return [_number(key, {"type": "integer", "minimum": -limit, "maximum": limit - 1}), _text(_INTEGER_TEXT)]
    if key.type is Type.DOUBLE:
        return [_number(key, {"type": "number"}), _text(_DOUBLE_TEXT)]
    if isinstance(key.validator, (ValidString, OneOf)):
        # Blanks around the value are removed before it is checked.
        words = "|".join(re.escape(word) for word in key.validator.values)
        return [{"enum": list(key.validator.values)}, _text(rf"^\s*({words})\s*$")]
    return [_SCALAR]


def _number(key: ConfigKey, schema: dict[str, Any]) -> dict[str, Any]:
    if isinstance(key.validator, Range):
        bounds = {"minimum": key.validator.minimum, "maximum": key.validator.maximum}
        schema |= {name: bound for name, bound in bounds.items() if bound is not None}
    return schema


def _text(pattern: str) -> dict[str, Any]:
    return {"type": "string", "pattern": pattern}

"""Which fields of a message become which fields of a file, as far as the configuration says so exactly.

Fields are known if the value converter has a fixed schema (`value.converter.schema.content`). They are followed through
the transformations whose effect on fields follows from their settings alone. Everything else makes the answer unknown:
a conditional transformation, one that this module does not know, a setting that is a template or a reference.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

_SCHEMA = "value.converter.schema.content"
_ENVELOPE = "value.converter.schemas.enable"
_UNKNOWN = re.compile(r"\$\{|\{\{|\{%")
_KEEPS_VALUE = frozenset(
    {
        "DropHeaders", "Filter", "InsertHeader", "RegexRouter", "SetSchemaMetadata", "TimestampRouter",
        "TombstoneHandler", "ValueToKey",
    }
)  # fmt: skip
_INSERTED = {
    "topic.field": "string",
    "partition.field": "int32",
    "offset.field": "int64",
    "timestamp.field": "timestamp",
    "static.field": "string",
}
_TIMES = {"string": "string", "unix": "int64", "date": "date", "time": "time", "timestamp": "timestamp"}


@dataclass(frozen=True, slots=True)
class TracedField:
    """A field of the value.

    Attributes:
        name: its name now.
        kind: its type, in Connect's words.
        source: its name in the message, or "" if a transformation inserted it.
        is_masked: whether nothing of the original value is left.
        is_changed: whether its type or form was converted.
    """

    name: str
    kind: str
    source: str = ""
    is_masked: bool = False
    is_changed: bool = False


Fields = list[TracedField]
_Step = Callable[[Fields, Mapping[str, str]], Fields | None]


def message_fields(connector: Mapping[str, Any], worker: Mapping[str, Any]) -> Fields | None:
    """The fields of the values in the topics; None: not known from the configuration."""
    own = connector if connector.get("value.converter") else worker
    text = str(own.get(_SCHEMA) or "")
    if not text or _UNKNOWN.search(text) or str(own.get(_ENVELOPE, "true")).lower() != "true":
        return None
    try:
        schema = json.loads(text)
        return [TracedField(field["field"], _kind(field), field["field"]) for field in schema["fields"]]
    except (ValueError, KeyError, TypeError):
        return None  # The run reports what is wrong with the schema.


def written_fields(fields: Fields, connector: Mapping[str, Any]) -> Fields | None:
    """The fields after all transformations of the connector; None: not known from the configuration."""
    found: Fields | None = fields
    for alias in filter(None, (part.strip() for part in str(connector.get("transforms") or "").split(","))):
        prefix = f"transforms.{alias}."
        settings = {key[len(prefix) :]: str(v) for key, v in connector.items() if key.startswith(prefix)}
        if found is None or any(_UNKNOWN.search(text) for text in [alias, *settings.values()]):
            return None
        found = _after(found, settings)
    return found


def _after(fields: Fields, settings: Mapping[str, str]) -> Fields | None:
    name, _, part = re.split(r"[.:]", settings.get("type", ""))[-1].partition("$")
    if part == "Key" or name in _KEEPS_VALUE:
        return fields
    step = _STEPS.get(name)
    return None if step is None or "predicate" in settings else step(fields, settings)


def _replaced(fields: Fields, settings: Mapping[str, str]) -> Fields | None:
    if {"blacklist", "whitelist"} & settings.keys():
        return None
    excluded, included = set(_listed(settings.get("exclude"))), set(_listed(settings.get("include")))
    renames = dict(pair.split(":", 1) for pair in _listed(settings.get("renames")) if ":" in pair)
    kept = [field for field in fields if field.name not in excluded and (not included or field.name in included)]
    return [replace(field, name=renames.get(field.name, field.name)) for field in kept]


def _masked(fields: Fields, settings: Mapping[str, str]) -> Fields | None:
    masked = set(_listed(settings.get("fields")))
    return [replace(field, is_masked=True) if field.name in masked else field for field in fields]


def _cast(fields: Fields, settings: Mapping[str, str]) -> Fields | None:
    pairs = _listed(settings.get("spec"))
    if not pairs or not all(":" in pair for pair in pairs):
        return None
    kinds = dict(pair.split(":", 1) for pair in pairs)
    return [
        replace(field, kind=kinds[field.name], is_changed=True) if field.name in kinds else field for field in fields
    ]


def _converted_time(fields: Fields, settings: Mapping[str, str]) -> Fields | None:
    wanted, kind = settings.get("field", ""), _TIMES.get(settings.get("target.type", "").lower())
    if not wanted or kind is None:
        return None
    return [replace(field, kind=kind, is_changed=True) if field.name == wanted else field for field in fields]


def _inserted(fields: Fields, settings: Mapping[str, str]) -> Fields | None:
    added = [TracedField(settings[key].rstrip("!?"), kind) for key, kind in _INSERTED.items() if settings.get(key)]
    names = {field.name for field in added}
    return [*(field for field in fields if field.name not in names), *added]


def _into_headers(fields: Fields, settings: Mapping[str, str]) -> Fields | None:
    moved = set(_listed(settings.get("fields"))) if settings.get("operation", "").lower() == "move" else set()
    return [field for field in fields if field.name not in moved]


_STEPS: Mapping[str, _Step] = {
    "ReplaceField": _replaced,
    "MaskField": _masked,
    "Cast": _cast,
    "TimestampConverter": _converted_time,
    "InsertField": _inserted,
    "HeaderFrom": _into_headers,
}


def _listed(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _kind(field: Mapping[str, Any]) -> str:
    """The logical type, `Timestamp` of `org.apache.kafka.connect.data.Timestamp`, else the type."""
    return str(field.get("name") or field["type"]).rpartition(".")[2]

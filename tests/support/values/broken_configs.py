"""Broken configurations, made from the definitions of keys and from lists of contradictions.

The lists are in tests/data/broken_configs.json. A new connector needs an entry there, with a configuration that is
valid, and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from airflow_connect.api.config.config_def import ConfigDef, ConfigKey
from airflow_connect.api.config.validators import (
    CaseInsensitiveValidString,
    EnumString,
    NonEmptyString,
    NonEmptyStringWithoutControlChars,
    OneOf,
    Range,
    ValidList,
    ValidString,
)
from airflow_connect.api.config.values import Type, is_secret_name
from airflow_connect.config.resolved.worker import WorkerConfig

DATA = json.loads((Path(__file__).parents[2] / "data" / "broken_configs.json").read_text("utf-8"))
SECRET = "hunter22-of-nobody"
"""Stands in every broken value of a key whose values are secret."""

WORKER = "worker"
REMOVED = object()
_WORDS = (ValidString, CaseInsensitiveValidString, EnumString, OneOf)
_NOT_EMPTY = (NonEmptyString, NonEmptyStringWithoutControlChars)
_LIMITS = {Type.SHORT: 1 << 15, Type.INT: 1 << 31, Type.LONG: 1 << 63}
_NOT_OF_TYPE = {
    Type.BOOLEAN: ["maybe", "1", 1],
    Type.SHORT: ["many", "1.5", "0x10", "1_000", "1e3", True],
    Type.INT: ["many", "1.5", "0x10", "1_000", "1e3", True],
    Type.LONG: ["many", "1.5", "0x10", "1_000", "1e3", True],
    Type.DOUBLE: ["much", "1,5", True],
}


class Broken(NamedTuple):
    """A configuration with one thing wrong.

    Attributes:
        name: which key, and what is wrong with it.
        key: to be blamed.
        raw: the whole configuration of a connector, or of the worker.
        is_certain: there must be an error; otherwise the key may take the value, and whatever is said must be good.
    """

    name: str
    key: str
    raw: dict[str, Any]
    is_certain: bool


def definitions() -> dict[str, ConfigDef]:
    """Every definition that has an entry: connectors by class, and the worker's."""
    from airflow_connect.config.resolved.loading import connector_definition

    return {
        name: WorkerConfig.config_def() if name == WORKER else connector_definition({"connector.class": name})
        for name in DATA
    }


def valid(name: str) -> dict[str, Any]:
    """A valid configuration."""
    return dict(DATA[name]["valid"])


def broken_configs(name: str, definition: ConfigDef, known: ConfigDef | None = None) -> Iterator[Broken]:
    """Every broken configuration of a class: key by key, then the contradictions.

    Keys that `known` has in the same form are left out: they are tested with the connector that it belongs to.
    """
    shared = {} if known is None or known is definition else known.keys
    for key in definition.keys.values():
        if shared.get(key.name) == key:
            continue
        for what, value, is_certain in _broken_values(key):
            raw = valid(name)
            if value is REMOVED:
                raw.pop(key.name, None)
            else:
                raw[key.name] = value
            yield Broken(f"{key.name}: {what}", key.name, raw, is_certain)
    for case in DATA[name]["contradictions"]:
        yield Broken(case["case"], case["key"], _changed(valid(name), case["change"]), is_certain=True)


def _changed(raw: dict[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in {**raw, **change}.items() if value != "(removed)"}


def _broken_values(key: ConfigKey) -> Iterator[tuple[str, Any, bool]]:
    """(what is wrong, value, whether it must be refused)."""
    word = SECRET if _is_secret(key) else "no-such-word"
    has_type = key.type in _NOT_OF_TYPE or key.type is Type.CLASS
    words = isinstance(key.validator, _WORDS) and "" not in getattr(key.validator, "values", ())
    empty = has_type or words or (isinstance(key.validator, _NOT_EMPTY) and key.type is Type.STRING)
    if key.is_required:
        yield "missing", REMOVED, True
    yield "null", None, True
    yield "empty", "", empty
    yield "blanks", "  \t ", empty
    yield "array", [word], True
    yield "object", {"inner": word}, True
    for value in _NOT_OF_TYPE.get(key.type, []):
        yield f"wrong type {value!r}", value, True
    if key.type is Type.CLASS:
        yield "unknown class", "no.such.Class", key.plugin is not None
        yield "class in an unknown module", "no.such.module:Class", key.plugin is not None
    if key.type in _LIMITS:
        yield "too large for the type", str(_LIMITS[key.type]), True
        yield "too small for the type", str(-_LIMITS[key.type] - 1), True
    if isinstance(key.validator, Range):
        if key.validator.minimum is not None:
            yield "below the range", key.validator.minimum - 1, True
        if key.validator.maximum is not None:
            yield "above the range", key.validator.maximum + 1, True
    if key.type in (Type.STRING, Type.PASSWORD):
        yield "unknown word", word, isinstance(key.validator, _WORDS)
        yield "control characters", f"{word}\x07{word}", isinstance(key.validator, NonEmptyStringWithoutControlChars)
        yield "very long", word * 1_000, False
    if key.type is Type.LIST:
        listed = isinstance(key.validator, ValidList)
        yield "duplicates", "a,b,a", listed
        yield "blank member", "a, ,b", listed
        yield "unknown member", word, listed and bool(key.validator.values)


def _is_secret(key: ConfigKey) -> bool:
    return key.type is Type.PASSWORD or is_secret_name(key.name)

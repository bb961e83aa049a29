"""Which class an alias of `transforms` or `predicates` means, and what is wrong when it means none."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

from airflow_connect.api import config_values, plugins
from airflow_connect.api.config import ConfigDef, Problem, Type
from airflow_connect.api.errors import ConfigError
from airflow_connect.api.transform import Predicate, Transformation


class ChainKind(NamedTuple):
    """What transformations and predicates differ in.

    Attributes:
        list_key: key that lists the aliases; every key of an alias begins with `<list_key>.<alias>.`.
        plugin_kind: where class names are looked up.
        base: what a class must be derived from.
        label: its name in texts, `Transformation` or `Predicate`.
    """

    list_key: str
    plugin_kind: plugins.PluginKind
    base: type
    label: str

    def prefix(self, alias: str) -> str:
        """What every key of an alias begins with."""
        return f"{self.list_key}.{alias}."

    def aliases(self, raw: Mapping[str, Any]) -> list[str]:
        """Aliases that a configuration lists, each once; [] when the list is missing, an array or an object."""
        given = raw.get(self.list_key)
        if isinstance(given, (bool, int, float)):  # JSON: `false` is the text "false", as everywhere.
            given = config_values.coerce_json(self.list_key, given)
        if not isinstance(given, str):
            return []
        return list(dict.fromkeys(config_values.parse_type(self.list_key, given, Type.LIST)))

    def java_names(self) -> list[str]:
        """Full Java names of the classes that this package ships."""
        return list(plugins.built_in(self.plugin_kind))

    def class_names(self) -> list[str]:
        """Their short names: `Cast$Key`, `Filter`."""
        return [name.rpartition(".")[2] for name in self.java_names()]


TRANSFORMATION_KIND = ChainKind("transforms", plugins.PluginKind.TRANSFORMATION, Transformation, "Transformation")
PREDICATE_KIND = ChainKind("predicates", plugins.PluginKind.PREDICATE, Predicate, "Predicate")


class FoundClass(NamedTuple):
    """The class that a name means; at most one of the two is set, none when there is no name."""

    plugin: Any = None
    problem: Problem | None = None


def find_class(kind: ChainKind, key: str, name: Any) -> FoundClass:
    """Import the class that `name`, the value of `key`, means."""
    if not isinstance(name, str):
        return FoundClass()  # missing, or not text: the key's own type says so
    name = config_values.java_trim(name)
    variants = _variants(kind, name)
    if variants:
        return FoundClass(problem=_abstract(key, variants))
    try:
        found = plugins.load(plugins.resolve(kind.plugin_kind, name))
    except ConfigError as error:
        return FoundClass(problem=_not_loaded(kind, key, name, error))
    nested = [variant for variant in ("Key", "Value") if _is_one(kind, getattr(found, variant, None))]
    if nested and not _is_one(kind, found):
        return FoundClass(problem=_abstract(key, [f"{name}.{variant}" for variant in nested]))
    if not _is_one(kind, found) or inspect.isabstract(found) or not isinstance(found.config_def, ConfigDef):
        return FoundClass(problem=_wrong_class(kind, key, name))
    return FoundClass(plugin=found)


def _is_one(kind: ChainKind, found: Any) -> bool:
    return isinstance(found, type) and issubclass(found, kind.base)


def _variants(kind: ChainKind, name: str) -> list[str]:
    """Java names of the variants for key and value of a class that comes in both: `Cast` means neither."""
    return [
        full
        for full, path in plugins.built_in(kind.plugin_kind).items()
        if "$" in full
        and name in (full.partition("$")[0], full.partition("$")[0].rpartition(".")[2], path.rpartition(".")[0])
    ]


def _abstract(key: str, variants: list[str]) -> Problem:
    return Problem(
        key,
        f"This class is abstract and cannot be created. Did you mean {', '.join(variants)}?",
        f"Set {key} to the variant for the record's key or to that for its value.",
    )


def _not_loaded(kind: ChainKind, key: str, name: str, error: ConfigError) -> Problem:
    if error.code == "plugin.not_loadable":
        return Problem(key, error.message, error.suggestion)
    if any(name in plugins.built_in(other) for other in plugins.PluginKind if other is not kind.plugin_kind):
        return _wrong_class(kind, key, name)
    suggestion = error.suggestion
    if "Did you mean" not in suggestion:
        suggestion = (
            f"Known: {', '.join(kind.class_names())}. A {kind.label.lower()} of your own is named by its dotted path,"
            " package.module:Class."
        )
    return Problem(key, f"Invalid value {name} for configuration {key}: Class {name} could not be found.", suggestion)


def _wrong_class(kind: ChainKind, key: str, name: str) -> Problem:
    """Source: Connect's text, whose doubled `Class class` comes from Java's Class.toString()."""
    return Problem(
        key,
        f"Class class {name} does not implement the {kind.label} interface",
        f"Set {key} to a class that is derived from airflow_connect.api.transform.{kind.label}, or to one of"
        f" {', '.join(kind.class_names())}.",
    )

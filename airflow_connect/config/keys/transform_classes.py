"""The class of an alias in `transforms` or `predicates`, and the problem if there is none."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

from airflow_connect.api.config import plugins
from airflow_connect.api.config import values as config_values
from airflow_connect.api.config.config_def import ConfigDef, Problem, Type
from airflow_connect.api.transform import Predicate, Transformation
from airflow_connect.errors import ConfigError, ConnectError


class ChainKind(NamedTuple):
    """The differences between transformations and predicates.

    Attributes:
        list_key: key that lists the aliases; every key of an alias begins with `<list_key>.<alias>.`.
        plugin_kind: registry in which class names are looked up.
        base: required base class.
        label: its name in texts, `Transformation` or `Predicate`.
    """

    list_key: str
    plugin_kind: plugins.PluginKind
    base: type
    label: str

    def prefix(self, alias: str) -> str:
        """The prefix of every key of an alias."""
        return f"{self.list_key}.{alias}."

    def aliases(self, raw: Mapping[str, Any]) -> list[str]:
        """Aliases that a configuration lists, each once; [] if the list is missing, an array or an object."""
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
    """The class of a name, or a problem; neither if there is no name.

    Attributes:
        plugin: the class.
        problem: why there is none.
        has_unknown_keys: there is a class, but it is not known which of its keys are secrets.
    """

    plugin: Any = None
    problem: Problem | None = None
    has_unknown_keys: bool = False


def find_class(kind: ChainKind, key: str, name: Any) -> FoundClass:
    """Import the class named by `name`, the value of `key`."""
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
    try:
        is_complete = _is_one(kind, found) and not inspect.isabstract(found) and isinstance(found.config_def, ConfigDef)
    except ConnectError as error:  # Java was asked for the keys of its class.
        return FoundClass(None, Problem(key, error.message, error.suggestion), has_unknown_keys=True)
    return FoundClass(plugin=found) if is_complete else FoundClass(problem=_wrong_class(kind, key, name))


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
        f"Set {key} to the variant for the record's key or to the one for its value.",
    )


def _not_loaded(kind: ChainKind, key: str, name: str, error: ConfigError) -> Problem:
    if error.code == "plugin.not_loadable":
        return Problem(key, error.message, error.suggestion)
    if any(name in plugins.built_in(other) for other in plugins.PluginKind if other is not kind.plugin_kind):
        return _wrong_class(kind, key, name)
    suggestion = error.suggestion
    if "Did you mean" not in suggestion:
        suggestion = (
            f"Known: {', '.join(kind.class_names())}. Specify your own {kind.label.lower()} by its dotted path,"
            f" package.module:Class.{plugins.java_hint(kind.plugin_kind)}"
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

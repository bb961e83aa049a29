"""Keys of the chain of transformations: `transforms`, `predicates`, and the keys of each alias.

An alias has the keys of every transformation and those that its class defines. `with_chain` adds both to a connector's
definition, so that one definition validates, documents and hides secrets. Source: ConnectorConfig.enrich and
ConfigDef.embed (Kafka 4.3), message texts included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from airflow_connect.api.config import plugins
from airflow_connect.api.config.config_def import (
    ConfigDef,
    ConfigKey,
    Importance,
    KeyFamily,
    Problem,
    Recommender,
    Rule,
    Type,
    Width,
)
from airflow_connect.api.config.validators import Lambda, Validator
from airflow_connect.api.config.values import invalid
from airflow_connect.config.keys.java_hosts import JavaKeys
from airflow_connect.config.keys.transform_classes import PREDICATE_KIND, TRANSFORMATION_KIND, ChainKind, find_class
from airflow_connect.errors import ConfigError

TYPE, PLUGIN_VERSION, PREDICATE, NEGATE = "type", "plugin.version", "predicate", "negate"
FRAMEWORK_KEYS = frozenset({TYPE, PLUGIN_VERSION, PREDICATE, NEGATE})
"""Keys below an alias that do not belong to its class."""

_KINDS = (TRANSFORMATION_KIND, PREDICATE_KIND)
_NO_VERSIONS = "Only one version of each plugin is installed, so there is nothing to choose."
_BY_IMPORTANCE = list(Importance)


def alias_families() -> list[KeyFamily]:
    """The keys of aliases, if no configuration lists the aliases."""
    return [
        KeyFamily(
            f"{TRANSFORMATION_KIND.list_key}.",
            "Settings of the transformations that `transforms` lists: `transforms.<alias>.type`, `.predicate`,"
            " `.negate`, and the keys of the class.",
        ),
        KeyFamily(
            f"{PREDICATE_KIND.list_key}.",
            "Settings of the predicates that `predicates` lists: `predicates.<alias>.type` and the keys of the class.",
        ),
    ]


def with_chain(base: ConfigDef, raw: Mapping[str, Any]) -> ConfigDef:
    """`base` plus the keys of every alias that `raw` lists; imports the classes, and never raises.

    Args:
        base: a connector's definition that has the families of aliases; any other, including one that already
            has its chain, is returned unchanged.
        raw: the connector's configuration.
    """
    base = _with_hosts(base, raw)
    families = tuple(family.prefix for family in alias_families())
    is_mentioned = any(kind.aliases(raw) for kind in _KINDS) or any(str(name).startswith(families) for name in raw)
    if not is_mentioned or not {family.prefix for family in base.families}.issuperset(families):
        return base
    enriched = ConfigDef().define(*base.keys.values())
    enriched.define_family(*(family for family in base.families if family.prefix not in families))
    for names, rule in base.rules:
        enriched.define_rule(names, rule)
    for kind in _KINDS:
        for alias in kind.aliases(raw):
            _define_alias(enriched, kind, alias, raw)
        enriched.define_family(*_leftovers(kind, raw))
    return enriched


def _with_hosts(base: ConfigDef, raw: Mapping[str, Any]) -> ConfigDef:
    """The definition of a connector that is not Java, plus the keys of plugin hosts, if it has a use for them.

    A converter of the worker may be a Java class, too, so that one of these keys is enough.
    """
    hosts = JavaKeys.config_def()
    if TRANSFORMATION_KIND.list_key not in base.keys or hosts.keys.keys() <= base.keys.keys():
        return base
    if hosts.keys.keys().isdisjoint(raw) and not any(_is_java(kind, name) for kind, name in _classes(base, raw)):
        return base
    return ConfigDef().include(base).include(hosts)


def _classes(base: ConfigDef, raw: Mapping[str, Any]) -> Iterable[tuple[plugins.PluginKind, Any]]:
    """Kind and name of each class of the chain that a configuration names."""
    for kind in _KINDS:
        for alias in kind.aliases(raw):
            yield kind.plugin_kind, raw.get(kind.prefix(alias) + TYPE)
    for key in base.keys.values():
        if key.plugin in (plugins.PluginKind.CONVERTER, plugins.PluginKind.HEADER_CONVERTER):
            yield key.plugin, raw.get(key.name)


def _is_java(kind: plugins.PluginKind, name: Any) -> bool:
    try:
        return isinstance(name, str) and plugins.resolve(kind, name.strip()).is_java
    except ConfigError:
        return False  # Reported with every other wrong key.


def _define_alias(definition: ConfigDef, kind: ChainKind, alias: str, raw: Mapping[str, Any]) -> None:
    """Add the keys of one alias, and the rules about them."""
    prefix, group = kind.prefix(alias), f"{kind.list_key.capitalize()}: {alias}"
    type_key = prefix + TYPE
    found = find_class(kind, type_key, raw.get(type_key))
    keys = _leading_keys(kind, alias)
    if found.plugin is not None:
        own = [key for key in found.plugin.config_def.keys.values() if key.name not in FRAMEWORK_KEYS]
        keys += sorted([*own, *(_predicate_keys() if kind is TRANSFORMATION_KIND else ())], key=_as_connect_sorts)
    definition.define(*(_embedded(key, prefix, group, order) for order, key in enumerate(keys)))
    if found.problem is not None:
        definition.define_rule((type_key,), _always(found.problem))
    if found.has_unknown_keys:
        given = [name.removeprefix(prefix) for name in map(str, raw) if name.startswith(prefix)]
        secret = [ConfigKey(name, Type.PASSWORD, None) for name in given if name not in FRAMEWORK_KEYS]
        definition.define(*(_embedded(key, prefix, group, len(keys)) for key in secret))
    if found.plugin is None:
        return
    for family in found.plugin.config_def.families:
        definition.define_family(family._replace(prefix=prefix + family.prefix))
    for names, rule in found.plugin.config_def.rules:
        definition.define_rule({prefix + name for name in names}, _embedded_rule(rule, prefix))
    if kind is TRANSFORMATION_KIND:
        definition.define_rule((prefix + PREDICATE, PREDICATE_KIND.list_key), _predicate_is_listed(prefix, raw))
        definition.define_rule((type_key,), _negation_has_a_predicate(prefix, raw))


def _leading_keys(kind: ChainKind, alias: str) -> list[ConfigKey]:
    high, label = Importance.HIGH, kind.label
    known = Lambda(lambda name, value: None, ", ".join(kind.class_names()))
    return [
        ConfigKey(
            TYPE, Type.CLASS,
            documentation=f"Class for the '{alias}' {label.lower()}: its Java name or the end of it, an entry point,"
            " or a dotted Python path (package.module:Class).",
            validator=known, importance=high, width=Width.LONG, display_name=f"{label} type for {alias}",
            recommender=_KnownClasses(tuple(kind.java_names())),
        ),
        ConfigKey(
            PLUGIN_VERSION, Type.STRING, None, f"Version of the '{alias}' {label.lower()}.",
            importance=high, width=Width.LONG, display_name=f"{label} version for {alias}", ignored=_NO_VERSIONS,
        ),
    ]  # fmt: skip


def _predicate_keys() -> list[ConfigKey]:
    medium = Importance.MEDIUM
    return [
        ConfigKey(
            PREDICATE, Type.STRING, None,
            "The alias of a predicate used to determine whether to apply this transformation.",
            importance=medium, width=Width.NONE,
        ),
        ConfigKey(
            NEGATE, Type.BOOLEAN, False, "Whether the configured predicate should be negated.",
            importance=medium, width=Width.NONE,
        ),
    ]  # fmt: skip


def _as_connect_sorts(key: ConfigKey) -> tuple[bool, int, str]:
    """Keys without default first, then by importance, then by name."""
    return not key.is_required, _BY_IMPORTANCE.index(key.importance), key.name


def _leftovers(kind: ChainKind, raw: Mapping[str, Any]) -> list[KeyFamily]:
    """Keys of aliases that are not listed: accepted without effect, one family for each alias."""
    aliases = kind.aliases(raw)
    listed = tuple(kind.prefix(alias) for alias in aliases)
    if aliases:
        reason = f"`{kind.list_key}` lists only {', '.join(aliases)}."
    else:
        reason = f"No {kind.label.lower()} is listed in `{kind.list_key}`."
    return [
        KeyFamily(str(name), f"Setting of a {kind.label.lower()} that is not used.", reason)
        for name in raw
        if str(name).startswith(f"{kind.list_key}.") and not str(name).startswith(listed)
    ]


@dataclass(frozen=True)
class _KnownClasses:
    """Recommends the classes that this package ships."""

    names: tuple[str, ...]

    def valid_values(self, name: str, parsed: Mapping[str, Any]) -> Sequence[Any]:
        """Java names."""
        return self.names

    def visible(self, name: str, parsed: Mapping[str, Any]) -> bool:
        """Always."""
        return True


def _embedded(key: ConfigKey, prefix: str, group: str, order: int) -> ConfigKey:
    """A key of a class as a key of the connector."""
    return replace(
        key,
        name=prefix + key.name,
        group=group,
        order=order,
        display_name=key.display_name or key.name,
        dependents=tuple(prefix + name for name in key.dependents),
        validator=None if key.validator is None else _EmbeddedValidator(key.validator, prefix),
        recommender=None if key.recommender is None else _EmbeddedRecommender(key.recommender, prefix),
    )


@dataclass(frozen=True)
class _EmbeddedValidator:
    """As in Connect, the validators of a class use its keys without prefix in messages."""

    validator: Validator
    prefix: str

    def check(self, name: str, value: Any) -> None:
        """Without the prefix."""
        self.validator.check(name.removeprefix(self.prefix), value)

    def __str__(self) -> str:
        """The validator's own description."""
        return str(self.validator)


@dataclass(frozen=True)
class _EmbeddedRecommender:
    """Passes a class's own keys to its recommender."""

    recommender: Recommender
    prefix: str

    def valid_values(self, name: str, parsed: Mapping[str, Any]) -> Sequence[Any]:
        """Without the prefix."""
        return self.recommender.valid_values(name.removeprefix(self.prefix), _below(parsed, self.prefix))

    def visible(self, name: str, parsed: Mapping[str, Any]) -> bool:
        """Without the prefix."""
        return self.recommender.visible(name.removeprefix(self.prefix), _below(parsed, self.prefix))


def _embedded_rule(rule: Rule, prefix: str) -> Rule:
    def embedded(parsed: Mapping[str, Any]) -> Iterable[Problem]:
        return [problem._replace(key=prefix + problem.key) for problem in rule(_below(parsed, prefix))]

    return embedded


def _below(parsed: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {name[len(prefix) :]: value for name, value in parsed.items() if name.startswith(prefix)}


def _always(problem: Problem) -> Rule:
    return lambda parsed: [problem]


def check_unique(name: str, value: Any) -> None:
    """Refuse repeated aliases. Source: the text of ConnectorConfig's own validator, which is not that of ValidList."""
    if len(set(value or ())) != len(value or ()):
        raise invalid(name, f"[{', '.join(value)}]", "Duplicate alias provided.")


def _predicate_is_listed(prefix: str, raw: Mapping[str, Any]) -> Rule:
    """Connect detects this only when the task starts, as `Unknown configuration`."""

    def check(parsed: Mapping[str, Any]) -> Iterable[Problem]:
        alias, listed = parsed[prefix + PREDICATE], parsed[PREDICATE_KIND.list_key]
        if alias is None or alias in listed:
            return
        known = f"lists only {', '.join(listed)}" if listed else "is empty"
        yield Problem(
            prefix + PREDICATE,
            f"{prefix}{PREDICATE} names the predicate {alias!r}, but {PREDICATE_KIND.list_key} {known}.",
            f"Add {alias} to {PREDICATE_KIND.list_key} and set {PREDICATE_KIND.prefix(alias)}{TYPE}, or correct"
            f" {prefix}{PREDICATE}.",
        )

    return check


def _negation_has_a_predicate(prefix: str, raw: Mapping[str, Any]) -> Rule:
    """Source: Connect's text, which it puts on the type."""

    def check(parsed: Mapping[str, Any]) -> Iterable[Problem]:
        if prefix + NEGATE in raw and prefix + PREDICATE not in raw:
            yield Problem(
                prefix + TYPE,
                f"Config '{prefix}{NEGATE}' was provided but there is no config '{prefix}{PREDICATE}' defining a"
                " predicate to be negated.",
                f"Remove {prefix}{NEGATE}, or set {prefix}{PREDICATE} to the alias of a predicate.",
            )

    return check

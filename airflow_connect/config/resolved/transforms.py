"""The typed form of a chain of transformations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_connect.api.config import plugins
from airflow_connect.api.config.values import Type, parse_type
from airflow_connect.config.keys.transform_classes import PREDICATE_KIND, TRANSFORMATION_KIND, ChainKind
from airflow_connect.config.keys.transforms import FRAMEWORK_KEYS, NEGATE, PREDICATE, TYPE


@dataclass(frozen=True, slots=True)
class PredicateConfig:
    """A predicate of the chain.

    Attributes:
        alias: its name in `predicates`.
        plugin: which class.
        settings: keys of the class, without `predicates.<alias>.`.
    """

    alias: str
    plugin: plugins.PluginRef
    settings: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class TransformConfig:
    """A transformation of the chain.

    Attributes:
        alias: its name in `transforms`.
        plugin: which class.
        settings: keys of the class, without `transforms.<alias>.`.
        predicate: the transformation applies to records that match it; None: to every record.
        negate: it applies to records that do not match the predicate.
    """

    alias: str
    plugin: plugins.PluginRef
    settings: Mapping[str, str] = field(repr=False)
    predicate: PredicateConfig | None = None
    negate: bool = False


def transforms_of(raw: Mapping[str, str]) -> tuple[TransformConfig, ...]:
    """The chain, in order.

    Args:
        raw: a connector's configuration as text, without errors by a definition that `with_chain` made.
    """
    chain = []
    for alias in TRANSFORMATION_KIND.aliases(raw):
        prefix = TRANSFORMATION_KIND.prefix(alias)
        name = raw.get(prefix + PREDICATE)
        predicate = None if name is None else PredicateConfig(name.strip(), *_plugin(PREDICATE_KIND, name.strip(), raw))
        plugin, settings = _plugin(TRANSFORMATION_KIND, alias, raw)
        negate = bool(parse_type(prefix + NEGATE, raw.get(prefix + NEGATE), Type.BOOLEAN))
        chain.append(TransformConfig(alias, plugin, settings, predicate, negate))
    return tuple(chain)


def _plugin(kind: ChainKind, alias: str, raw: Mapping[str, str]) -> tuple[plugins.PluginRef, dict[str, str]]:
    prefix = kind.prefix(alias)
    settings = {name[len(prefix) :]: value for name, value in raw.items() if name.startswith(prefix)}
    plugin = plugins.resolve(kind.plugin_kind, settings[TYPE].strip())
    return plugin, {name: value for name, value in settings.items() if name not in FRAMEWORK_KEYS}

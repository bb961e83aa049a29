"""The Java classes in the chain of a connector that runs its chain here, and the plugin host that they share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_connect.api.config import plugins
from airflow_connect.api.config.config_def import IgnoredKey
from airflow_connect.api.config.references import ResolvedText
from airflow_connect.api.config.values import coerce_config
from airflow_connect.config.keys.java_hosts import JavaKeys
from airflow_connect.counting import names
from airflow_connect.errors import ConfigError

if TYPE_CHECKING:
    from airflow_connect.config.resolved.sink import ConverterConfig
    from airflow_connect.config.resolved.transforms import TransformConfig

_UNUSED = "It is for Java classes, and neither the connector nor its chain has one."


@dataclass(frozen=True, slots=True)
class JavaChainConfig:
    """What a task needs to run them.

    Attributes:
        class_names: each once.
        hosts: the settings of plugin hosts, as text.
        hidden_keys: names of settings, without prefix, that no class may print: of type PASSWORD, or references.
    """

    class_names: tuple[str, ...]
    hosts: Mapping[str, str]
    hidden_keys: frozenset[str]

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence for plans and reports."""
        which = names(self.class_names)
        return (f"Java classes run in a JVM beside each task, and records are not processed in columns: {which}.",)


def java_chain_of(
    transforms: Iterable[TransformConfig],
    converters: Iterable[ConverterConfig],
    raw: Mapping[str, str],
    worker_raw: Mapping[str, Any],
) -> JavaChainConfig | None:
    """The Java classes of a chain; None if it has none. May ask Java for the keys of a class, once.

    Args:
        transforms: with their predicates.
        converters: of keys, values and headers, as the run uses them.
        raw: the connector's configuration.
        worker_raw: the worker's.

    Raises:
        ConfigError: a class cannot be created.
        ConnectError: no JVM can be started.
    """
    stages = [stage for stage in _stages(transforms, converters) if stage[0].is_java]
    if not stages:
        return None
    hidden: set[str] = set()
    for plugin, settings in stages:
        hidden.update(plugins.load(plugin).config_def.secret_names)
        hidden.update(name for name, value in settings.items() if isinstance(value, ResolvedText))
    return JavaChainConfig(
        class_names=tuple(dict.fromkeys(plugin.name for plugin, _ in stages)),
        hosts={**host_keys(worker_raw), **host_keys(raw)},
        hidden_keys=frozenset(hidden),
    )


def host_keys(raw: Mapping[str, Any]) -> dict[str, str]:
    """The keys of plugin hosts that a configuration sets."""
    known = JavaKeys.config_def().keys
    given = {name: value for name, value in raw.items() if name in known}
    return {name: value for name, value in coerce_config(given).items() if value is not None}


def with_hosts_of_worker(raw: Mapping[str, Any], worker_raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """A Java connector's configuration with the worker's keys of plugin hosts; any other is returned as it is."""
    of_worker = host_keys(worker_raw)
    try:
        is_java = bool(of_worker) and plugins.resolve_connector(raw).is_java
    except ConfigError:
        return raw  # Reported with every other wrong key.
    return {**of_worker, **raw} if is_java else raw


def unused_host_keys(
    raw: Mapping[str, str], chain: JavaChainConfig | None, connector: plugins.PluginRef
) -> tuple[IgnoredKey, ...]:
    """The same that have no effect, because nothing is Java."""
    if chain is not None or connector.is_java:
        return ()
    return tuple(IgnoredKey(name, _UNUSED) for name in host_keys(raw))


def _stages(
    transforms: Iterable[TransformConfig], converters: Iterable[ConverterConfig]
) -> Iterator[tuple[plugins.PluginRef, Mapping[str, str]]]:
    for converter in converters:
        yield converter.plugin, converter.settings
    for transform in transforms:
        yield transform.plugin, transform.settings
        if transform.predicate is not None:
            yield transform.predicate.plugin, transform.predicate.settings

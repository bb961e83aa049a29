"""A Java class that is a plugin, and all of them that this process knows.

What Java says about a class is asked when it is needed, and comes from the cache if it was asked before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_connect.api.config import plugins
from airflow_connect.api.config.config_def import ConfigDef
from airflow_connect.api.config.plugins import PluginKind
from airflow_connect.config.resolved.own_chain import chain_classes
from airflow_connect.counting import names
from airflow_connect.errors import ConfigError
from airflow_connect.jvm.discovery import runtime_types
from airflow_connect.jvm.discovery.definitions import definition_of
from airflow_connect.jvm.discovery.describing import describe
from airflow_connect.jvm.discovery.known_locations import KnownLocation
from airflow_connect.jvm.discovery.runtime_types import SINK

PLUGIN_KINDS = {
    runtime_types.SINK: PluginKind.CONNECTOR,
    runtime_types.SOURCE: PluginKind.CONNECTOR,
    runtime_types.CONVERTER: PluginKind.CONVERTER,
    runtime_types.HEADER_CONVERTER: PluginKind.HEADER_CONVERTER,
    runtime_types.TRANSFORMATION: PluginKind.TRANSFORMATION,
    runtime_types.PREDICATE: PluginKind.PREDICATE,
    runtime_types.CONFIG_PROVIDER: PluginKind.CONFIG_PROVIDER,
}
"""By Kafka Connect's name of a kind."""
_UNKNOWN_VERSIONS = (None, "", "undefined", "unknown", "null")
_by_class: dict[str, dict[str, JavaPlugin]] = {}


@dataclass(frozen=True)
class JavaPlugin:
    """A Java class that is a plugin.

    Attributes:
        class_name: with dots: `org.acme.Sink$Key`.
        kinds: what it is, by Kafka Connect's names, in the order of `KINDS`: a converter may be a header converter,
            too.
        known: the location that it is in.
    """

    class_name: str
    kinds: tuple[str, ...]
    known: KnownLocation

    @property
    def kind(self) -> PluginKind:
        """Its first kind."""
        return PLUGIN_KINDS[self.kinds[0]]

    @property
    def is_sink(self) -> bool:
        """Whether it is a sink connector."""
        return SINK in self.kinds

    @property
    def location(self) -> str:
        """The user's folder or archive."""
        return self.known.path

    @property
    def folders(self) -> tuple[Path, ...]:
        """Entries of a `plugin.path` for a plugin host that runs this class."""
        return (self.known.overlay,)

    def folders_for(self, config: Mapping[str, Any]) -> tuple[Path, ...]:
        """The same for this connector with the converters, transformations and predicates of a configuration.

        Raises:
            ConfigError: a class is in several other locations, which differ.
        """
        return tuple(dict.fromkeys(folder for plugin in self.with_chain(config) for folder in plugin.folders))

    def with_chain(self, config: Mapping[str, Any]) -> tuple[JavaPlugin, ...]:
        """This connector, and the classes of its chain that are in other locations.

        A class that is also in the location of the connector is taken from there, as in Kafka Connect.

        Raises:
            ConfigError: a class is in several other locations, which differ.
        """
        found = [plugins.find_added(kind, name) for kind, name in chain_classes(config).values()]
        names_of_chain = [one.name for one in found if one]
        others = [name for name in names_of_chain if self.location not in _by_class.get(name, {})]
        return (self, *plugins_of_classes(others))

    @property
    def runtime_uses(self) -> Mapping[str, tuple[str, ...]]:
        """Classes of the same location that use the insides of a Kafka Connect worker, and the names they use."""
        return self.known.scanned.runtime_uses

    @property
    def is_loadable(self) -> bool:
        """Whether Java can create the class; Kafka Connect leaves others out of its lists. May start a JVM."""
        return "error" not in self._described

    @property
    def version(self) -> str:
        """What the class says its version is; "" if it says nothing, or cannot be created. May start a JVM.

        Raises:
            ConnectError: no JVM can be started.
        """
        version = self._described.get("version")
        return "" if version in _UNKNOWN_VERSIONS else str(version)

    def config_def(self) -> ConfigDef:
        """The keys that the class defines. Starts a JVM if they are not in the cache.

        Raises:
            ConfigError: the class cannot be created.
            ConnectError: no JVM can be started.
        """
        return definition_of(self.key_infos())

    def key_infos(self) -> list[dict[str, Any]]:
        """The same as the JSON of Kafka Connect's REST API (ConfigKeyInfo).

        Raises:
            ConfigError: the class cannot be created.
            ConnectError: no JVM can be started.
        """
        described = self._described
        if "error" in described:
            # Another Java, or another installation, may help: the answer may change.
            described = describe([self.known], anew=True)[self.location].get(self.class_name, described)
        if "error" in described:
            raise ConfigError(
                f"The Java class {self.class_name} of {self.location} cannot be loaded:"
                f" {str(described['error']).removesuffix('.')}.",
                code="plugin.not_loadable",
                suggestion="Look for a library that is missing in its folder, or for a newer Java that it needs.",
            )
        return list(described.get("config") or ())

    @property
    def _described(self) -> dict[str, Any]:
        return describe([self.known])[self.location].get(self.class_name, {})


def register(found: Iterable[JavaPlugin], instead_of: Iterable[JavaPlugin] = ()) -> None:
    """Make plugins known in this process.

    Args:
        found: those of a plugin path.
        instead_of: those that were known of the same plugin path, whose files have changed since.
    """
    for plugin in instead_of:
        others = {place: other for place, other in _by_class[plugin.class_name].items() if place != plugin.location}
        _by_class[plugin.class_name] = others
    for plugin in found:
        _by_class[plugin.class_name] = {**_by_class.get(plugin.class_name, {}), plugin.location: plugin}


def registered(name: str) -> JavaPlugin:
    """The plugin with a full Java name.

    Raises:
        ConfigError: no plugin path of this process has it, or two different connectors have this name.
    """
    found = places_of(name)
    if not found:
        searched = "; ".join(plugins.searched()) or "none"
        raise ConfigError(
            f"The Java class {name} is in no plugin.path of this process ({searched}).",
            code="plugin.not_found",
            config_path="plugin.path",
            suggestion="Put its jars into a folder of the worker's plugin.path, on this machine, too.",
        )
    if len({plugin.known.content for plugin in found}) > 1 and _is_connector(found[0]):
        raise _ambiguous(name, found)
    return found[0]


def places_of(name: str) -> list[JavaPlugin]:
    """Every plugin that this process knows under a full Java name; [] if it knows none."""
    return list(_by_class.get(name, {}).values())


def plugins_of_classes(class_names: Iterable[str]) -> tuple[JavaPlugin, ...]:
    """The plugins of some converters, transformations and predicates.

    Raises:
        ConfigError: a class is in several locations, which differ.
    """
    found: list[JavaPlugin] = []
    for name in class_names:
        places = _by_class.get(name, {})
        if len({place.known.content for place in places.values()}) > 1:
            raise _ambiguous(name, places.values())
        if places:
            found.append(next(iter(places.values())))
    return tuple(found)


def folders_of(class_names: Iterable[str]) -> tuple[Path, ...]:
    """Entries of a `plugin.path` for a plugin host that runs them; errors as of `plugins_of_classes`."""
    return tuple(dict.fromkeys(path for plugin in plugins_of_classes(class_names) for path in plugin.folders))


def all_registered() -> list[JavaPlugin]:
    """One plugin for each Java class, sorted by name."""
    return [next(iter(found.values())) for _, found in sorted(_by_class.items()) if found]


def _ambiguous(name: str, found: Iterable[JavaPlugin]) -> ConfigError:
    places = [plugin.location for plugin in found]
    return ConfigError(
        f"The Java class {name} is in several places, which differ: {names(places)}.",
        code="plugin.ambiguous",
        config_path="plugin.path",
        suggestion="Keep one version of the plugin in plugin.path; or, if two workers have one each, give them"
        " processes of their own.",
    )


def _is_connector(plugin: JavaPlugin) -> bool:
    return plugin.kind is PluginKind.CONNECTOR

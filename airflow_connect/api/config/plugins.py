"""Finds the class for a name in a configuration: Java names, Connect's aliases, paths, entry points.

No plugin is imported before `load`, so an empty run resolves names without importing formats or stores. The plugins of
this package are in the tables that `airflow_connect/plugin_tables.py` joins; third-party plugins have entry points.
Aliases as in Connect (PluginUtils): the simple class name, and the simple name without the kind's own name at
its end. Java classes of a worker's `plugin.path` are added at run time (`add`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from airflow_connect.api.config.near_names import did_you_mean, nearest
from airflow_connect.api.config.values import shortened
from airflow_connect.errors import ConfigError

_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")


class PluginKind(Enum):
    """The purpose of a class. The value is (display name, suffix that an alias drops, entry point group)."""

    CONNECTOR = ("connector", "Connector", "airflow_connect.connectors")
    CONVERTER = ("converter", "Converter", "airflow_connect.converters")
    HEADER_CONVERTER = ("header converter", "HeaderConverter", "airflow_connect.converters")
    TRANSFORMATION = ("transformation", "Transformation", "airflow_connect.transforms")
    PREDICATE = ("predicate", "Predicate", "airflow_connect.predicates")
    CONFIG_PROVIDER = ("config provider", "ConfigProvider", "airflow_connect.config_providers")
    FORMAT = ("format", "Format", "airflow_connect.formats")
    PARTITIONER = ("partitioner", "Partitioner", "airflow_connect.partitioners")
    TIMESTAMP_EXTRACTOR = (
        "timestamp extractor",
        "TimestampExtractor",
        "airflow_connect.timestamp_extractors",
    )
    STORAGE = ("storage", "Storage", "airflow_connect.stores")
    CREDENTIALS_PROVIDER = (
        "credentials provider",
        "CredentialsProvider",
        "airflow_connect.credentials_providers",
    )

    @property
    def label(self) -> str:
        """Display name."""
        return self.value[0]

    @property
    def suffix(self) -> str:
        """End of a simple class name that an alias may omit."""
        return self.value[1]

    @property
    def entry_point_group(self) -> str:
        """Entry point group of third-party plugins."""
        return self.value[2]


_JAVA_KINDS = frozenset(
    (
        PluginKind.CONNECTOR,
        PluginKind.CONVERTER,
        PluginKind.HEADER_CONVERTER,
        PluginKind.TRANSFORMATION,
        PluginKind.PREDICATE,
        PluginKind.CONFIG_PROVIDER,
    )
)


class PluginRef(NamedTuple):
    """A resolved name: `path` is `package.module:Class`, `name` is the class name to show and to store.

    A Java class has the path `package.module:function[java class]`: the function makes a class for it.
    """

    kind: PluginKind
    name: str
    path: str

    @property
    def is_java(self) -> bool:
        """Whether it is a Java class, which a JVM runs."""
        return self.path.endswith("]")


PREFERS_JAVA = "airflow.java.prefer"
"""Key of a connector: whether a Java class comes before one of this package with the same name."""
_CONNECTOR_CLASS = "connector.class"

_TABLES = "airflow_connect.plugin_tables:TABLES"
_added: dict[PluginKind, dict[str, str]] = {}
_searched: dict[str, None] = {}
_additions = [0]


def add(kind: PluginKind, paths: Mapping[str, str], place: str = "") -> None:
    """Make Java classes known: name to path of each. Idempotent; a name that is known already gets the new path.

    Args:
        kind: their kind.
        paths: full Java names, and `package.module:function[java class]`.
        place: where they were looked for, for messages: a `plugin.path`.
    """
    _additions[0] += 1
    # Replaced, not changed: other threads may be looking names up.
    _added[kind] = {**_added.get(kind, {}), **paths}
    if place:
        _searched[place] = None


def searched() -> list[str]:
    """Every plugin path in which classes were looked for."""
    return list(_searched)


def additions() -> int:
    """How often classes were added: what is remembered about names and their keys is valid for one such number."""
    return _additions[0]


def java_names(kind: PluginKind) -> list[str]:
    """Java names of all classes of `kind`, built-in and of plugin paths, sorted."""
    return sorted({*_built_in(kind), *_added.get(kind, {})})


def built_in(kind: PluginKind) -> dict[str, str]:
    """Java class name to dotted path of all built-in plugins of `kind`."""
    return dict(_built_in(kind))


def aliases(kind: PluginKind) -> list[str]:
    """Simple class names of the built-in plugins of `kind`, for messages."""
    # `Cast$Value`: only the part of the record distinguishes the two transformations.
    simple = (lambda name: name.rpartition(".")[2]) if kind is PluginKind.TRANSFORMATION else _simple_name
    return list(dict.fromkeys(map(simple, _built_in(kind))))


def resolve(kind: PluginKind, name: str, *, prefers_java: bool = False) -> PluginRef:
    """Find the class that `name` means, without importing it.

    Tried in order: full Java name, dotted Python path (`package.module:Class`, whose module must exist),
    Connect alias of a built-in class, name or alias of a Java class in `plugin.path`, entry point name,
    `package.module.Class`. As in Connect, an ambiguous alias is not resolved.

    Args:
        kind: of the class.
        name: as configured.
        prefers_java: a Java class in `plugin.path` comes first.

    Raises:
        ConfigError: nothing has this name; the message lists the nearest known names.
    """
    if prefers_java and (java := find_added(kind, name)):
        return java
    if name not in _built_in(kind) and _PATH.fullmatch(name) and _module_exists(name.partition(":")[0]):
        return PluginRef(kind, name, name)
    if found := installed(kind, name):
        return found
    module, _, attribute = name.rpartition(".")
    if _DOTTED.fullmatch(name) and _module_exists(module):
        return PluginRef(kind, name, f"{module}:{attribute}")
    raise _not_found(kind, name)


def resolve_connector(config: Mapping[str, Any]) -> PluginRef:
    """Find the class that a connector's configuration names; `airflow.java.prefer` decides between two of one name.

    Raises:
        ConfigError: nothing has this name.
    """
    name = str(config.get(_CONNECTOR_CLASS) or "").strip()
    return resolve(PluginKind.CONNECTOR, name, prefers_java=prefers_java(config))


def prefers_java(config: Mapping[str, Any]) -> bool:
    """Whether `airflow.java.prefer` is true."""
    return str(config.get(PREFERS_JAVA) or "").strip().lower() == "true"


def note_on_choice(config: Mapping[str, Any]) -> tuple[str, ...]:
    """A sentence about the class of a connector, if there is one in Python and one in Java."""
    name = str(config.get(_CONNECTOR_CLASS) or "").strip()
    java = find_added(PluginKind.CONNECTOR, name)
    taken = resolve_connector(config)
    if java is None or (taken.is_java and resolve(PluginKind.CONNECTOR, name).is_java):
        return ()
    if taken.is_java:
        return (f"{name} is the Java class {java.name} of plugin.path, because {PREFERS_JAVA} is true.",)
    there_is = f"plugin.path has a Java class of this name, {java.name}: {PREFERS_JAVA}=true takes that one."
    return (f"{name} is the connector of this package. {there_is}",)


def installed(kind: PluginKind, name: str) -> PluginRef | None:
    """A plugin of this package, a Java class of a plugin path, or an entry point; None if `name` is none of them."""
    table = _built_in(kind)
    if name in table:
        return PluginRef(kind, name, table[name])
    if name in table.values():
        return PluginRef(kind, name, name)
    # Before entry points: reading those of a whole Airflow installation takes 40 ms.
    by_alias = _by_alias(kind)
    if name in by_alias:
        return PluginRef(kind, *by_alias[name])
    if java := find_added(kind, name):
        return java
    registered = _registered(kind)
    return PluginRef(kind, name, registered[name]) if name in registered else None


def find_added(kind: PluginKind, name: str) -> PluginRef | None:
    """The Java class of a plugin path that `name` means, by its full name or an alias that only one class has."""
    known = _added.get(kind, {})
    if name in known:
        return PluginRef(kind, name, known[name])
    if not known or "." in name or ":" in name:
        return None
    full = [java for java in known if name in java_aliases(kind, java)]
    return PluginRef(kind, full[0], known[full[0]]) if len(full) == 1 else None


def java_aliases(kind: PluginKind, java_name: str) -> set[str]:
    """Source: PluginUtils.computeAliases: Java's simple name, and what is before the last name of the kind in it."""
    simple = _simple_name(java_name)
    at = simple.rfind(kind.suffix)
    return {simple, simple[:at] if at > 0 else simple}


def entry_point_names(kind: PluginKind) -> list[str]:
    """Names of third-party plugins, without importing them."""
    from importlib.metadata import entry_points  # the import alone takes 20 ms

    return sorted({point.name for point in entry_points(group=kind.entry_point_group)} - set(_built_in(kind)))


def load(ref: PluginRef) -> Any:
    """Import the class.

    Raises:
        ConfigError: the module cannot be imported, whatever it raises, or has no such attribute.
    """
    path, _, argument = ref.path.removesuffix("]").partition("[")
    module_name, _, attribute = path.partition(":")
    try:
        found: Any = import_module(module_name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (KeyboardInterrupt, MemoryError):
        raise
    except (ImportError, AttributeError) as error:
        raise _not_loadable(ref, str(error), "Install its package where the driver and the executors run.") from error
    except BaseException as error:
        # The code of a plugin, and a worker runs other connectors too: not even SystemExit may end it.
        why = f"the import ended with {type(error).__name__}: {error}"
        raise _not_loadable(ref, why, "Repair the module, so that it can be imported.") from error
    return found(argument) if argument else found


def _not_loadable(ref: PluginRef, why: str, suggestion: str) -> ConfigError:
    return ConfigError(
        f"The {ref.kind.label} {ref.name} cannot be loaded from {ref.path}: {why.removesuffix('.')}.",
        suggestion=suggestion,
        code="plugin.not_loadable",
    )


def load_path(path: str) -> Any:
    """Import the target of a dotted path (`package.module:Class`) in a class attribute; a mistake there is a bug."""
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)


def load_class(kind: PluginKind, name: str) -> Any:
    """`resolve`, then `load`."""
    return load(resolve(kind, name))


def _simple_name(java_name: str) -> str:
    return re.split(r"[.$:]", java_name)[-1]


@cache
def _built_in(kind: PluginKind) -> dict[str, str]:
    """The tables are next to the plugins, in a layer above this module, so they are loaded by path, like a plugin."""
    tables: dict[PluginKind, dict[str, str]] = load_path(_TABLES)
    return tables[kind]


@cache
def _by_alias(kind: PluginKind) -> dict[str, tuple[str, str]]:
    """Alias to (full name, path); ambiguous aliases are omitted."""
    found: dict[str, list[tuple[str, str]]] = {}
    for full, path in _built_in(kind).items():
        simple = _simple_name(full)
        nested = full.rpartition(".")[2]
        for alias in {simple, nested, simple.removesuffix(kind.suffix)}:
            found.setdefault(alias, []).append((full, path))
    return {alias: refs[0] for alias, refs in found.items() if len({path for _, path in refs}) == 1}


@cache
def _registered(kind: PluginKind) -> dict[str, str]:
    """Third-party entry points: their names and their paths."""
    from importlib.metadata import entry_points  # the import alone takes 20 ms

    found: dict[str, str] = {}
    for point in entry_points(group=kind.entry_point_group):
        found[point.name] = found[point.value] = point.value
    return found


def _module_exists(module: str) -> bool:
    from importlib.util import find_spec

    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # a parent package is missing, or a loaded module without a spec
        return False
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException:  # noqa: BLE001 (`load` meets it again and reports it)
        return True


def _not_found(kind: PluginKind, name: str) -> ConfigError:
    known = [*_built_in(kind), *_by_alias(kind), *_registered(kind), *_added.get(kind, {})]
    near = nearest(name, known, count=3) or nearest(_simple_name(name), _by_alias(kind), count=3)
    hint = did_you_mean(near) or f"Known: {', '.join(aliases(kind))}."
    if several := [java for java in _added.get(kind, {}) if name in java_aliases(kind, java)]:
        hint = f"The alias fits several Java classes, so use a full name: {', '.join(several)}."
    return ConfigError(
        f"There is no {kind.label} called {shortened(name)!r}.",
        code="plugin.not_found",
        suggestion=f"{hint} Specify your own plugin by its dotted path, package.module:Class.{java_hint(kind)}",
    )


def java_hint(kind: PluginKind) -> str:
    """Where Java classes of a kind were looked for, or would be: a sentence after a blank, or ""."""
    if kind not in _JAVA_KINDS:
        return ""
    if not _searched:
        return " For a Java plugin, put its jars into a folder of the worker's plugin.path."
    return f" Java plugins were looked for in plugin.path, {'; '.join(_searched)}, on this machine."

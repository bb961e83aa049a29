"""Finds the plugins of a location without Java, by the super types of its classes.

The result is that of Kafka Connect's own scan, which starts a JVM and takes ten times as long: public classes that are
neither abstract nor interfaces, have a public constructor without parameters, and are loaded from the plugin's folder.
What only Java can find out is not known here: a constructor that fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_connect.api.json_document import JsonDocument
from airflow_connect.counting import counted
from airflow_connect.jvm.discovery.archives import Contents, Place, class_files, read_again
from airflow_connect.jvm.discovery.class_files import (
    BrokenClassError,
    ClassHeader,
    has_public_constructor,
    read_header,
    runtime_names,
)
from airflow_connect.jvm.discovery.locations import Location
from airflow_connect.jvm.discovery.runtime_types import INTERFACES, KINDS, SERVICES, SUBTYPES, is_isolated

_RUNTIME = "org/apache/kafka/connect/runtime/"


@dataclass(frozen=True, slots=True)
class FoundPlugin(JsonDocument):
    """A class that is a plugin: `kind` is one of `KINDS`; `is_declared`: META-INF/services names it."""

    kind: str
    class_name: str
    is_declared: bool


@dataclass(frozen=True, slots=True)
class ScannedLocation(JsonDocument):
    """What one plugin folder or archive holds.

    Attributes:
        plugins: sorted by kind and name.
        classes: how many class files were read.
        runtime_uses: classes that use `org.apache.kafka.connect.runtime`, and the names there. Such a class may rely on
            the insides of a Kafka Connect worker.
        warnings: complete sentences about what cannot be read.
    """

    plugins: tuple[FoundPlugin, ...] = ()
    classes: int = 0
    runtime_uses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def undeclared(self) -> dict[str, list[str]]:
        """By kind, the classes that Kafka Connect would not find by META-INF/services."""
        found: dict[str, list[str]] = {}
        for plugin in self.plugins:
            if not plugin.is_declared:
                found.setdefault(plugin.kind, []).append(plugin.class_name)
        return found


def scan(location: Location) -> ScannedLocation:
    """Read all classes of a location."""
    scanning = _Scan()
    scanning.read(location)
    found = scanning.plugins()
    return ScannedLocation(
        plugins=found,
        classes=scanning.classes,
        runtime_uses=dict(sorted(scanning.runtime_uses.items())),
        warnings=tuple(scanning.contents.warnings),
    )


class _Scan:
    """One pass over the classes of a location, and a second look at those that may be plugins."""

    def __init__(self) -> None:
        self.contents = Contents()
        self.places: dict[str, Place] = {}
        self.runtime_uses: dict[str, tuple[str, ...]] = {}
        self.classes = 0
        self._headers: dict[str, ClassHeader] = {}
        self._kinds: dict[str, frozenset[str]] = {}

    def read(self, location: Location) -> None:
        broken: dict[str, list[str]] = {}
        for place, data in class_files(location, self.contents):
            self.classes += 1
            try:
                self._add(place, data)
            except BrokenClassError as error:
                if place.member:
                    broken.setdefault(place.path, []).append(f"{place.member}: {error}")
                else:
                    self.contents.warnings.append(f"{place.path} cannot be read: {error}.")
        for path, reasons in broken.items():
            self.contents.warnings.append(
                f"{path} has {counted(len(reasons), 'class file')} that cannot be read, for example {reasons[0]}."
            )

    def _add(self, place: Place, data: bytes) -> None:
        header = read_header(data)
        if header.name in self._headers:
            return  # The first one on the class path is loaded.
        self._headers[header.name] = header
        self.places[header.name] = place
        if not header.name.startswith(_RUNTIME) and (names := runtime_names(data)):
            self.runtime_uses[header.name.replace("/", ".")] = names

    def plugins(self) -> tuple[FoundPlugin, ...]:
        """Every class that Kafka Connect would offer, sorted by kind and name."""
        kinds = {
            name: self.kinds(name)
            for name, header in self._headers.items()
            if header.is_usable and is_isolated(name.replace("/", "."))
        }
        places = {self.places[name]: name for name, found in kinds.items() if found}
        found = []
        for place, data in read_again(places):
            name = places[place]
            if has_public_constructor(data):
                class_name = name.replace("/", ".")
                for kind in kinds[name]:
                    is_declared = class_name in self.contents.services.get(SERVICES[kind], ())
                    found.append(FoundPlugin(kind, class_name, is_declared))
        return tuple(sorted(found, key=lambda plugin: (KINDS.index(plugin.kind), plugin.class_name)))

    def kinds(self, name: str) -> frozenset[str]:
        """The kinds of plugins that a class is, by all of its super types."""
        if name in INTERFACES:
            return frozenset((INTERFACES[name],))
        if name in self._kinds:
            return self._kinds[name]
        self._kinds[name] = frozenset()  # A circle of super types, which no compiler makes, ends here.
        header = self._headers.get(name)
        if header is None or not is_isolated(name.replace("/", ".")):
            self._kinds[name] = frozenset(SUBTYPES.get(name, ()))
        else:
            self._kinds[name] = frozenset(kind for parent in header.super_types for kind in self.kinds(parent))
        return self._kinds[name]

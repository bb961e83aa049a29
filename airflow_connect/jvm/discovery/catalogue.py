"""The Java plugins of a `plugin.path`: scanned once, described by Java once, both kept in the cache.

Everything about one location is in one folder of the cache, named after its files: their paths, sizes and times. It is
complete or does not exist.

```
java-plugins/<fingerprint>/scan.json        the plugins, without Java
java-plugins/<fingerprint>/plugins/         what a plugin host gets: overlay.py
java-plugins/<fingerprint>/described.json   versions and ConfigDefs, written when they are first needed
```
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from airflow_connect.counting import names
from airflow_connect.errors import ConfigError, StateError
from airflow_connect.jvm.cache import cache_dir, locked
from airflow_connect.jvm.discovery.locations import Location, read_plugin_path
from airflow_connect.jvm.discovery.overlay import make_overlay
from airflow_connect.jvm.discovery.scanning import FoundPlugin, ScannedLocation, scan

_FORMAT = "1"
"""Of the folder in the cache, and of what the scan finds."""
_UNUSED_DAYS = 14
_PLUGINS = "plugins"


@dataclass(frozen=True)
class KnownLocation:
    """A plugin folder or archive whose contents are in the cache.

    Attributes:
        location: its files.
        scanned: its plugins.
        folder: in the cache.
    """

    location: Location
    scanned: ScannedLocation
    folder: Path

    @property
    def path(self) -> str:
        """Of the user's folder or archive."""
        return self.location.path

    @property
    def overlay(self) -> Path:
        """What a plugin host gets: an entry of `plugin.path` with this plugin only."""
        return self.folder / _PLUGINS

    @cached_property
    def content(self) -> str:
        """A digest of the names and sizes of its files: equal on all machines that have the same plugin."""
        files = (f"{os.path.basename(file.path)} {file.size}" for file in self.location.files)
        return hashlib.sha256("\n".join(files).encode()).hexdigest()[:16]

    def described(self) -> dict[str, dict[str, Any]]:
        """By class, what Java has said about it so far: see `describing.py`."""
        try:
            found: dict[str, dict[str, Any]] = json.loads(self._described.read_text())
        except (FileNotFoundError, ValueError):
            return {}
        return found

    def keep_described(self, described: Mapping[str, Any]) -> None:
        """Add what Java says about classes."""
        with locked(f"java-plugins-{self.folder.name}"):
            handle, draft = tempfile.mkstemp(dir=self.folder)
            with os.fdopen(handle, "w") as out:
                json.dump({**self.described(), **described}, out)
            os.replace(draft, self._described)

    @property
    def _described(self) -> Path:
        return self.folder / "described.json"


@dataclass(frozen=True)
class JavaPlugin:
    """A Java class that is a plugin.

    Attributes:
        class_name: with dots: `org.acme.Sink$Key`.
        kinds: what it is, in the order of `KINDS`: a converter may be a header converter, too.
        known: the location that it is in.
    """

    class_name: str
    kinds: tuple[str, ...]
    known: KnownLocation

    @property
    def kind(self) -> str:
        """Its first kind."""
        return self.kinds[0]

    @property
    def location(self) -> str:
        """The user's folder or archive."""
        return self.known.path

    @property
    def folders(self) -> tuple[Path, ...]:
        """Entries of a `plugin.path` for a plugin host that runs this class."""
        return (self.known.overlay,)

    @property
    def runtime_uses(self) -> Mapping[str, tuple[str, ...]]:
        """Classes of the same location that use the insides of a Kafka Connect worker, and the names they use."""
        return self.known.scanned.runtime_uses


@dataclass(frozen=True)
class Catalogue:
    """All plugins of a `plugin.path`.

    Attributes:
        text: the `plugin.path`.
        plugins: by location, then kind and name. Two locations may have the same class.
        warnings: complete sentences about what is missing, unreadable or in the wrong place.
    """

    text: str
    locations: tuple[KnownLocation, ...]
    plugins: tuple[JavaPlugin, ...]
    warnings: tuple[str, ...]

    @classmethod
    def of(cls, plugin_path: str) -> Catalogue:
        """Read a `plugin.path`; what is in the cache is not read again.

        Raises:
            ConfigError: the cache cannot be written.
        """
        path = read_plugin_path(plugin_path)
        try:
            known = tuple(_known(location) for location in path.locations)
        except OSError as error:
            raise ConfigError(
                f"The plugins of plugin.path cannot be prepared: {error}.",
                code="java.plugin_path",
                config_path="plugin.path",
                suggestion="Make the folder of the cache writable, or set AIRFLOW_CONNECT_CACHE to another one.",
            ) from error
        warnings = [*path.warnings]
        for one in known:
            warnings += [*one.location.warnings, *one.scanned.warnings]
        warnings += _misplaced(known)
        plugins = tuple(plugin for one in known for plugin in _plugins_of(one))
        return cls(plugin_path, known, plugins, tuple(dict.fromkeys(warnings)))


def _plugins_of(known: KnownLocation) -> Iterable[JavaPlugin]:
    by_class: dict[str, list[FoundPlugin]] = {}
    for found in known.scanned.plugins:
        by_class.setdefault(found.class_name, []).append(found)
    return [JavaPlugin(name, tuple(found.kind for found in same), known) for name, same in by_class.items()]


def _misplaced(known: Iterable[KnownLocation]) -> list[str]:
    """Entries of `plugin.path` that look like the folder of one plugin: a jar with plugins beside jars without any.

    Each of these jars has a class loader of its own, so the plugin does not see its libraries.
    """
    by_entry: dict[str, list[KnownLocation]] = {}
    for one in known:
        if one.location.archives and one.path == os.path.join(os.path.abspath(one.location.entry), _base(one.path)):
            by_entry.setdefault(one.location.entry, []).append(one)
    sentences = []
    for entry, ones in by_entry.items():
        jars = [one for one in ones if not os.path.isdir(one.path)]
        with_plugins = [_base(one.path) for one in jars if one.scanned.plugins]
        without = [_base(one.path) for one in jars if not one.scanned.plugins and one.scanned.classes]
        if with_plugins and without:
            sentences.append(
                f"plugin.path names {entry}, which looks like the folder of one plugin: {names(with_plugins)} cannot"
                f" use {names(without, 2)} beside it, because each jar directly in an entry of plugin.path is a plugin"
                f" by itself. Name the folder above it: {os.path.dirname(os.path.abspath(entry))}."
            )
    return sentences


def _base(path: str) -> str:
    return os.path.basename(path)


def _known(location: Location) -> KnownLocation:
    """The contents of a location, from the cache, where they are put if they are not there yet."""
    fingerprint = hashlib.sha256("\n".join(_depends_on(location)).encode("utf-8", "surrogateescape")).hexdigest()[:20]
    root = cache_dir() / "java-plugins"
    folder = root / fingerprint
    scanned = _cached(folder)
    if scanned is None:
        root.mkdir(exist_ok=True)
        with locked(f"java-plugins-{fingerprint}"):
            scanned = _cached(folder)
            if scanned is None:
                scanned = scan(location)
                _write(folder, location, scanned)
                _remove_unused(root)
    return KnownLocation(location, scanned, folder)


def _depends_on(location: Location) -> list[str]:
    files = (f"{file.path}\0{file.size}\0{file.changed_ns}" for file in location.files)
    return [_FORMAT, os.path.realpath(location.path), *files]


def _cached(folder: Path) -> ScannedLocation | None:
    try:
        scanned = ScannedLocation.from_json(json.loads((folder / "scan.json").read_text()))
    except (FileNotFoundError, NotADirectoryError, ValueError, StateError):
        return None
    with contextlib.suppress(OSError):  # The cache may belong to another user.
        os.utime(folder)
    return scanned


def _write(folder: Path, location: Location, scanned: ScannedLocation) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".draft-") as scratch:
        draft = Path(scratch) / folder.name
        make_overlay(draft / _PLUGINS, location, scanned.undeclared)
        (draft / "scan.json").write_text(json.dumps(scanned.to_json()))
        if folder.exists():  # It is damaged: a complete one has been looked for.
            shutil.rmtree(folder)
        os.rename(draft, folder)


def _remove_unused(root: Path) -> None:
    """Remove what no process has looked at for `_UNUSED_DAYS`, and drafts of processes that were killed."""
    oldest = time.time() - _UNUSED_DAYS * 86_400
    for folder in root.iterdir():
        with contextlib.suppress(OSError):  # Another process may remove it, too.
            if folder.stat().st_mtime < oldest:
                shutil.rmtree(folder)

"""The plugins of a `plugin.path`: which folders and archives are one plugin each, and which files belong to it.

Source: org.apache.kafka.connect.runtime.isolation.PluginUtils (Kafka 4.3.1). What a worker only logs is a warning here.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_ARCHIVES = (".jar", ".zip")


@dataclass(frozen=True, slots=True)
class PluginFile:
    """A file of a plugin: `size` in bytes, `changed_ns` is its modification time."""

    path: str
    size: int
    changed_ns: int


@dataclass(frozen=True, slots=True)
class Location:
    """One plugin: everything in it has one class loader.

    Attributes:
        path: of its folder or archive, absolute.
        entry: the entry of `plugin.path` that it is in, as written there.
        archives: its jars, in the order of the class path; () for a tree of class files.
        tree: files of a tree of class files, sorted; () if there is an archive.
        warnings: complete sentences about files that are not read.
    """

    path: str
    entry: str
    archives: tuple[PluginFile, ...] = ()
    tree: tuple[PluginFile, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[PluginFile, ...]:
        """All files whose change changes the plugin."""
        return self.archives or self.tree


@dataclass(frozen=True, slots=True)
class PluginPath:
    """The locations of a `plugin.path`, and sentences about what is missing or unreadable."""

    entries: tuple[str, ...]
    locations: tuple[Location, ...]
    warnings: tuple[str, ...]


def read_plugin_path(text: str) -> PluginPath:
    """Look at every entry of a `plugin.path`; nothing is raised for one that cannot be read."""
    entries = tuple(filter(None, map(str.strip, text.split(","))))
    locations: dict[str, Location] = {}
    warnings: list[str] = []
    for entry in dict.fromkeys(entries):
        for path in _children(entry, warnings):
            location = _location(path, entry)
            locations.setdefault(os.path.realpath(path), location)
    return PluginPath(entries, tuple(locations.values()), tuple(warnings))


def _children(entry: str, warnings: list[str]) -> list[str]:
    """The plugins of an entry: folders and archives in it, or the archive that it is."""
    top = os.path.abspath(entry)
    if not os.path.exists(top):
        warnings.append(f"plugin.path names {entry}, which does not exist on this machine; nothing is read from there.")
        return []
    if not os.path.isdir(top):
        if _is_archive(top):
            return [top]
        warnings.append(
            f"plugin.path names {entry}, which is neither a folder nor a jar. Name the folder that holds the folders"
            " of the plugins."
        )
        return []
    try:
        names = sorted(os.listdir(top))
    except OSError as error:
        warnings.append(f"plugin.path names {entry}, which cannot be read: {error.strerror}.")
        return []
    loose = [name for name in names if _is_class(name)]
    if loose:
        warnings.append(
            f"{loose[0]} lies directly in {entry} of plugin.path, where classes are not read. Put classes into a folder"
            " of their own, with the folders of their packages, or into a jar."
        )
    paths = (os.path.join(top, name) for name in names)
    return [path for path in paths if os.path.isdir(path) or (_is_archive(path) and os.path.isfile(path))]


def _location(path: str, entry: str) -> Location:
    if not os.path.isdir(path):
        archives, warnings = _stated([os.path.realpath(path)])
        return Location(path, entry, archives, (), warnings)
    found, problems = _walk(path)
    archives, unread = _stated(sorted({file for file in found if _is_archive(file)}))
    has_classes = any(_is_class(file) for file in found)
    problems = [*problems, *unread]
    if archives or not has_classes:
        if has_classes:
            problems.append(f"{path} holds jars and class files; only the jars are read, as in Kafka Connect.")
        return Location(path, entry, archives, (), tuple(problems))
    tree, unread = _stated(sorted(set(found)))
    return Location(path, entry, (), tree, (*problems, *unread))


def _walk(top: str) -> tuple[list[str], list[str]]:
    """Every file below a folder by its real path, and what cannot be read. Each folder is visited once."""
    found: list[str] = []
    problems: list[str] = []
    seen = {os.path.realpath(top)}
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        try:
            names = sorted(os.listdir(folder))
        except OSError as error:
            problems.append(f"{folder} cannot be read: {error.strerror}.")
            continue
        for name in names:
            path = os.path.join(folder, name)
            real = os.path.realpath(path)
            if os.path.isdir(real):
                if real not in seen:
                    seen.add(real)
                    waiting.append(real)
            elif os.path.isfile(real):
                found.append(real)
            elif os.path.islink(path) and (_is_archive(path) or _is_class(path)):
                problems.append(f"{path} is a link to {os.readlink(path)}, which does not exist.")
    return found, problems


def _stated(paths: list[str]) -> tuple[tuple[PluginFile, ...], tuple[str, ...]]:
    files, problems = [], []
    for path in paths:
        try:
            state = os.stat(path)
        except OSError as error:
            problems.append(f"{path} cannot be read: {error.strerror}.")
            continue
        files.append(PluginFile(path, state.st_size, state.st_mtime_ns))
    return tuple(files), tuple(problems)


def _is_archive(path: str) -> bool:
    return path.lower().endswith(_ARCHIVES)


def _is_class(path: str) -> bool:
    return path.lower().endswith(".class")


def relative_name(location: Location, file: PluginFile) -> str:
    """The name of a class file or resource in its tree, with slashes."""
    return Path(os.path.relpath(file.path, os.path.realpath(location.path))).as_posix()

"""The class files and service files of one plugin, from its jars or its tree of class files."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from airflow_connect.jvm.discovery.locations import Location, PluginFile, relative_name

SERVICES_FOLDER = "META-INF/services/"
_VERSIONED = re.compile(r"META-INF/versions/(\d+)/(.+)")
_JAVA = 17
"""The oldest Java that runs plugins: classes of a multi-release jar for newer ones are not counted on."""
UNREADABLE = (OSError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, UnicodeDecodeError)
"""What `zipfile` raises for a damaged, encrypted or unreadable archive."""


class Place(NamedTuple):
    """Where a class file is: the archive and the member's name; or the path of a file, and ""."""

    path: str
    member: str = ""


@dataclass(slots=True)
class Contents:
    """What was seen beside classes while a plugin was read.

    Attributes:
        services: class names by the name of their file in META-INF/services.
        warnings: complete sentences about files that cannot be read.
    """

    services: dict[str, set[str]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def class_files(location: Location, contents: Contents) -> Iterator[tuple[Place, bytes]]:
    """Every class file, in the order of the class path."""
    for archive in location.archives:
        yield from _of_archive(archive.path, contents)
    for file in location.tree:
        yield from _of_tree(location, file, contents)


def read_again(places: Iterable[Place]) -> Iterator[tuple[Place, bytes]]:
    """Class files that `class_files` has read before.

    Raises:
        OSError, zipfile.BadZipFile: they have changed.
    """
    by_path: dict[str, list[Place]] = {}
    for place in places:
        by_path.setdefault(place.path, []).append(place)
    for path, found in by_path.items():
        if not found[0].member:
            with open(path, "rb") as opened:
                yield found[0], opened.read()
            continue
        with zipfile.ZipFile(path) as archive:
            for place in found:
                yield place, archive.read(place.member)


def _of_tree(location: Location, file: PluginFile, contents: Contents) -> Iterator[tuple[Place, bytes]]:
    name = relative_name(location, file)
    is_class = _is_class(name)
    if not is_class and not name.startswith(SERVICES_FOLDER):
        return
    try:
        with open(file.path, "rb") as opened:
            data = opened.read()
        if not is_class:
            _add_services(name, data, contents)
    except UNREADABLE as error:
        contents.warnings.append(_unreadable(file.path, error))
        return
    if is_class:
        yield Place(file.path), data


def _of_archive(path: str, contents: Contents) -> Iterator[tuple[Place, bytes]]:
    count, nested = 0, ""
    try:
        with zipfile.ZipFile(path) as opened:
            names = opened.namelist()
            nested = next((name for name in names if name.lower().endswith(".jar")), "")
            for name in [*filter(_is_class, names), *_versioned(opened, names)]:
                count += 1
                yield Place(path, name), opened.read(name)
            for name in names:
                if name.startswith(SERVICES_FOLDER) and name != SERVICES_FOLDER:
                    _add_services(name, opened.read(name), contents)
    except UNREADABLE as error:
        contents.warnings.append(_unreadable(path, error))
    if nested and not count:
        contents.warnings.append(
            f"{path} holds jars, for example {nested}, and no classes. Jars inside an archive are not read:"
            " unpack it into a folder of plugin.path."
        )


def _versioned(opened: zipfile.ZipFile, names: list[str]) -> list[str]:
    """Class files of a multi-release jar that it has for newer Java only."""
    found: dict[str, str] = {}
    base = set(names)
    for name in names:
        match = _VERSIONED.fullmatch(name)
        if match and int(match[1]) <= _JAVA and _is_class(match[2]) and match[2] not in base:
            found[match[2]] = name
    return list(found.values()) if found and _is_multi_release(opened) else []


def _is_multi_release(opened: zipfile.ZipFile) -> bool:
    try:
        manifest = opened.read("META-INF/MANIFEST.MF")
    except KeyError:
        return False
    return re.search(rb"(?mi)^Multi-Release:\s*true\s*$", manifest) is not None


def _is_class(name: str) -> bool:
    return name.endswith(".class") and not name.startswith("META-INF/") and not name.endswith("-info.class")


def _add_services(name: str, data: bytes, contents: Contents) -> None:
    """Source: java.util.ServiceLoader: one class name a line, `#` begins a comment."""
    lines = (line.partition("#")[0].strip() for line in data.decode("utf-8").splitlines())
    contents.services.setdefault(name.removeprefix(SERVICES_FOLDER), set()).update(filter(None, lines))


def _unreadable(path: str, error: BaseException) -> str:
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error) or type(error).__name__
    return f"{path} cannot be read: {why.rstrip('.')}."

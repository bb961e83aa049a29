"""What is known about one plugin folder or archive: scanned once, described by Java once, both kept in the cache.

Everything about one location is in one folder of the cache, named after its files: their paths, sizes and times. It is
complete or does not exist.

```
java-plugins/<fingerprint>/scan.json        the plugins, without Java
java-plugins/<fingerprint>/content          a digest of what its files hold
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
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from airflow_connect.errors import StateError
from airflow_connect.jvm.cache import cache_dir, locked
from airflow_connect.jvm.discovery.locations import Location
from airflow_connect.jvm.discovery.overlay import make_overlay
from airflow_connect.jvm.discovery.scanning import ScannedLocation, scan

_FORMAT = "2"
"""Of the folder in the cache, and of what the scan finds."""
_UNUSED_DAYS = 14
_PLUGINS, _CONTENT = "plugins", "content"
_read: dict[Path, tuple[int, dict[str, dict[str, Any]]]] = {}
"""What was read of `described.json`, and the time of the file."""


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
        """A digest of the names of its files and what they hold: equal on all machines that have the same plugin.

        Files are read once, when they are scanned.
        """
        try:
            return (self.folder / _CONTENT).read_text()
        except FileNotFoundError:  # Another process has removed an entry that was unused for long.
            return _digest(self.location)

    def described(self) -> dict[str, dict[str, Any]]:
        """By class, what Java has said about it so far: see `describing.py`. Not to be changed."""
        try:
            changed_ns = self._described.stat().st_mtime_ns
            before = _read.get(self._described)
            if before is None or before[0] != changed_ns:
                before = _read[self._described] = changed_ns, json.loads(self._described.read_text())
        except (FileNotFoundError, ValueError):
            return {}
        return before[1]

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


def known_location(location: Location) -> KnownLocation:
    """The contents of a location, from the cache, where they are put if they are not there yet.

    Raises:
        OSError: the cache cannot be written.
    """
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


def _digest(location: Location) -> str:
    """Files in the order of their names: the links of two machines may lead to other folders."""
    found = hashlib.sha256()
    for file in sorted(location.files, key=lambda one: os.path.basename(one.path)):
        found.update(f"{os.path.basename(file.path)}\0{file.size}\0".encode("utf-8", "surrogateescape"))
        with contextlib.suppress(OSError), open(file.path, "rb") as data:  # The scan has warned of it.
            found.update(hashlib.file_digest(data, "sha256").digest())
    return found.hexdigest()[:16]


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
        (draft / _CONTENT).write_text(_digest(location))
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

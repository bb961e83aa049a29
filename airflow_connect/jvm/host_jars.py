"""The class path of a plugin host: the helper, and Kafka Connect's runtime without its servers."""

from __future__ import annotations

import os
import tempfile
import zipfile
from pathlib import Path

from airflow_connect.errors import JavaVersionError
from airflow_connect.jvm.cache import cache_dir
from airflow_connect.jvm.jars.locked_jars import fetch_jars

LOCK = "connect-host-4.3.1"
HELPER = Path(__file__).with_name("helper") / "host.jar"
_BLACKBIRD = "jackson-module-blackbird"
_SERVICES = "META-INF/services/"
_NEEDED = "connect-runtime"
_HOME = "home"
_of_worker: dict[str, Path] = {}


def use_connect_home(folder: Path) -> None:
    """Let hosts of this process take the runtime from a folder that a worker names, unless a connector names another.

    Without it, a machine without a network could not ask Java about the keys of a connector, whose configuration names
    the folder.
    """
    _of_worker[_HOME] = folder


def runtime_jars(connect_home: Path | None = None) -> list[Path]:
    """Return the jars of Kafka Connect's runtime, always in the same order.

    Args:
        connect_home: a folder with the jars of a Kafka installation (`libs`); None: that of the worker, or else fetch
            those of the lock.

    Raises:
        JavaVersionError: the folder has no `connect-runtime`.
        JarsError: the jars could not be fetched.
    """
    connect_home = connect_home or _of_worker.get(_HOME)
    jars = fetch_jars(LOCK) if connect_home is None else sorted(connect_home.glob("*.jar"))
    if not any(_NEEDED in jar.name for jar in jars):
        raise JavaVersionError(
            f"The folder {connect_home} has no jar {_NEEDED}-*.jar.",
            config_path="airflow.java.connect.home",
            suggestion="Name the folder libs of a Kafka 4.1 or newer, or leave the key out.",
        )
    return [_without_services(jar) if _BLACKBIRD in jar.name else jar for jar in jars]


def _without_services(jar: Path) -> Path:
    """A copy of a jar without its service files.

    Kafka Connect's JsonConverter needs Jackson's Blackbird module. Its service file, on the class path of every
    plugin, breaks those that bring their own Jackson ("BlackbirdModule not a subtype").
    """
    found = jar.stat()
    folder = cache_dir() / "jars" / "without-services"
    copy = folder / f"{jar.stem}-{found.st_size}-{found.st_mtime_ns}.jar"
    if not copy.exists():
        folder.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "wb") as out, zipfile.ZipFile(jar) as old, zipfile.ZipFile(out, "w") as new:
            for entry in old.infolist():
                if not entry.filename.startswith(_SERVICES):
                    new.writestr(entry, old.read(entry))
        os.chmod(draft, 0o644)
        os.replace(draft, copy)
    return copy

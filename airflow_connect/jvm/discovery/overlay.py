"""What a plugin host gets for a plugin: a private folder with links to its jars and the service files that it lacks.

Kafka Connect finds plugins by META-INF/services in two seconds, by its own scan in up to fifty. Many plugins have no
such files; the scan of this package knows what they would say. The user's folder is never written to.

```
<folder>/<name of the plugin>/001-connector.jar -> /opt/plugins/connector/connector.jar
<folder>/<name of the plugin>/airflow-connect-services.jar
```
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from airflow_connect.jvm.discovery.archives import SERVICES_FOLDER
from airflow_connect.jvm.discovery.locations import Location, relative_name
from airflow_connect.jvm.discovery.runtime_types import SERVICES

_SERVICES_JAR = "airflow-connect-services.jar"
_CLASSES_JAR = "airflow-connect-classes.jar"
_ODD = re.compile(r"[^A-Za-z0-9._-]")


def make_overlay(folder: Path, location: Location, undeclared: Mapping[str, Sequence[str]]) -> None:
    """Fill a new folder, which is then an entry of `plugin.path` with this one plugin.

    Args:
        folder: does not exist yet.
        location: the plugin.
        undeclared: by kind, classes that no service file names.

    Raises:
        OSError: the folder cannot be written.
    """
    # Kafka Connect takes a folder whose name ends with .jar for a jar.
    name = os.path.basename(location.path).removesuffix(".jar").removesuffix(".zip")
    plugin = folder / (_ODD.sub("_", name) or "plugin")
    plugin.mkdir(parents=True)
    for number, archive in enumerate(location.archives):
        (plugin / f"{number:03}-{_ODD.sub('_', os.path.basename(archive.path))}").symlink_to(archive.path)
    if location.tree:
        _pack(plugin / _CLASSES_JAR, location)
    if undeclared:
        with zipfile.ZipFile(plugin / _SERVICES_JAR, "w") as jar:
            for kind, names in undeclared.items():
                jar.writestr(f"{SERVICES_FOLDER}{SERVICES[kind]}", "".join(f"{name}\n" for name in names))


def _pack(jar: Path, location: Location) -> None:
    """A tree of class files as a jar: Kafka Connect reads either jars or class files of a folder, not both."""
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in location.tree:
            packed.write(file.path, relative_name(location, file))

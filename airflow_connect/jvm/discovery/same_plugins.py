"""Whether a task has the same Java plugins as the driver that planned it.

The folders of `plugin.path` are copied to each machine by whoever runs it, so one machine may have an older version, or
none. The driver tells each task what its plugins hold; the task compares that with its own cache.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from airflow_connect.counting import counted
from airflow_connect.errors import MissingPluginError
from airflow_connect.jvm.discovery.java_plugin import JavaPlugin, places_of


@dataclass(frozen=True, slots=True)
class UsedPlugin:
    """A plugin of a run, as the driver has it.

    Attributes:
        class_name: a class of it that the run uses.
        path: of its folder or archive.
        content: `KnownLocation.content`.
        about: version and files, for people.
    """

    class_name: str
    path: str
    content: str
    about: str

    @classmethod
    def of(cls, plugin: JavaPlugin) -> UsedPlugin:
        """What this process has. No JVM is started: the version is there if Java was asked before."""
        known = plugin.known
        version = known.described().get(plugin.class_name, {}).get("version")
        size = sum(file.size for file in known.location.files)
        files = f"{counted(len(known.location.files), 'file')} with {size:,} bytes, digest {known.content}"
        return cls(plugin.class_name, known.path, known.content, f"version {version}, {files}" if version else files)


def used_plugins(plugins: Iterable[JavaPlugin]) -> tuple[UsedPlugin, ...]:
    """One for each folder or archive."""
    by_place = {plugin.location: plugin for plugin in reversed([*plugins])}
    return tuple(UsedPlugin.of(plugin) for plugin in reversed(by_place.values()))


def check_same(wanted: Sequence[UsedPlugin]) -> None:
    """Compare the plugins of this process with those of the driver.

    Raises:
        MissingPluginError: one is missing here, or holds something else.
    """
    for plugin in wanted:
        here = [UsedPlugin.of(place) for place in places_of(plugin.class_name)]
        if any(place.content == plugin.content for place in here):
            continue
        found = "; ".join(f"{place.path}: {place.about}" for place in here) or "missing"
        raise MissingPluginError(
            f"The Java plugin {plugin.class_name} is not the same on the driver and on {socket.gethostname()}, where"
            f" this task runs. Driver: {plugin.path}: {plugin.about}. This machine: {found}.",
            config_path="plugin.path",
            suggestion=f"Copy the folder {plugin.path} to each machine that runs tasks, under the same path.",
        )

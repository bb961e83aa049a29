"""Requests to plugin hosts, and what they answer, as the tests of this folder need them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from airflow_connect.jvm.frames import Frame, decode
from airflow_connect.jvm.host import PluginHost
from airflow_connect.jvm.host_jars import LOCK
from airflow_connect.jvm.jars.locked_jars import fetch_jars
from airflow_connect.jvm.wire import Reply
from tests.devstack.java_compiler import compiled_jar

CHAIN_STAGES = Path(__file__).with_name("plugins") / "ChainStages.java"
CHAIN_SERVICES = {
    "org.apache.kafka.connect.transforms.Transformation": ("Counts", "MakesOldDates"),
    "org.apache.kafka.connect.transforms.predicates.Predicate": ("Matches",),
    "org.apache.kafka.connect.storage.Converter": ("Reverses",),
    "org.apache.kafka.connect.storage.HeaderConverter": ("Reverses",),
}
"""Classes in it, by kind."""
STRING = "org.apache.kafka.connect.storage.StringConverter"
WAIT_MS = 200


def chain_services() -> dict[str, str]:
    """The service files of `ChainStages`."""
    return {
        f"META-INF/services/{kind}": "".join(f"plugins.ChainStages${name}\n" for name in names)
        for kind, names in CHAIN_SERVICES.items()
    }


def chain_jar() -> Path:
    """A jar of `ChainStages` alone, for a worker."""
    return compiled_jar([CHAIN_STAGES], fetch_jars(LOCK), lambda _classes: chain_services())


def configuration(plugin: str, **keys: str) -> dict[str, str]:
    """A connector of the conformance plugins, with text converters."""
    name = plugin if "." in plugin else f"plugins.{plugin}"
    own = {"name": "c", "connector.class": name, "key.converter": STRING, "value.converter": STRING}
    return own | keys


def replies(host: PluginHost, empty_polls: int = 2) -> Iterator[Reply]:
    """The frames of a source until so many polls were empty."""
    while True:
        reply = host.call("next", wait_ms=WAIT_MS, timeout_s=30)
        if "state" not in reply.result:
            yield reply
        elif reply.result["empty_polls"] >= empty_polls:
            return


def values(frames: Iterator[Reply] | list[Reply]) -> list[str | None]:
    """The values of all records, as text."""
    found: list[str | None] = []
    for reply in frames:
        found += [None if value is None else value.decode() for value in decode(reply).values.to_pylist()]
    return found


def drain(host: PluginHost, into: list[str | None]) -> None:
    """Append the values of a source, frame by frame, until it is idle or fails."""
    for reply in replies(host):
        into += values([reply])


def frame_of(rows: list[tuple[bytes | None, bytes | None]], topic: str = "t") -> Frame:
    """Records of partition 0, from offset 0 on, without headers."""
    count = len(rows)
    return Frame(
        topics=[topic],
        topic=pa.array([0] * count, pa.int32()),
        partition=pa.array([0] * count, pa.int32()),
        offset=pa.array(range(count), pa.int64()),
        timestamp=pa.array([1000] * count, pa.int64()),
        keys=pa.array([key for key, _ in rows], pa.binary()),
        values=pa.array([value for _, value in rows], pa.binary()),
    )


def is_running(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits for its parent does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rsplit(")", 1)[1].split()[0] not in "ZX"


def group_members(pid: int) -> list[int]:
    """The processes of the session that a host's JVM leads."""
    members = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(folder.name)) == pid and is_running(int(folder.name)):
                members.append(int(folder.name))
        except ProcessLookupError:
            continue
    return members
